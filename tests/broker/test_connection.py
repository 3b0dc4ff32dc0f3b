"""Connections and dispatch, through real sockets, in front of scripted handlers (`serving`)."""

import os
import resource
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from tests.broker.serving import (
    HEARTBEAT,
    HOLD_BACK_SECONDS,
    LIST_GROUPS,
    encoded,
    open_serving,
    request,
)
from tidemark.broker.config import Address, BrokerSettings, Endpoint
from tidemark.broker.metrics import BadInput, ConnectionEnd
from tidemark.broker.network import dispatch
from tidemark.broker.network.connections import Connections
from tidemark.broker.network.requests import FrameHandler, Pending, RequestContext, Session
from tidemark.broker.network.send_queue import Part
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.frames import ApiCodec, decode_response
from tidemark.protocol.messages.api_versions import ApiVersionsResponse
from tidemark.protocol.messages.heartbeat import HeartbeatResponse
from tidemark.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tidemark.protocol.registry import API_VERSIONS_KEY, APIS

ANY_PORT = (Endpoint("PLAINTEXT", Address("127.0.0.1", 0)),)
SETTINGS = BrokerSettings(listeners=ANY_PORT)


async def settle() -> None:
    """Until the broker has done all that it can without more input."""
    for _ in range(5):
        await trio.sleep(0.005)


async def test_requests_are_answered_in_their_order_however_their_answers_come() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        for number, what in enumerate(["park", "echo", "park", "echo"]):
            await client.ask(what, number)
        await settle()
        assert serving.script.seen == [0, 1, 2, 3]
        serving.script.answer(2)
        await settle()
        serving.script.answer(0)
        assert [await client.read_number() for _ in range(4)] == [0, 1, 2, 3]


async def test_requests_sent_together_are_all_answered() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.send(b"".join(request("echo", n) for n in range(5_000)))
        assert [await client.read_number() for _ in range(5_000)] == list(range(5_000))


async def test_the_first_answer_of_several_leaves_while_the_others_are_worked_on() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.send(request("echo", 0) + request("look", 1) + request("look", 2))
        answer_bytes = 4 + len(await client.read_frame())
        assert [await client.read_number() for _ in range(2)] == [1, 2]
        assert serving.script.sent_bytes == [answer_bytes, answer_bytes]


async def test_a_request_may_come_byte_by_byte() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        for at in range(len(data := request("echo", 5))):
            await client.send(data[at : at + 1])
            await trio.sleep(0.001)
        assert await client.read_number() == 5


async def test_a_request_without_an_answer_does_not_hold_up_the_next() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("silence", 1)
        await client.ask("echo", 2)
        assert await client.read_number() == 2


async def test_a_client_with_too_many_unanswered_requests_is_not_read() -> None:
    settings = attrs.evolve(SETTINGS, connection_requests_max=3)
    async with open_serving(settings) as serving:
        client = await serving.connect()
        for number in range(10):
            await client.ask("park", number)
        await settle()
        assert serving.script.seen == [0, 1, 2]
        serving.script.answer(0)
        await settle()
        assert serving.script.seen == [0, 1, 2, 3]
        assert await client.read_number() == 0


class Runs(FrameHandler):
    """Takes all requests that come together for one run."""

    def __init__(self) -> None:
        self.sizes = list[int]()
        self.parked = list[tuple[list[bytes], Pending[list[Part]]]]()

    def __call__(self, node: Node, request: Any, context: RequestContext) -> Any:  # Any: as there
        raise AssertionError("nothing has to be decoded")

    def answer(
        self, node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
    ) -> tuple[int, Pending[list[Part]]]:
        self.sizes.append(len(frames))
        numbers = [int.from_bytes(frame[4:8], "big") for frame in frames]
        answers = [
            codec.encode_response(HeartbeatResponse(throttle_time_ms=number), number)
            for number in numbers
        ]
        pending: Pending[list[Part]] = Pending()
        together = [part for parts in answers for part in parts if isinstance(part, bytes)]
        self.parked.append((together, pending))
        return len(frames), pending

    def decoded(
        self, frame: memoryview, request: Any, session: Session, codec: ApiCodec
    ) -> None:  # Any: as there
        raise AssertionError("nothing has to be decoded")


