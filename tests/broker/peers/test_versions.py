"""Brokers of releases that have no version in common: both say so, and what to do."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from tests.broker.peers.answering import JOIN
from tests.broker.peers.brokers import Broker, directory, open_one, raw
from tidemark.broker.config import Address
from tidemark.broker.peers import ask_to_join
from tidemark.broker.peers.hello import Refusal, judge_answer
from tidemark.broker.peers.versions import OWN, refused_join
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.messages.peer.join import JoinRequest, JoinResponse
from tidemark.protocol.messages.peer.versions import (
    FIRST_VERSION,
    GREETING_VERSION,
    LAST_VERSION,
)
from tidemark.protocol.peer_frames import (
    decode_body,
    decode_peer_response_header,
    encode_peer_request,
    encode_peer_response,
)
from tidemark.protocol.peer_registry import peer_api_of
from tidemark.protocol.schema import Message
from tidemark.protocol.types import NodeId

WHAT_TO_DO = (
    "brokers of one cluster need releases that have a version in common. Stop the brokers of the "
    "older release, install the newer one there, and start them on the directories they have"
)
_FRAME = struct.Struct(">ihhi")


def as_of(version: int, request: Message) -> bytes:
    """The frame by which a build says it that speaks only this version."""
    (frame,) = encode_peer_request(request, GREETING_VERSION, 1)
    assert isinstance(frame, bytes)
    length, key, _, correlation_id = _FRAME.unpack_from(frame)
    return _FRAME.pack(length, key, version, correlation_id) + frame[_FRAME.size :]


async def asked(broker: Broker, frame: bytes) -> memoryview:
    """The body of the answer."""
    async with await raw(broker) as stream:
        await stream.send_all(frame)
        received = bytearray()
        while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4]):
            received += await stream.receive_some()
    return decode_peer_response_header(memoryview(bytes(received))[4:])[1]


@pytest.mark.parametrize("version", [1, LAST_VERSION + 1])
async def test_a_join_of_another_version_is_refused_and_not_misread(
    version: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def join(_: NodeId | None, request: Message) -> Message:
        raise AssertionError("it was let in")

    async with open_one(2, handlers={JoinRequest: join}) as two:
        body = await asked(two, as_of(version, JOIN))
    refused = decode_body(JoinResponse, GREETING_VERSION, body)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message == (
        f"broker 9 speaks version {version} of the protocol between brokers, broker 2 "
        f"{OWN}: {WHAT_TO_DO}"
    )
    assert any(refused.error_message in line for line in caplog.messages)


@pytest.mark.parametrize(
    ("oldest", "newest", "they_speak"), [(1, 1, "version 1"), (7, 9, "versions 7 to 9")]
)
async def test_a_hello_of_another_version_is_refused_before_anything_else_is_looked_at(
    oldest: int, newest: int, they_speak: str, caplog: pytest.LogCaptureFixture
) -> None:
    hello = HelloRequest(
        oldest_version=oldest,
        newest_version=newest,
        cluster_id="another",
        to_node_id=-1,
        node_id=2,
        directory_id=directory(9),
        incarnation=1,
        rack=None,
        endpoints=(),
    )
    async with open_one(2, cluster_id=None) as two:
        body = await asked(two, as_of(GREETING_VERSION, hello))
    response = decode_body(HelloResponse, GREETING_VERSION, body)
    assert response.refusal == Refusal.VERSION
    assert response.reason == (
        f"broker 2 speaks {they_speak} of the protocol between brokers, broker 2 "
        f"{OWN}: {WHAT_TO_DO}"
    )
    assert any(response.reason in line for line in caplog.messages)
    refused = judge_answer(NodeId(2), response, None)
    assert refused is not None
    assert refused.reason == response.reason


@asynccontextmanager
async def served(serve: Callable[[trio.SocketStream], Awaitable[None]]) -> AsyncIterator[Address]:
    """Where each connection is left to `serve`."""
    async with trio.open_nursery() as tasks:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        tasks.start_soon(trio.serve_listeners, serve, listeners)
        yield Address("127.0.0.1", listeners[0].socket.getsockname()[1])
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def first_build(refusal: Refusal | None) -> AsyncIterator[Address]:
    """What is there hangs up on a Join of any version but 1, and answers a Hello."""
    answer = HelloResponse(
        refusal=int(refusal or 0), reason="why", node_id=2, directory_id=directory(2), incarnation=1
    )

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            header = await stream.receive_some(_FRAME.size)
            if _FRAME.unpack(header)[1:3] == (peer_api_of(HelloRequest).key, 1):
                (frame,) = encode_peer_response(answer, GREETING_VERSION, 1)
                assert isinstance(frame, bytes)
                await stream.send_all(frame)

    async with served(serve) as address:
        yield address


@asynccontextmanager
async def build_of(version: int, asked: list[int]) -> AsyncIterator[Address]:
    """What is there speaks this version alone, and refuses a Join of any other."""

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            header = await stream.receive_some(_FRAME.size)
            _, key, spoken, correlation_id = _FRAME.unpack(header)
            assert key == peer_api_of(JoinRequest).key
            asked.append(spoken)
            taken = JoinResponse(cluster_id="cluster", node_id=2)
            answer = taken if spoken == version else refused_join(JOIN, spoken, 2)
            (frame,) = encode_peer_response(answer, GREETING_VERSION, correlation_id)
            assert isinstance(frame, bytes)
            await stream.send_all(frame)

    async with served(serve) as address:
        yield address


SPOKEN = range(FIRST_VERSION, LAST_VERSION + 1)


@pytest.mark.parametrize("version", SPOKEN)
async def test_a_join_is_understood_by_a_build_that_speaks_one_of_the_versions(
    version: int,
) -> None:
    async with build_of(version, []) as address:
        assert (await ask_to_join(address, JOIN)).cluster_id == "cluster"


async def test_a_join_is_refused_for_its_version_once_all_have_been_tried() -> None:
    asked = list[int]()
    async with build_of(LAST_VERSION + 1, asked) as address:
        refused = await ask_to_join(address, JOIN)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert WHAT_TO_DO in (refused.error_message or "")
    assert asked == list(SPOKEN)


async def test_who_hangs_up_on_a_join_is_asked_whether_that_is_for_its_version() -> None:
    async with first_build(Refusal.VERSION) as address:
        refused = await ask_to_join(address, JOIN)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert refused.error_message == f"why: {WHAT_TO_DO}"


@pytest.mark.parametrize("refusal", [None, Refusal.NO_CLUSTER_YET])
async def test_who_hangs_up_for_another_reason_is_tried_again(refusal: Refusal | None) -> None:
    async with first_build(refusal) as address:
        with pytest.raises(RequestError, match="has hung up"):
            await ask_to_join(address, JOIN)
