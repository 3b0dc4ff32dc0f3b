"""Whoever says what no broker says loses its connection, and nothing else happens."""

from __future__ import annotations

import struct

import pytest
import trio

from tests.broker.peers.brokers import (
    Broker,
    hello_of,
    open_pair,
    raw,
    read_to_end,
)
from tests.broker.peers.values import append, heartbeat
from tidemark.broker.config import Address
from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers import Peer
from tidemark.broker.peers.encoding import encode
from tidemark.broker.peers.frame_socket import FIRST_FRAME_BYTES_MAX
from tidemark.protocol.frames import encode_request
from tidemark.protocol.messages.api_versions import ApiVersionsRequest
from tidemark.protocol.messages.metadata import MetadataRequest
from tidemark.protocol.messages.peer.versions import LAST_VERSION
from tidemark.protocol.types import NodeId

pytestmark = pytest.mark.usefixtures("wire")


def frames_of(*messages: object) -> bytes:
    frames = encode(messages, LAST_VERSION)  # type: ignore[arg-type]  # messages of the test
    return b"".join(part for frame in frames for part in frame.parts if isinstance(part, bytes))


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


LIES = {
    "two gigabytes": struct.pack(">i", 2**31 - 1) + bytes(100),
    "a negative length": struct.pack(">i", -1),
    "an HTTP request": b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n",
    "an empty frame": frame(b""),
    "a client's request": encode_request(MetadataRequest(topics=None), 9, 1, "client"),
    "a client's first request": encode_request(
        ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3, 1, "client"
    ),
    "a heartbeat before a Hello": frames_of(heartbeat()),
    "a frame that is large for a stranger": struct.pack(">i", FIRST_FRAME_BYTES_MAX + 1),
    "a Hello that does not parse": frame(struct.pack(">hhi", 10_000, 1, 1) + b"\xff" * 30),
    "a Hello of another version": frame(struct.pack(">hhi", 10_000, 2, 1) + bytes(60)),
    "a call of nothing": frame(struct.pack(">hhi", 12_345, LAST_VERSION, 1)),
}

LIES_AFTER_HELLO = {
    "garbage": b"\x00\x00\x00\x20" + b"\xaa" * 32,
    "two gigabytes": struct.pack(">i", 2**31 - 1),
    "a heartbeat with groups that are not there": frame(
        struct.pack(">hhi", 10_010, LAST_VERSION, 0) + struct.pack(">qqqi", 1, 1, 1, 2**31 - 1)
    ),
    "an append with an entry that no log has": frames_of(append(b"")),
    "an answer to nothing": frame(struct.pack(">hhi", 10_010, LAST_VERSION, 7)),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_stranger_that_lies_is_hung_up_on(
    lie: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_pair() as (one, two), await raw(one) as stranger:
        await stranger.send_all(lie)
        await read_to_end(stranger)
        assert one.metrics.ended[PeerEnd.BAD_INPUT].value == 1
        assert len([line for line in caplog.messages if "closing the connection of" in line]) == 1
        await still_talking(one, two)


@pytest.mark.parametrize("lie", LIES_AFTER_HELLO.values(), ids=LIES_AFTER_HELLO)
async def test_a_known_broker_that_lies_is_hung_up_on(lie: bytes) -> None:
    """Broker 3 has no connection from here: what it says is not even listened to."""
    async with open_pair() as (one, two), await raw(one) as liar:
        await liar.send_all(hello_of(3, one))
        assert await liar.receive_some()
        one.turn.run(one.network._links[NodeId(3)]._incoming.resume)  # type: ignore[union-attr]  # it is there
        await liar.send_all(lie)
        await read_to_end(liar)
        assert one.metrics.ended[PeerEnd.BAD_INPUT].value == 1
        await still_talking(one, two)


async def test_what_is_said_before_the_hello_is_answered_is_a_lie() -> None:
    async with open_pair() as (one, two), await raw(one) as liar:
        await liar.send_all(hello_of(3, one) + frames_of(heartbeat()))
        await read_to_end(liar)
        await still_talking(one, two)


async def test_a_second_hello_is_a_lie() -> None:
    async with open_pair() as (one, two), await raw(one) as liar:
        await liar.send_all(hello_of(3, one))
        assert await liar.receive_some()
        one.turn.run(one.network._links[NodeId(3)]._incoming.resume)  # type: ignore[union-attr]  # it is there
        await liar.send_all(hello_of(3, one))
        await read_to_end(liar)
        await still_talking(one, two)


async def test_half_a_frame_and_then_the_end_is_no_lie() -> None:
    async with open_pair() as (one, two):
        async with await raw(one) as stranger:
            await stranger.send_all(hello_of(3, one)[:20])
        await still_talking(one, two)
        assert one.metrics.ended[PeerEnd.BAD_INPUT].value == 0


async def test_a_stranger_that_says_nothing_is_hung_up_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with open_pair() as (one, two):
        # Not before: two's own handshake may take as long where the machine is busy.
        monkeypatch.setattr("tidemark.broker.peers.strangers.HELLO_SECONDS", 0.2)
        async with await raw(one) as stranger:
            assert await read_to_end(stranger) == b""
        assert one.metrics.ended[PeerEnd.NO_HELLO].value == 1
        await still_talking(one, two)


async def test_strangers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.broker.peers.strangers._STRANGERS_MAX", 2)
    async with open_pair() as (one, two), await raw(one):
        for _ in range(3):
            async with await raw(one) as gone:
                await gone.send_all(b"\xff" * 4)
                await read_to_end(gone)
        async with await raw(one), await raw(one) as third:
            assert await read_to_end(third) == b""
        assert one.metrics.ended[PeerEnd.TOO_MANY].value == 1
        await still_talking(one, two)


async def test_nobody_who_answers_a_hello_with_garbage_is_up() -> None:
    async with open_pair() as (one, two), trio.open_nursery() as tasks:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def answer(stream: trio.SocketStream) -> None:
            async with stream:
                await stream.receive_some()
                await stream.send_all(frame(b"\xff" * 40))
                await read_to_end(stream)

        tasks.start_soon(trio.serve_listeners, answer, listeners)
        port = listeners[0].socket.getsockname()[1]
        one.network.set_peers(
            {two.node: two.as_peer(), NodeId(3): Peer(Address("127.0.0.1", port))}
        )
        ended = one.metrics.ended
        while ended[PeerEnd.BAD_INPUT].value + ended[PeerEnd.FAILED_TLS].value < 2:  # noqa: ASYNC110 # a count has no event
            await trio.sleep(0.005)
        await still_talking(one, two)
        tasks.cancel_scope.cancel()


async def still_talking(one: Broker, two: Broker) -> None:
    two.send(one, heartbeat(77))
    await one.wait(lambda: heartbeat(77) in one.messages)
    assert [event for event in one.told + two.told if event[0] == "down"] == []