async def test_each_request_of_a_run_counts_among_the_unanswered() -> None:
    settings = attrs.evolve(SETTINGS, connection_requests_max=3)
    runs = Runs()

    def serve_runs(connections: Connections) -> None:
        connections.dispatcher._handlers = {HEARTBEAT: runs}

    async with open_serving(settings, wrap=serve_runs) as serving:
        client = await serving.connect()
        await client.send(b"".join(request("run", number) for number in range(7)))
        for size in (3, 3, 1):
            while not runs.parked:  # noqa: ASYNC110 # nobody is told
                await trio.sleep(0.001)
            ((answers, pending),) = runs.parked
            assert len(answers) == size
            runs.parked.clear()
            serving.connections.turn.run(partial(pending.complete, [b"".join(answers)]))
        assert [await client.read_number() for _ in range(7)] == list(range(7))
        assert runs.sizes == [3, 3, 1]
        assert serving.metrics.api(HEARTBEAT).requests.value == 7
        assert sum(serving.metrics.api(HEARTBEAT).latency.counts) == 7


async def test_a_slow_reader_stops_being_served_and_takes_no_memory() -> None:
    settings = attrs.evolve(
        SETTINGS, connection_response_max_bytes=10_000, socket_send_buffer_bytes=8_192
    )
    asked = 6_000
    async with open_serving(settings) as serving, trio.open_nursery() as nursery:
        slow = await serving.connect(receive_buffer_bytes=8_192)
        other = await serving.connect()
        nursery.start_soon(slow.send, b"".join(request("echo", n) for n in range(asked)))
        served = -1
        while served < len(serving.script.seen):
            served = len(serving.script.seen)
            await trio.sleep(0.1)
        assert 0 < served < asked
        await other.ask("echo", 1)
        assert await other.read_number() == 1
        assert [await slow.read_number() for _ in range(asked)] == list(range(asked))


async def test_what_a_client_waited_for_is_given_up_when_it_goes() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("park", 7)
        await settle()
        session = serving.script.session
        assert session is not None
        was_over = session.is_over
        await client.stream.aclose()
        await settle()
        assert (was_over, session.is_over) == (False, True)
        assert serving.script.abandoned == [7]
        assert serving.metrics.connections == 0
        serving.script.answer(7)


async def test_a_refusal_is_answered_with_its_code() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("refuse")
        assert await client.read_error() is ErrorCode.REBALANCE_IN_PROGRESS
        await client.ask("echo", 2)
        assert await client.read_number() == 2
        assert serving.metrics.api(HEARTBEAT).errors.value == 1


async def test_a_handler_that_fails_is_answered_and_nobody_else_notices() -> None:
    async with open_serving(SETTINGS) as serving:
        client, other = await serving.connect(), await serving.connect()
        await client.ask("bug")
        assert await client.read_error() is ErrorCode.UNKNOWN_SERVER_ERROR
        for each in (client, other):
            await each.ask("echo", 3)
            assert await each.read_number() == 3


async def test_who_wakes_a_request_does_not_hear_of_its_failure() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("park", 7)
        await client.ask("echo", 8)
        await settle()
        ((_, pending),) = serving.script.parked
        pending.try_complete(lambda: None)
        assert not pending.is_complete
        pending.try_complete(lambda: HeartbeatResponse(throttle_time_ms=1 // 0))
        assert await client.read_error() is ErrorCode.UNKNOWN_SERVER_ERROR
        assert await client.read_number() == 8


async def test_an_answer_that_cannot_be_encoded_ends_its_connection_and_no_other() -> None:
    async with open_serving(SETTINGS) as serving:
        client, other = await serving.connect(), await serving.connect()
        await client.ask("nonsense")
        assert await client.is_closed()
        await other.ask("echo", 3)
        assert await other.read_number() == 3


async def test_a_handler_that_waits_is_answered_in_its_turn_and_may_fail() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.send(encoded(ListGroupsRequest(), 3))
        await client.send(encoded(ListGroupsRequest(states_filter=["fail"]), 4))
        await client.ask("echo", 9)
        codes = []
        for version in (3, 4):
            answer = decode_response(APIS[16], version, await client.read_frame())[1]
            assert isinstance(answer, ListGroupsResponse)
            codes.append(answer.error_code)
        assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_SERVER_ERROR]
        assert await client.read_number() == 9


async def test_p3_a_request_that_cannot_be_answered_ends_its_connection_and_no_other() -> None:
    async with open_serving(SETTINGS) as serving:
        client, other = await serving.connect(), await serving.connect()
        await client.ask("hang up")
        assert await client.is_closed()
        await other.ask("echo", 4)
        assert await other.read_number() == 4


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (struct.pack(">i", -1), BadInput.FRAME_TOO_LARGE),
        (struct.pack(">i", 2**31 - 1), BadInput.FRAME_TOO_LARGE),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", BadInput.FRAME_TOO_LARGE),
        (b"GET / HTTP/1.1\r\n\r\n", BadInput.FRAME_TOO_LARGE),
        (struct.pack(">i", 3) + b"abc", BadInput.MALFORMED_MESSAGE),
        (struct.pack(">ihhih", 10, 999, 0, 1, -1), BadInput.UNSUPPORTED_VERSION),
        (struct.pack(">ihhih", 10, HEARTBEAT, 99, 1, -1), BadInput.UNSUPPORTED_VERSION),
        # Spoken by the protocol, and without a handler here.
        (struct.pack(">ihhih", 10, 0, 7, 1, -1), BadInput.UNSUPPORTED_VERSION),
        (request("echo")[:4] + b"\xff" * (len(request("echo")) - 4), BadInput.UNSUPPORTED_VERSION),
        (struct.pack(">ihhihh", 12, HEARTBEAT, 3, 1, -1, 20_000), BadInput.MALFORMED_MESSAGE),
    ],
    ids=[
        "negative length",
        "2 GiB",
        "TLS hello",
        "HTTP GET",
        "short frame",
        "unknown API",
        "version too new",
        "API not served",
        "garbage",
        "string beyond its frame",
    ],
)
async def test_a12_bad_bytes_end_the_connection_without_answer_and_are_counted(
    data: bytes, kind: BadInput
) -> None:
    async with open_serving(SETTINGS) as serving:
        other = await serving.connect()
        client = await serving.connect()
        await client.send(data)
        assert await client.is_closed()
        assert serving.metrics.bad_input[kind].value == 1
        assert serving.metrics.connections_closed[ConnectionEnd.BAD_INPUT].value == 1
        await other.ask("echo", 1)
        assert await other.read_number() == 1


