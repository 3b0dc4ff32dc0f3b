"""The sockets do not keep the other tasks waiting, and none of them keeps the others waiting."""

import math
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import trio

from tidemark.broker.network import reactor as module
from tidemark.broker.network.reactor import READABLE, Reactor
from tidemark.broker.network.turn import Turn

SOCKETS = 40
SECONDS_EACH = 0.06
"""What one request takes."""
AT_ONCE_MAX = 2
"""So many of these there are until the time for the sockets is over, 0.1 s."""


class Busy:
    """Sockets that are always readable; to serve one takes time, which only this clock counts."""

    def __init__(self, reactor: Reactor) -> None:
        self.now = 1000.0
        self.served: list[int] = []
        self._reactor = reactor

    @contextmanager
    def sockets(self, count: int) -> Iterator[None]:
        pairs = [socket.socketpair() for _ in range(count)]
        for number, (ours, theirs) in enumerate(pairs):
            theirs.send(b"x")
            self._reactor.add(ours.fileno(), READABLE, partial(self._serve, number))
        yield
        for ours, theirs in pairs:
            self._reactor.remove(ours.fileno())
            ours.close()
            theirs.close()

    def _serve(self, number: int, events: int) -> None:
        del events
        self.served.append(number)
        self.now += SECONDS_EACH


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Busy]:
    busy = Busy(Reactor(Turn()))
    monkeypatch.setattr(module, "perf_counter", lambda: busy.now)
    with busy.sockets(SOCKETS):
        yield busy


async def served_between_turns_of_others(busy: Busy, turns: int) -> list[int]:
    counts = []
    async with trio.open_nursery() as nursery:
        nursery.start_soon(busy._reactor.run)
        for _ in range(turns):
            before = len(busy.served)
            await trio.lowlevel.checkpoint()
            counts.append(len(busy.served) - before)
        nursery.cancel_scope.cancel()
    return counts


async def test_other_tasks_have_their_turn_after_a_few_requests_that_take_long(busy: Busy) -> None:
    counts = await served_between_turns_of_others(busy, 30)
    # trio takes tasks in any order: the sockets' may be last in one round and first in the next.
    assert 0 < max(counts) <= 2 * AT_ONCE_MAX


async def test_who_was_left_when_time_was_up_comes_first_the_next_time(busy: Busy) -> None:
    await served_between_turns_of_others(busy, 60)
    served = Counter(busy.served)
    assert set(served) == set(range(SOCKETS))
    assert max(served.values()) - min(served.values()) <= 1


