"""Whoever connects to the port for other brokers and is none, or lies."""

import itertools
import os
import re
import socket
import struct
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.system.attacks import Peer, metric, rss_bytes
from tests.system.clusters import bystander
from tidemark.client.blocking import open_client
from tidemark.protocol.messages.peer.appends import AppendRequests
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse, PeerEndpoint
from tidemark.protocol.messages.peer.versions import FIRST_VERSION, GREETING_VERSION
from tidemark.protocol.messages.peer.votes import VoteRequests
from tidemark.protocol.peer_frames import decode_body, encode_peer_request
from tidemark.protocol.peer_registry import peer_api_of
from tidemark.protocol.schema import Message
from tidemark.testing.process_cluster import ProcessCluster

STRANGERS = itertools.count(77)
LENGTHS = [2**31 - 1, -1, -(2**31), 64 * 1024 + 1]


@pytest.fixture(autouse=True)
def unharmed(three: ProcessCluster) -> Iterator[None]:
    """No client notices anything, and no broker ends, grows or says that it has a bug."""
    before = rss_bytes(three.brokers[1].pid)
    with bystander(three, f"bystander-{uuid.uuid4().hex[:8]}"):
        yield
    assert all(broker.is_running for broker in three.brokers.values())
    assert not any("Traceback" in broker.log for broker in three.brokers.values())
    assert rss_bytes(three.brokers[1].pid) - before < 32 * 1024 * 1024


@pytest.fixture
def peer(three: ProcessCluster) -> Iterator[Peer]:
    """Connected to the port for brokers of one of them."""
    with Peer(three.brokers[1].peers) as connected:
        yield connected


def cut_off(three: ProcessCluster) -> float:
    """How many connections have ended because of what was said on them; not for want of a Hello."""
    name = "tidemark_peer_connections_ended_total"
    return metric(three.brokers[1], name, reason="bad_input")


def _version_of(message: type[Message]) -> int:
    return GREETING_VERSION if message is HelloRequest else FIRST_VERSION


def encoded(message: Message, correlation_id: int = 0) -> bytes:
    parts = encode_peer_request(message, _version_of(type(message)), correlation_id)
    return b"".join(part for part in parts if isinstance(part, bytes))


def frame_of(message: type[Message], body: bytes, *, correlation_id: int = 0) -> bytes:
    """A frame that says to be such a message."""
    key = peer_api_of(message).key
    return struct.pack(">ihhi", 8 + len(body), key, _version_of(message), correlation_id) + body


def cluster_id(cluster: ProcessCluster) -> str:
    with open_client(cluster.bootstrap) as client:
        found = client.run(client.admin.describe_cluster).cluster_id
        assert found is not None
        return found


def hello(cluster: str, *, node_id: int | None = None, to_node_id: int = 1) -> HelloRequest:
    return HelloRequest(
        oldest_version=FIRST_VERSION,
        newest_version=FIRST_VERSION,
        cluster_id=cluster,
        to_node_id=to_node_id,
        node_id=next(STRANGERS) if node_id is None else node_id,
        directory_id=uuid.uuid4(),
        incarnation=1,
        rack=None,
        endpoints=[PeerEndpoint(name="", host="127.0.0.1", port=1)],
    )


LIES = {
    "2 GiB": struct.pack(">i", 2**31 - 1) + bytes(1_000_000),
    "negative": struct.pack(">i", -5),
    "2 G requests": frame_of(AppendRequests, b"\x7f\xff\xff\xff"),
    "noise": frame_of(AppendRequests, os.urandom(5000)),
    "a million votes": frame_of(VoteRequests, struct.pack(">i", 1_000_000) + bytes(4000)),
    "a second Hello": encoded(hello("again"), correlation_id=2),
}


def say_hello(peer: Peer, message: HelloRequest) -> HelloResponse:
    peer.send(encoded(message, correlation_id=1))
    return decode_body(HelloResponse, GREETING_VERSION, memoryview(peer.read_frame())[4:])


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: tidemark\r\n\r\n",
        bytes.fromhex("16030100c8010000c40303") + bytes(200),
        struct.pack(">ihhi", 8, 18, 3, 1),
        os.urandom(1000),
        frame_of(HelloRequest, b"", correlation_id=1),
        frame_of(HelloRequest, b"\xff" * 200, correlation_id=1),
        frame_of(AppendRequests, b"\x00\x00\x00\x00"),
    ],
    ids=["HTTP", "TLS", "Kafka", "noise", "an empty Hello", "a Hello of lengths", "no Hello"],
)
def test_who_does_not_speak_as_brokers_do_is_cut_off(
    three: ProcessCluster, peer: Peer, said: bytes
) -> None:
    before = cut_off(three)
    peer.send(said)
    assert peer.is_closed()
    assert cut_off(three) == before + 1


@pytest.mark.parametrize("length", LENGTHS)
def test_a_stranger_may_not_announce_a_large_frame(
    three: ProcessCluster, peer: Peer, length: int
) -> None:
    before = cut_off(three)
    peer.send(struct.pack(">i", length) + b"x" * 100)
    assert peer.is_closed()
    assert cut_off(three) == before + 1


def test_a_hello_of_another_cluster_is_refused_with_a_sentence(peer: Peer) -> None:
    response = say_hello(peer, hello("another-cluster-entirely"))
    assert re.match(
        r"broker \d+ belongs to cluster another-cluster-entirely, broker 1 to \S+: one of the two "
        "has the wrong address or the wrong data directory",
        response.reason,
    )
    assert peer.is_closed()


def test_a_hello_under_the_number_of_another_is_refused(three: ProcessCluster, peer: Peer) -> None:
    response = say_hello(peer, hello(cluster_id(three), node_id=2))
    assert "two brokers have one node id" in response.reason
    assert peer.is_closed()


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_who_was_let_in_and_cannot_be_reached_is_not_listened_to(
    three: ProcessCluster, peer: Peer, lie: bytes
) -> None:
    """Somebody who knows the cluster's id: nothing asks for more yet."""
    response = say_hello(peer, hello(cluster_id(three)))
    assert response.refusal == 0, response.reason
    peer.send(lie)


def test_strangers_that_say_nothing_keep_no_broker_out(three: ProcessCluster) -> None:
    """They fill the places for those that have not said who they are; then they are cut off."""
    first, second = three.brokers[1], three.brokers[2]
    with ExitStack() as stack:
        idle = [stack.enter_context(Peer(first.peers)) for _ in range(80)]
        second.kill()
        second.start()
        assert all(_is_closed_within(each.socket, seconds=10) for each in idle)


def _is_closed_within(connection: socket.socket, *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if not connection.recv(1):
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False