async def test_a3_api_versions_that_is_too_new_is_answered_in_version_0_with_its_range() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.send(struct.pack(">ihhih", 13, API_VERSIONS_KEY, 77, 5, -1) + b"any")
        correlation_id, answer = decode_response(
            APIS[API_VERSIONS_KEY], 0, await client.read_frame()
        )
        assert correlation_id == 5
        assert isinstance(answer, ApiVersionsResponse)
        assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
        own = APIS[API_VERSIONS_KEY]
        assert [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys] == [
            (own.key, own.min_version, own.max_version)
        ]
        await client.ask("echo", 2)
        assert await client.read_number() == 2


async def test_a_listener_with_sasl_serves_nobody_who_has_not_proven_who_it_is() -> None:
    listeners = (Endpoint("SASL_PLAINTEXT", Address("127.0.0.1", 0)),)
    async with open_serving(attrs.evolve(SETTINGS, listeners=listeners)) as serving:
        client = await serving.connect()
        await client.send(struct.pack(">ihhih", 10, API_VERSIONS_KEY, 0, 1, -1))
        await client.read_frame()
        await client.ask("echo")
        assert await client.is_closed()
        assert serving.metrics.bad_input[BadInput.NOT_AUTHENTICATED].value == 1


async def test_an_idle_connection_is_closed_and_one_that_waits_for_us_is_not(
    autojump_clock: MockClock,
) -> None:
    settings = attrs.evolve(SETTINGS, connections_max_idle_ms=60_000)
    async with open_serving(settings) as serving:
        idle, waiting = await serving.connect(), await serving.connect()
        await waiting.ask("park", 1)
        for _ in range(100):
            await trio.sleep(1)
        assert await idle.is_closed()
        assert serving.metrics.connections_closed[ConnectionEnd.IDLE].value == 1
        serving.script.answer(1)
        assert await waiting.read_number() == 1


async def test_one_connection_too_many_is_closed_at_once() -> None:
    async with open_serving(attrs.evolve(SETTINGS, max_connections=1)) as serving:
        first, second = await serving.connect(), await serving.connect()
        assert await second.is_closed()
        await first.ask("echo", 1)
        assert await first.read_number() == 1
        assert serving.metrics.connections_closed[ConnectionEnd.TOO_MANY].value == 1


