"""Connections and dispatch, through real sockets, in front of scripted handlers (`serving`)."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import attrs
import pytest
import trio

from tests.broker.network.serving import (
    HEARTBEAT,
    LIST_GROUPS,
    SETTINGS,
    encoded,
    open_serving,
    request,
    settle,
)
from tidemark.broker.network import dispatch
from tidemark.broker.network.connections import Connections
from tidemark.broker.network.requests import FrameHandler, Pending, RequestContext, Session
from tidemark.broker.network.send_queue import Part
from tidemark.broker.node import Node
from tidemark.protocol.frames import ApiCodec, decode_response
from tidemark.protocol.messages.heartbeat import HeartbeatResponse
from tidemark.protocol.messages.list_groups import ListGroupsRequest
from tidemark.protocol.registry import APIS


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
