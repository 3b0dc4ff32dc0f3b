"""Clients that are slow, idle, greedy or too many: they wait, and nobody waits for them."""

import resource
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

import pytest

from tests.system.attacks import (
    Bystander,
    Peer,
    batch,
    bystander,
    creation,
    fetching,
    metric,
    production,
    rss_bytes,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages import create_topics, list_groups
from tidemark.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidemark.protocol.messages.heartbeat import HeartbeatRequest
from tidemark.protocol.messages.metadata import MetadataRequest
from tidemark.testing.process import BrokerProcess, open_broker_process

MIB = 1024 * 1024
HEARTBEAT = HeartbeatRequest(group_id="nobody", generation_id=1, member_id="m")


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def send_until_blocked(peer: Peer, data: bytes) -> int:
    """Send without reading until nothing is taken for a while; how many bytes were."""
    peer.socket.settimeout(0.5)
    sent = 0
    try:
        while sent < len(data):
            sent += peer.socket.send(data[sent : sent + 65536])
    except TimeoutError:
        pass
    peer.socket.settimeout(10)
    return sent


def test_who_never_reads_fetched_records_holds_no_memory(
    victim: BrokerProcess, unharmed: Bystander, topic: str
) -> None:
    with Peer(victim.bootstrap) as peer:
        peer.create_topic(topic, flush="os")
        for _ in range(20):
            assert peer.produce(topic, batch(bytes(900_000))) is ErrorCode.NONE
    memory, rounds = rss_bytes(victim.pid), unharmed.rounds
    fetches = encode_request(fetching(topic, 0), 12, 1, None) * 2000
    with ExitStack() as stack:
        for _ in range(4):
            peer = stack.enter_context(Peer(victim.bootstrap, receive_buffer_bytes=4096))
            peer.send(fetches)
        time.sleep(0.5)
        assert rss_bytes(victim.pid) < memory + 20 * MIB
        unharmed.wait_beyond(rounds + 5)


def test_who_never_reads_answers_is_not_read_any_more(
    victim: BrokerProcess, unharmed: Bystander
) -> None:
    memory, rounds = rss_bytes(victim.pid), unharmed.rounds
    request = encode_request(MetadataRequest(topics=None), 9, 1, None)
    with Peer(victim.bootstrap, receive_buffer_bytes=4096) as peer:
        sent = send_until_blocked(peer, request * 2_000_000)
        assert sent < 2_000_000 * len(request)
        # connection.response.max.bytes, and what handing them over takes.
        assert rss_bytes(victim.pid) < memory + 64 * MIB
        unharmed.wait_beyond(rounds)


def test_ten_thousand_requests_may_come_before_an_answer_is_read(
    victim: BrokerProcess, unharmed: Bystander
) -> None:
    count, rounds = 10_000, unharmed.rounds
    with Peer(victim.bootstrap) as peer:
        peer.send(b"".join(encode_request(HEARTBEAT, 3, at, "p") for at in range(count)))
        for at in range(count):
            assert struct.unpack(">i", peer.read_frame()[:4])[0] == at
    unharmed.wait_beyond(rounds)


def test_who_sends_a_byte_at_a_time_is_answered(victim: BrokerProcess, unharmed: Bystander) -> None:
    request = ApiVersionsRequest(client_software_name="slow", client_software_version="1")
    with Peer(victim.bootstrap) as peer:
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in encode_request(request, 3, 7, "peer"):
            peer.send(bytes((byte,)))
            time.sleep(0.002)
        assert peer.read(request, 3, ApiVersionsResponse).error_code == ErrorCode.NONE
    unharmed.wait_beyond(0)


def test_half_frames_that_hold_all_memory_are_given_up_for_others(tmp_path: Path) -> None:
    """The holders go on sending a byte now and then, so as not to look idle."""
    settings = {"queued.max.request.bytes": str(2 * MIB), "socket.request.max.bytes": str(2 * MIB)}
    with (
        open_broker_process(tmp_path / "data", settings=settings) as broker,
        ExitStack() as stack,
    ):
        # Its buffer has grown to the whole budget, and has room for more.
        holder = stack.enter_context(Peer(broker.bootstrap))
        holder.send(struct.pack(">i", 2 * MIB - 4) + bytes(MIB + 100_000))
        with Peer(broker.bootstrap) as peer, bystander(broker.bootstrap, "small"):
            peer.create_topic("large")
            peer.socket.settimeout(0.2)
            answer = None
            peer.send(encode_request(production("large", batch(bytes(500_000))), 9, 7, None))
            deadline = time.monotonic() + 25
            while answer is None and time.monotonic() < deadline:
                with suppress(OSError):
                    holder.send(b"\0")
                with suppress(TimeoutError):
                    answer = peer.read_frame()
            assert answer is not None
        assert metric(broker, "tidemark_connections_closed_total", reason="slow") >= 1


def test_a_thousand_idle_connections_cost_little(
    victim: BrokerProcess, unharmed: Bystander
) -> None:
    def open_more(count: int) -> None:
        for _ in range(count):
            stack.enter_context(Peer(victim.bootstrap))
        while metric(victim, "tidemark_connections") < count:
            time.sleep(0.05)

    with ExitStack() as stack:
        open_more(20)  # what the first of its kind costs is not theirs
        memory, rounds = rss_bytes(victim.pid), unharmed.rounds
        open_more(1000)
        assert rss_bytes(victim.pid) < memory + 10 * MIB
        unharmed.wait_beyond(rounds)


def test_connections_over_the_limit_are_closed_and_the_others_served(
    victim: BrokerProcess, unharmed: Bystander
) -> None:
    reason = {"reason": "too_many"}
    before = metric(victim, "tidemark_connections_closed_total", **reason)
    with ExitStack() as stack:
        peers = [stack.enter_context(Peer(victim.bootstrap)) for _ in range(1300)]
        assert peers[-1].is_closed()
        unharmed.wait_beyond(unharmed.rounds)
    assert metric(victim, "tidemark_connections_closed_total", **reason) >= before + 100


class FewDescriptors(BrokerProcess):
    """A broker that may open little, and cannot change that: no fork, but the command."""

    def _spawn(self, log: IO[bytes]) -> subprocess.Popen[bytes]:
        limited = ["/bin/sh", "-c", 'ulimit -n 200; exec "$@"', "sh", *self.command()]
        return subprocess.Popen(limited, stdout=subprocess.PIPE, stderr=log)


def test_connections_leave_descriptors_to_files(tmp_path: Path) -> None:
    with FewDescriptors(tmp_path / "data") as broker, ExitStack() as stack:
        there = stack.enter_context(Peer(broker.bootstrap))
        peers = [stack.enter_context(Peer(broker.bootstrap)) for _ in range(300)]
        assert peers[-1].is_closed()
        there.create_topic("t", segment_bytes="100000")
        for _ in range(30):
            assert there.produce("t", batch(bytes(50_000))) is ErrorCode.NONE
        assert len(list(broker.data_dir.glob("t-0/*.log"))) > 10
        answer = there.ask(creation("many", 20), 5, create_topics.CreateTopicsResponse)
        assert answer.topics[0].error_code == ErrorCode.NONE
        assert "Too many open files" not in broker.log
        assert broker.stop() == 0


def test_a_broker_without_descriptors_serves_who_is_there(tmp_path: Path) -> None:
    with open_broker_process(tmp_path / "data") as broker:
        with bystander(broker.bootstrap, "t") as there, ExitStack() as stack:
            while there.rounds < 3:
                time.sleep(0.01)
            open_now = len(list(Path(f"/proc/{broker.pid}/fd").iterdir()))
            resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (open_now + 20, open_now + 20))
            peers = [stack.enter_context(Peer(broker.bootstrap)) for _ in range(60)]
            assert peers[-1].is_closed()
            stack.enter_context(Peer(broker.http))  # the first that asks for HTTP
            time.sleep(0.2)
        assert metric(broker, "tidemark_connections_closed_total", reason="too_many") > 0
        with bystander(broker.bootstrap, "later"):
            time.sleep(0.2)
        assert broker.stop() == 0
        assert "Traceback" not in broker.log
        assert "Too many open files" in broker.log


