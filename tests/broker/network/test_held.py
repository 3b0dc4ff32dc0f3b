"""Requests that are held: in the order of their coming, once each, for so long and no longer."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from socket import SO_LINGER, SOL_SOCKET
from struct import pack

import trio
from trio.testing import MockClock

from tests.broker.network.serving import HEARTBEAT, SETTINGS, open_serving, request, settle
from tidemark.broker.metrics.move_counts import MoveMetrics
from tidemark.broker.network.timers import Timers
from tidemark.broker.replicas.held import HeldRequests, Line


@dataclass(eq=False)
class Held:
    """A connection that notes what it is told."""

    name: str
    told: list[tuple[str, bool]]
    again: Line | None = field(default=None)

    def go_on(self, *, may_be_held: bool) -> None:
        self.told.append((self.name, may_be_held))
        if self.again is not None:
            self.again.join(self, 1)


@asynccontextmanager
async def open_line(seconds_max: float = 0.5) -> AsyncIterator[tuple[Line, MoveMetrics]]:
    timers = Timers()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(timers.run)
        held = HeldRequests(timers, seconds_max, MoveMetrics())
        yield Line(held), held.metrics
        nursery.cancel_scope.cancel()


async def test_those_who_wait_go_on_once_in_the_order_of_their_coming() -> None:
    told: list[tuple[str, bool]] = []
    async with open_line() as (line, held):
        for name in "abc":
            line.join(Held(name, told), 10)
        assert (len(line), held.held_requests, held.held_bytes) == (3, 3, 30)
        line.release()
        line.release()
        assert told == [("a", True), ("b", True), ("c", True)]
        assert (len(line), held.held_requests, held.held_bytes) == (0, 0, 0)


async def test_who_leaves_is_not_told(autojump_clock: MockClock) -> None:
    told: list[tuple[str, bool]] = []
    async with open_line() as (line, held):
        gone, stays = Held("gone", told), Held("stays", told)
        line.join(gone, 10)
        line.join(stays, 5)
        line.leave(gone)
        assert (held.held_requests, held.held_bytes) == (1, 5)
        line.release()
        assert told == [("stays", True)]
        line.join(gone, 10)
        line.leave(gone)
        await trio.sleep(1)
        assert told == [("stays", True)]


async def test_nobody_waits_longer_than_the_pause_may_last(autojump_clock: MockClock) -> None:
    told: list[tuple[str, bool]] = []
    async with open_line(0.5) as (line, held):
        line.join(Held("a", told), 1)
        await trio.sleep(0.4)
        line.join(Held("b", told), 1)
        await trio.sleep(0.05)
        assert told == []
        await trio.sleep(0.1)
        assert told == [("a", False), ("b", False)]
        line.join(Held("c", told), 1)
        await trio.sleep(0.4)
        assert held.held_requests == 1, "the next one has time of its own"


async def test_who_is_held_again_at_once_waits_in_another_line() -> None:
    told: list[tuple[str, bool]] = []
    async with open_line() as (line, held):
        line.join(Held("a", told, again=line), 1)
        line.release()
        assert (told, len(line), held.held_requests) == ([("a", True)], 1, 1)


async def test_a_held_request_and_what_follows_it_are_taken_in_order() -> None:
    async with open_line() as (line, held), open_serving(SETTINGS) as serving:
        serving.script.line = line
        client, other = await serving.connect(), await serving.connect()
        await client.send(request("echo", 1) + request("hold", 2) + request("echo", 3))
        await client.ask("echo", 4)
        await other.ask("echo", 9)
        assert await client.read_number() == 1
        assert await other.read_number() == 9
        await settle()
        assert serving.script.seen == [1, 9]
        assert held.held_requests == 1
        assert held.held_bytes == len(request("hold", 2)) - 4
        assert serving.metrics.api(HEARTBEAT).requests.value == 2, "counted once it is taken"
        serving.script.line = None
        line.release()
        assert [await client.read_number() for _ in range(3)] == [2, 3, 4]
        assert serving.script.seen == [1, 9, 2, 3, 4]
        assert serving.metrics.api(HEARTBEAT).requests.value == 5


async def test_a_request_that_has_waited_long_enough_is_taken_whatever_it_is() -> None:
    async with open_line(0.05) as (line, held), open_serving(SETTINGS) as serving:
        serving.script.line = line
        client = await serving.connect()
        await client.ask("hold", 1)
        assert await client.read_number() == 1
        await client.ask("hold", 2)
        await settle()
        assert held.held_requests == 1, "the next one is held again"
        assert await client.read_number() == 2


async def test_a_client_that_dies_takes_its_held_request_with_it() -> None:
    async with open_line() as (line, held), open_serving(SETTINGS) as serving:
        serving.script.line = line
        client = await serving.connect()
        await client.ask("hold", 1)
        await settle()
        assert held.held_requests == 1
        client.stream.socket.setsockopt(SOL_SOCKET, SO_LINGER, pack("ii", 1, 0))  # as a reset
        await client.stream.aclose()
        await settle()
        assert held.held_requests == 0
        line.release()
        await settle()
        assert serving.script.seen == []


async def test_what_a_client_sent_before_it_hung_up_is_taken() -> None:
    async with open_line() as (line, held), open_serving(SETTINGS) as serving:
        serving.script.line = line
        client = await serving.connect()
        await client.send(request("hold", 1) + request("silence", 2))
        await settle()
        await client.stream.aclose()  # as one that wants no answer, and has said all
        await settle()
        assert held.held_requests == 1
        serving.script.line = None
        line.release()
        await settle()
        assert serving.script.seen == [1, 2]
        assert serving.metrics.connections == 0


async def test_what_a_held_client_sends_meanwhile_stays_in_the_sockets() -> None:
    async with open_line(30) as (line, _), open_serving(SETTINGS) as serving:
        serving.script.line = line
        client = await serving.connect()
        await client.ask("hold", 0)
        await settle()
        received = serving.metrics.received_bytes.value
        await client.send(b"".join(request("echo", number) for number in range(1, 500)))
        await settle()
        assert serving.metrics.received_bytes.value == received
        serving.script.line = None
        line.release()
        assert [await client.read_number() for _ in range(500)] == list(range(500))
