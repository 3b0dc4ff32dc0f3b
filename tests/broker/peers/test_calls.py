"""Questions between brokers: answered, failed when the connection is lost, asked by strangers."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
import trio.testing

from tests.broker.peers.answering import JOIN, Answering
from tests.broker.peers.brokers import (
    Broker,
    ask_to_join,
    introduce,
    open_one,
    open_pair,
    raw,
    read_to_end,
)
from tests.broker.peers.values import append
from tidemark.broker.config import Address
from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.broker.peers.calls import CALLS_MAX
from tidemark.protocol.errors import ErrorCode, ProtocolError, RequestError
from tidemark.protocol.messages.peer.forward import ForwardRequest, ForwardResponse
from tidemark.protocol.messages.peer.versions import LAST_VERSION
from tidemark.protocol.peer_frames import encode_peer_request
from tidemark.protocol.types import NodeId

pytestmark = pytest.mark.usefixtures("wire")


def forward(body: bytes) -> ForwardRequest:
    return ForwardRequest(api_key=3, api_version=9, body=body)


@pytest.fixture
def answering() -> Answering:
    return Answering()


async def test_a_call_is_answered(answering: Answering) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        response = await one.network.call(two.node, forward(b"abc"), ForwardResponse)
        assert (response.body, response.metadata_version) == (b"cba", 5)
        assert answering.asked == [(1, forward(b"abc"))]


async def test_answers_go_to_whom_they_belong_in_whatever_order(answering: Answering) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        answers: list[bytes] = []

        async def ask(body: bytes) -> None:
            response = await one.network.call(two.node, forward(body), ForwardResponse)
            answers.append(response.body)
            answering.go_on.set()

        async with trio.open_nursery() as tasks:
            tasks.start_soon(ask, b"wait")
            await answering.arrived.wait()
            tasks.start_soon(ask, b"abc")
        assert answers == [b"cba", b"tiaw"]


async def test_a_large_call_is_answered(answering: Answering) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        body = bytes(range(256)) * 20_000
        response = await one.network.call(two.node, forward(body), ForwardResponse)
        assert response.body == body[::-1]


async def test_a_call_that_no_broker_takes_fails_here() -> None:
    async with open_one(1, frame_bytes_max=100_000) as one, open_one(2) as two:
        introduce(one, two)
        await one.wait_up(two)
        with pytest.raises(RequestError):
            await one.network.call(two.node, forward(bytes(200_000)), ForwardResponse)
        assert one.network.up


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"refuse", ErrorCode.NOT_CONTROLLER, "not here"),
        (b"break", ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ],
)
async def test_a_handler_that_fails_is_an_answer_that_says_so(
    answering: Answering, body: bytes, code: ErrorCode, message: str | None
) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        response = await one.network.call(two.node, forward(body), ForwardResponse)
        assert (response.error_code, response.error_message) == (code, message)


async def test_what_has_no_handler_is_answered_too() -> None:
    async with open_pair() as (one, two):
        response = await one.network.call(two.node, forward(b"abc"), ForwardResponse)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_a_call_to_a_broker_that_is_not_connected_fails_at_once() -> None:
    async with open_one(1) as one:
        with pytest.raises(RequestError) as failed:
            await one.network.call(NodeId(2), forward(b"abc"), ForwardResponse)
        assert failed.value.code is ErrorCode.NETWORK_EXCEPTION


async def test_a_call_fails_when_its_connection_is_lost(answering: Answering) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        async with trio.open_nursery() as tasks:
            tasks.start_soon(ask_in_vain, one, two)
            await answering.arrived.wait()
            two.network.set_peers({})


async def ask_in_vain(one: Broker, two: Broker) -> None:
    with pytest.raises(RequestError) as failed:
        await one.network.call(two.node, forward(b"wait"), ForwardResponse)
    assert failed.value.code is ErrorCode.NETWORK_EXCEPTION


async def test_an_answer_that_nobody_waits_for_any_more_is_passed_over(
    answering: Answering,
) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        async with trio.open_nursery() as tasks:
            with trio.CancelScope() as giving_up:

                async def give_up() -> None:
                    await answering.arrived.wait()
                    giving_up.cancel()

                tasks.start_soon(give_up)
                await one.network.call(two.node, forward(b"wait"), ForwardResponse)
        outgoing = one.network._links[two.node].outgoing
        assert outgoing is not None
        assert outgoing._calls._by_id  # the other side still works on it
        answering.go_on.set()
        response = await one.network.call(two.node, forward(b"abc"), ForwardResponse)
        assert response.body == b"cba"
        assert not outgoing._calls._by_id


async def test_more_calls_at_once_than_a_caller_has_end_the_connection(
    answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.broker.peers.incoming.CALLS_MAX", 3)
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        async with trio.open_nursery() as tasks:
            for _ in range(4):
                tasks.start_soon(ask_in_vain, one, two)


async def test_of_many_calls_some_wait_for_their_turn(answering: Answering) -> None:
    """There may be more clients than calls that a broker is asked at once."""
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        answers = list[bytes]()

        async def ask() -> None:
            response = await one.network.call(two.node, forward(b"wait"), ForwardResponse)
            answers.append(response.body)

        async with trio.open_nursery() as tasks:
            for _ in range(2 * CALLS_MAX + 1):
                tasks.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert len(answering.asked) == CALLS_MAX
            answering.go_on.set()
        assert answers == [b"tiaw"] * (2 * CALLS_MAX + 1)
        assert two.metrics.ended[PeerEnd.BAD_INPUT].value == 0


async def test_who_waits_for_a_turn_hears_that_the_connection_is_lost(answering: Answering) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        async with trio.open_nursery() as tasks:
            for _ in range(2 * CALLS_MAX + 1):
                tasks.start_soon(ask_in_vain, one, two)
            await trio.testing.wait_all_tasks_blocked(0.1)
            two.network.set_peers({})


async def test_calls_that_are_too_large_do_not_end_the_connection(answering: Answering) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        with pytest.raises(RequestError) as refused:
            await one.network.call(two.node, forward(bytes(70_000_000)), ForwardResponse)
        assert refused.value.code is ErrorCode.INVALID_REQUEST
        outcomes = list[ErrorCode]()

        async def ask() -> None:
            try:
                await one.network.call(two.node, forward(bytes(15_000_000)), ForwardResponse)
                outcomes.append(ErrorCode.NONE)
            except RequestError as error:
                outcomes.append(error.code)

        async with trio.open_nursery() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
        assert set(outcomes) == {ErrorCode.NONE, ErrorCode.NETWORK_EXCEPTION}
        assert one.metrics.ended[PeerEnd.OVERFLOW].value == 0


async def test_an_answer_that_is_too_large_does_not_end_the_connection(
    answering: Answering,
) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        response = await one.network.call(two.node, forward(b"large"), ForwardResponse)
        assert (response.error_code, response.body) == (ErrorCode.REQUEST_TIMED_OUT, b"")


async def test_small_calls_overtake_batches(answering: Answering) -> None:
    async with open_one(1) as one, open_one(2, handlers=answering.handlers) as two:
        introduce(one, two)
        await one.wait_up(two)
        one.send(two, *(append(bytes(900_000), partition=n) for n in range(40)))
        await one.network.call(two.node, forward(b"abc"), ForwardResponse)
        await two.wait_messages(40)


async def test_anybody_may_ask_to_join_by_address(answering: Answering) -> None:
    async with open_one(2, handlers=answering.handlers, cluster_id=None) as two:
        response = await ask_to_join(two.network.address, JOIN)
        assert (response.cluster_id, response.voters) == ("cluster", (1, 2))
        assert answering.asked == [(None, JOIN)]


async def test_nobody_may_forward_without_a_hello(answering: Answering) -> None:
    async with open_one(2, handlers=answering.handlers) as two, await raw(two) as stranger:
        (frame,) = encode_peer_request(forward(b"abc"), LAST_VERSION, 1)
        assert isinstance(frame, bytes)
        await stranger.send_all(frame)
        assert await read_to_end(stranger) == b""
        assert answering.asked == []


async def test_an_address_with_nobody_there_is_an_operating_systems_error() -> None:
    async with open_one(2) as two:
        address: Address = two.network.address
    with pytest.raises(ConnectionRefusedError):
        await ask_to_join(address, JOIN)


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\x00\x00\x04abcd"])
async def test_an_address_with_something_else_there_is_a_protocol_error(said: bytes) -> None:
    async with trio.open_nursery() as tasks:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

        async def say(stream: trio.SocketStream) -> None:
            async with stream:
                await stream.receive_some()
                with suppress(trio.BrokenResourceError):
                    await stream.send_all(said)

        tasks.start_soon(trio.serve_listeners, say, listeners)
        port = listeners[0].socket.getsockname()[1]
        with pytest.raises((ProtocolError, RequestError)):
            await ask_to_join(Address("127.0.0.1", port), JOIN)
        tasks.cancel_scope.cancel()