@pytest.mark.parametrize("after_seconds", [0.0, 1.4])  # before it begins with the rest, and amid it
def test_a_broker_that_has_just_started_waits_for_descriptors_to_read_the_rest_with(
    tmp_path: Path, after_seconds: float
) -> None:
    with open_broker_process(tmp_path / "data") as broker:
        time.sleep(after_seconds)
        limits = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (0, limits[1]))
        give_up = time.monotonic() + 30
        while "cannot be read yet" not in broker.log and time.monotonic() < give_up:
            time.sleep(0.05)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, limits)
        with bystander(broker.bootstrap, "t"):
            time.sleep(0.2)
        assert "cannot be read yet: " in broker.log
        assert broker.stop() == 0
        assert "Traceback" not in broker.log


def test_who_asks_what_cannot_be_read_for_want_of_descriptors_is_hung_up_on(
    tmp_path: Path,
) -> None:
    """What answers it is imported when it is asked first. It is the broker that ended it, not the
    client."""
    request = list_groups.ListGroupsRequest()
    with open_broker_process(tmp_path / "data") as broker, Peer(broker.bootstrap) as peer:
        peer.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        limits = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (0, limits[1]))
        with pytest.raises(EOFError):
            peer.ask(request, 4, list_groups.ListGroupsResponse)
        resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, limits)
        assert metric(broker, "tidemark_connections_closed_total", reason="error") == 1
        assert metric(broker, "tidemark_connections_closed_total", reason="by_client") == 0
        with Peer(broker.bootstrap) as again:
            answer = again.ask(request, 4, list_groups.ListGroupsResponse)
            assert answer.error_code == ErrorCode.NONE
        assert "closing the connection of 127.0.0.1: [Errno 24]" in broker.log
        assert "Traceback" not in broker.log


def test_a_frozen_broker_goes_on_where_it_was(tmp_path: Path) -> None:
    with (
        open_broker_process(tmp_path / "data") as broker,
        bystander(broker.bootstrap, "t"),
    ):
        broker.pause()
        time.sleep(1.5)
        broker.resume()
        time.sleep(0.3)
