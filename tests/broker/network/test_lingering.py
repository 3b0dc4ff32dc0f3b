"""When the loop goes on looking before it sleeps, and that nobody else waits for it."""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise

import pytest
import trio

from tidemark.broker.network.lingering import (
    LINGER_SECONDS,
    PAUSE_SECONDS,
    RARITY_MAX,
    SHORT_SECONDS,
    WAITS_TO_BEGIN,
    Lingering,
)
from tidemark.broker.network.reactor import READABLE, Reactor
from tidemark.broker.network.turn import Turn

_SHORT = SHORT_SECONDS / 2


class Loop:
    """A loop that finishes its work and waits, again and again."""

    def __init__(self) -> None:
        self.lingering, self.now = Lingering(), 1000.0

    def waits(self, seconds: float) -> bool:
        """Whether it lingers before requests come so much later."""
        until = self.lingering.begin(self.now)
        lingers = until > self.now
        self.now += seconds
        if self.now < until:
            self.lingering.paid()
        else:
            self.lingering.woken(self.now)
        return lingers


def test_a_loop_lingers_once_requests_have_come_at_short_intervals() -> None:
    loop = Loop()
    lingered = [loop.waits(LINGER_SECONDS / 2) for _ in range(WAITS_TO_BEGIN + 4)]
    assert lingered == [False] * WAITS_TO_BEGIN + [True] * 4


@pytest.mark.parametrize("interval_seconds", [1.01 * SHORT_SECONDS, 0.01, 10.0])
def test_a_loop_with_little_to_do_never_lingers(interval_seconds: float) -> None:
    loop = Loop()
    assert not any(loop.waits(interval_seconds) for _ in range(1000))


def test_what_a_request_sets_off_now_and_then_is_no_load() -> None:
    loop = Loop()
    requests = [[1.01 * PAUSE_SECONDS, *[LINGER_SECONDS / 2] * (WAITS_TO_BEGIN - 1)]] * 100
    assert not any(loop.waits(seconds) for request in requests for seconds in request)


def test_a_pause_ends_a_load() -> None:
    loop = Loop()
    for _ in range(WAITS_TO_BEGIN):
        loop.waits(_SHORT)
    assert loop.waits(1.01 * PAUSE_SECONDS)
    assert not any(loop.waits(_SHORT) for _ in range(WAITS_TO_BEGIN))
    assert loop.waits(_SHORT)


def test_lingering_in_vain_becomes_rare() -> None:
    loop = Loop()
    lingered = [number for number in range(1000) if loop.waits(_SHORT)]
    assert len(lingered) < 1000 // RARITY_MAX + 8
    assert 0 < max(b - a for a, b in pairwise(lingered)) <= RARITY_MAX + 1


def test_once_it_pays_again_it_is_done_each_time() -> None:
    loop = Loop()
    for _ in range(1000):
        loop.waits(_SHORT)
    while not loop.waits(LINGER_SECONDS / 2):
        pass
    assert all(loop.waits(LINGER_SECONDS / 2) for _ in range(10))


@contextmanager
def _echoed(ours: socket.socket) -> Iterator[None]:
    """Whoever is at the other end sends each byte back a moment later, from a thread, until it is
    hung up on."""

    def echo() -> None:
        with suppress(BrokenPipeError):  # hung up on while it had a byte
            while byte := ours.recv(1):
                time.sleep(1e-4)
                ours.sendall(byte)

    thread = threading.Thread(target=echo)
    thread.start()
    yield
    thread.join()


async def _echo(reactor: Reactor, count: int) -> tuple[int, int]:
    """Serve requests that come as soon as the one before is answered; how many these were, and how
    many turns another task had meanwhile."""
    here, there = socket.socketpair()
    here.setblocking(False)
    echoes = turns_of_others = 0

    def answer(_: int) -> None:
        nonlocal echoes
        echoes += 1
        here.sendall(here.recv(1))

    with here, there, _echoed(there):
        reactor.add(here.fileno(), READABLE, answer)
        here.sendall(b"x")
        async with trio.open_nursery() as tasks:
            tasks.start_soon(reactor.run)
            with trio.fail_after(30):
                while echoes < count:
                    await trio.lowlevel.checkpoint()
                    turns_of_others += 1
            tasks.cancel_scope.cancel()
        here.shutdown(socket.SHUT_RDWR)
    return echoes, turns_of_others


class Patient(Lingering):
    """It has the loop look for as long as it takes, and counts how often that was."""

    __slots__ = ("asked", "has_paid")

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.has_paid = 0

    def begin(self, now: float) -> float:
        self.asked += 1
        return now + 10

    def paid(self) -> None:
        self.has_paid += 1


async def test_other_tasks_have_their_turn_while_lingering_always_pays() -> None:
    reactor = Reactor(Turn())
    reactor._lingering = lingering = Patient()
    echoes, turns_of_others = await _echo(reactor, 500)
    assert lingering.has_paid > echoes // 2
    assert turns_of_others > echoes // 16


async def test_a_loop_that_a_thread_will_report_to_does_not_linger() -> None:
    reactor = Reactor(Turn())
    reactor._lingering = lingering = Patient()
    reactor.is_more_on_its_way = lambda: True
    await _echo(reactor, 200)
    assert not lingering.asked


async def test_an_idle_loop_sleeps() -> None:
    reactor = Reactor(Turn())
    async with trio.open_nursery() as tasks:
        tasks.start_soon(reactor.run)
        await trio.sleep(0.05)
        before = os.times()
        await trio.sleep(0.5)
        after = os.times()
        tasks.cancel_scope.cancel()
    assert after.user + after.system - before.user - before.system < 0.1