@pytest.fixture
def few_descriptors() -> Iterator[int]:
    """How many more descriptors this process may open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    yield in_use
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_without_descriptors_a_client_is_refused_and_the_others_are_served(
    few_descriptors: int,
) -> None:
    async with open_serving(SETTINGS) as serving:
        client, outsider = await serving.connect(), trio.socket.socket()
        await client.ask("echo", 0)
        assert await client.read_number() == 0
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        taken = list[int]()
        resource.setrlimit(resource.RLIMIT_NOFILE, (few_descriptors + 20, hard))
        try:
            with suppress(OSError):
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            await outsider.connect(serving.address)
            assert await outsider.recv(1) == b""
            await client.ask("echo", 1)
            assert await client.read_number() == 1
            assert serving.metrics.connections_closed[ConnectionEnd.TOO_MANY].value == 1
        finally:
            outsider.close()
            for descriptor in taken:
                os.close(descriptor)


async def test_who_holds_memory_and_sends_nothing_gives_way_to_who_needs_it(
    autojump_clock: MockClock,
) -> None:
    settings = attrs.evolve(
        SETTINGS, queued_max_request_bytes=400_000, socket_request_max_bytes=300_000
    )
    async with open_serving(settings) as serving:
        stalled, honest = await serving.connect(), await serving.connect()
        await stalled.send(struct.pack(">i", 290_000) + bytes(200_000))
        await trio.sleep(1)
        padding = b"x" * 30_000
        large = b"".join(request("echo " + padding.decode(), n) for n in range(3))
        whole = struct.pack(">i", 290_000) + bytes(290_000)
        await honest.send(large)
        assert [await honest.read_number() for _ in range(3)] == [0, 1, 2]
        await honest.send(whole)
        for _ in range(30):
            await trio.sleep(1)
        assert await stalled.is_closed()
        assert serving.metrics.connections_closed[ConnectionEnd.SLOW].value == 1
        # What the honest one sent is no request; that it was found out shows it was received.
        assert await honest.is_closed()
        assert serving.metrics.bad_input[BadInput.UNSUPPORTED_VERSION].value == 1


async def test_of_those_that_wait_for_memory_only_one_has_to_go(autojump_clock: MockClock) -> None:
    settings = attrs.evolve(
        SETTINGS, queued_max_request_bytes=400_000, socket_request_max_bytes=300_000
    )
    async with open_serving(settings) as serving:
        clients = [await serving.connect(), await serving.connect()]
        frame = struct.pack(">i", 290_000) + bytes(290_000)
        for client in clients:
            await client.send(frame[:200_000])
            await trio.sleep(1)
        for client in clients:
            await client.send(frame[200_000:])
        for _ in range(60):
            await trio.sleep(1)
        closed = serving.metrics.connections_closed
        assert closed[ConnectionEnd.SLOW].value == closed[ConnectionEnd.BAD_INPUT].value == 1


async def test_a_stopping_broker_answers_what_has_come_and_takes_no_more() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("park", 1)
        await settle()
        serving.connections.stop_accepting()
        serving.connections.stop_reading()
        await client.ask("echo", 2)
        await settle()
        assert serving.script.seen == [1]
        with trio.move_on_after(0.02) as waited:
            await serving.connections.wait_drained()
        assert waited.cancelled_caught
        serving.script.answer(1)
        with trio.fail_after(20):
            await serving.connections.wait_drained()
        assert await client.read_number() == 1
        with pytest.raises(ConnectionRefusedError):
            await serving.connect()


async def test_a_client_that_is_held_back_is_answered_at_once_and_not_read_until_then() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        began_at = trio.current_time()
        await client.send(request("hold back", 1) + request("echo", 2))
        assert await client.read_number() == 1
        await client.ask("echo", 3)
        assert serving.script.seen == [1]
        assert trio.current_time() - began_at < HOLD_BACK_SECONDS
        assert serving.metrics.quotas.held_back == 1
        assert [await client.read_number() for _ in range(2)] == [2, 3]
        assert trio.current_time() - began_at >= HOLD_BACK_SECONDS
        assert serving.metrics.quotas.held_back == 0


async def test_a_client_that_is_held_back_may_go() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.ask("hold back", 1)
        assert await client.read_number() == 1
        client.stream.socket.close()
        await settle()
        assert (len(serving.connections), serving.metrics.quotas.held_back) == (0, 0)


async def test_a_broker_that_stops_reads_nobody_who_was_held_back() -> None:
    async with open_serving(SETTINGS) as serving:
        client = await serving.connect()
        await client.send(request("hold back", 1) + request("echo", 2))
        assert await client.read_number() == 1
        serving.connections.stop_reading()
        await trio.sleep(2 * HOLD_BACK_SECONDS)
        assert serving.script.seen == [1]


async def test_what_changes_something_is_done_before_the_next_request_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dispatch, "_SEEN_BY_NEXT", frozenset({LIST_GROUPS}))
    async with open_serving(SETTINGS) as serving:
        serving.script.gate = trio.Event()
        client, other = await serving.connect(), await serving.connect()
        await client.send(encoded(ListGroupsRequest(), 3) + request("echo", 1))
        await client.ask("echo", 2)
        await other.ask("echo", 3)
        assert await other.read_number() == 3
        assert serving.script.seen == [3]
        serving.script.gate.set()
        decode_response(APIS[LIST_GROUPS], 3, await client.read_frame())
        assert [await client.read_number() for _ in range(2)] == [1, 2]
