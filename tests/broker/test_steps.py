"""How requests with much to do share a loop: with its sockets, and with one another."""

from itertools import pairwise

import trio
import trio.testing

from tests.broker.network.serving import SETTINGS, Client, Script, encoded, open_serving
from tidemark.broker.steps import Pace, Steps, pace_of_loop
from tidemark.protocol.messages.list_groups import ListGroupsRequest

MUCH = 1_000
COUNT = 100
REQUEST = encoded(ListGroupsRequest(), 3)


class Rounds:
    """How many requests are begun each time the loop comes round, and so looks at its sockets."""

    def __init__(self, script: Script) -> None:
        self.begun = list[int]()
        self._script = script

    async def go_on(self) -> None:
        before = len(self._script.listed)
        while True:
            await trio.lowlevel.checkpoint()
            self.begun.append(len(self._script.listed) - before)
            before += self.begun[-1]


async def _answers(client: Client, count: int) -> None:
    for _ in range(count):
        await client.read_frame()


async def test_the_sockets_are_looked_at_between_two_requests_with_much_to_do() -> None:
    async with open_serving(SETTINGS) as serving, trio.open_nursery() as nursery:
        serving.script.elements = 10 * MUCH
        clients = [await serving.connect() for _ in range(10)]
        rounds = Rounds(serving.script)
        nursery.start_soon(rounds.go_on)
        for client in clients:
            await client.send(REQUEST * 10)
        for client in clients:
            await _answers(client, 10)
        assert len(serving.script.listed) == COUNT
        assert max(rounds.begun) <= 2
        nursery.cancel_scope.cancel()


async def test_who_asks_for_a_hundred_things_waits_for_itself() -> None:
    begun = list[str]()

    async def ask(client: str) -> None:
        await pace.begin(client)
        begun.append(client)
        pace.did(MUCH)

    pace = Pace()
    pace.did(MUCH)
    async with trio.open_nursery() as nursery:
        for _ in range(COUNT):
            nursery.start_soon(ask, "greedy")
        await trio.lowlevel.checkpoint()
        for _ in range(3):
            nursery.start_soon(ask, "modest")
    places = [at for at, client in enumerate(begun) if client == "modest"]
    assert [next_at - at for at, next_at in pairwise(places)] == [2, 2]


async def test_what_is_begun_is_done_before_more_is_begun() -> None:
    open_at_once, most = 0, 0

    async def ask(client: int) -> None:
        nonlocal open_at_once, most
        await pace_of_loop().begin(client)
        open_at_once += 1
        most = max(most, open_at_once)
        steps = Steps()
        for _ in range(5):
            await steps.did(MUCH)
        open_at_once -= 1

    pace_of_loop().did(10 * MUCH)
    async with trio.open_nursery() as nursery:
        for client in range(COUNT):
            nursery.start_soon(ask, client)
    assert most <= 3


async def test_who_is_cancelled_while_it_waits_holds_nobody_up() -> None:
    pace = Pace()
    pace.did(10 * MUCH)
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pace.begin, 1)
            with trio.move_on_after(0) as given_up:
                await pace.begin(2)
            nursery.start_soon(pace.begin, 3)
    assert given_up.cancelled_caught


def test_a_loop_ends_though_many_wait() -> None:
    async def end_while_many_wait() -> None:
        pace = pace_of_loop()
        pace.did(10 * MUCH)
        async with trio.open_nursery() as nursery:
            for client in range(COUNT):
                nursery.start_soon(pace.begin, client)
                nursery.start_soon(pace.go_on)
            await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    trio.run(end_while_many_wait)


async def test_who_has_gone_is_told_nothing() -> None:
    async with open_serving(SETTINGS) as serving:
        serving.script.elements = 10 * MUCH
        gone, other = await serving.connect(), await serving.connect()
        await gone.send(REQUEST * 60)
        await gone.stream.aclose()
        await other.send(REQUEST)
        await _answers(other, 1)
        await trio.testing.wait_all_tasks_blocked(0.1)
        assert len(serving.script.listed) < 60