async def test_a_turn_that_has_brought_much_for_others_is_over_after_one_look() -> None:
    """The disk begins with it, and not once the next requests are worked on."""
    turn, looks = Turn(), list[int]()
    reactor = Reactor(turn)
    reactor._until = math.inf

    def serve(events: int) -> None:
        del events
        looks[-1] += 1

    def begin_turn() -> None:
        looks.append(0)
        reactor._serve()

    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        reactor.add(ours.fileno(), READABLE, serve)
        turn.run(begin_turn)
        reactor.is_much = lambda: True
        turn.run(begin_turn)
        reactor.remove(ours.fileno())
    reactor.close()
    assert looks == [2, 1]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is, to be changed."""
    now = [1000.0]
    monkeypatch.setattr(module, "perf_counter", lambda: now[0])
    return now


@pytest.mark.parametrize("others", [0, 1, 9])
def test_who_is_served_beside_others_is_not_the_only_one(clock: list[float], others: int) -> None:
    reactor, said = Reactor(Turn()), list[bool]()
    reactor._until = math.inf
    pairs = [socket.socketpair() for _ in range(1 + others)]

    def serve(turns: int) -> None:
        for _ in range(turns):
            clock[0] += 0.004
            reactor._looked_at = clock[0]
            reactor._serve()

    for number, (ours, theirs) in enumerate(pairs):
        theirs.send(b"x")
        reactor.add(ours.fileno(), READABLE, lambda events: said.append(reactor.serves_one()))
        if not number:
            serve(5)
            # In two looks a turn; for all that is known, there was somebody else before.
            assert said == [False] * 6 + [True] * 4
            said.clear()
    serve(20)
    assert any(said[2:]) == (others == 0)
    for ours, theirs in pairs:
        reactor.remove(ours.fileno())
        ours.close()
        theirs.close()
    reactor.close()


async def test_a_loop_that_sleeps_is_woken_by_what_a_thread_tells() -> None:
    turn, heard = Turn(), trio.Event()
    reactor = Reactor(turn)
    async with trio.open_nursery() as tasks:
        tasks.start_soon(reactor.run)
        await trio.testing.wait_all_tasks_blocked()
        thread = threading.Thread(target=turn.tell, args=(heard.set,))
        thread.start()
        with trio.fail_after(20):
            await heard.wait()
        thread.join()
        tasks.cancel_scope.cancel()
    reactor.close()


async def test_what_is_told_while_others_are_served_is_heard_though_no_more_comes() -> None:
    """A loop that is awake is not woken: it looks before it falls asleep."""
    turn, heard = Turn(), trio.Event()
    reactor = Reactor(turn)
    ours, theirs = socket.socketpair()

    def serve(events: int) -> None:
        ours.recv(1)
        assert not reactor._bell.is_asleep
        turn.tell(heard.set)

    with ours, theirs:
        reactor.add(ours.fileno(), READABLE, serve)
        async with trio.open_nursery() as tasks:
            tasks.start_soon(reactor.run)
            await trio.testing.wait_all_tasks_blocked()
            theirs.send(b"x")
            with trio.fail_after(20):
                await heard.wait()
            tasks.cancel_scope.cancel()
        reactor.remove(ours.fileno())
    reactor.close()


async def test_what_is_told_just_before_the_loop_sleeps_wakes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is told behind the loop's last look, and before it waits: nobody else would wake it."""
    turn, heard = Turn(), trio.Event()
    reactor = Reactor(turn)
    wait_readable = trio.lowlevel.wait_readable

    async def tell_and_wait(descriptor: int) -> None:
        if not heard.is_set():
            turn.tell(heard.set)
        await wait_readable(descriptor)

    monkeypatch.setattr(trio.lowlevel, "wait_readable", tell_and_wait)
    async with trio.open_nursery() as tasks:
        tasks.start_soon(reactor.run)
        with trio.fail_after(20):
            await heard.wait()
        tasks.cancel_scope.cancel()
    reactor.close()


def test_who_is_served_is_the_only_one_though_threads_have_told_something(
    clock: list[float],
) -> None:
    reactor, said = Reactor(Turn()), list[bool]()
    reactor._until = math.inf
    reactor._bell.is_asleep = True
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"x")
        reactor.add(ours.fileno(), READABLE, lambda events: said.append(reactor.serves_one()))
        for _ in range(20):
            clock[0] += 0.004
            reactor._looked_at = clock[0]
            reactor._bell.ring()
            reactor._serve()
        reactor.remove(ours.fileno())
    reactor.close()
    assert said[-20:] == [True] * 20


async def test_a_turn_without_an_end_keeps_nobody_from_being_served() -> None:
    turn = Turn()
    reactor, served = Reactor(turn), trio.Event()

    def again() -> None:
        turn.after(again)

    ours, theirs = socket.socketpair()
    with ours, theirs:
        reactor.add(ours.fileno(), READABLE, lambda events: served.set())
        async with trio.open_nursery() as tasks:
            tasks.start_soon(reactor.run)
            await trio.testing.wait_all_tasks_blocked()
            turn.run(again)
            theirs.send(b"x")
            with trio.fail_after(20):
                await served.wait()
            tasks.cancel_scope.cancel()


async def test_what_a_turn_has_left_is_done_though_nobody_is_ready() -> None:
    turn, rounds, done = Turn(), 0, trio.Event()
    reactor = Reactor(turn)

    def again() -> None:
        nonlocal rounds
        rounds += 1
        turn.after(again) if rounds < 15_000 else done.set()

    ours, theirs = socket.socketpair()

    def begin(events: int) -> None:
        ours.recv(1)
        turn.after(again)

    with ours, theirs:
        reactor.add(ours.fileno(), READABLE, begin)
        theirs.send(b"x")
        async with trio.open_nursery() as tasks:
            tasks.start_soon(reactor.run)
            with trio.fail_after(20):
                await done.wait()
            tasks.cancel_scope.cancel()
