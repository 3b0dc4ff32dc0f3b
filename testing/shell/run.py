"""One seed's run, and what came of it."""

from __future__ import annotations

import gc
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from traceback import format_exception
from typing import Final

import trio
from trio.testing import MockClock

from tidemark.testing.checkers import History, Outcome
from tidemark.testing.shell.cables import Cable
from tidemark.testing.shell.clients import Clients
from tidemark.testing.shell.disks import Disk
from tidemark.testing.shell.harm import harm
from tidemark.testing.shell.hosted import ShellBroker
from tidemark.testing.shell.judging import judge
from tidemark.testing.shell.members import SETTINGS, Members
from tidemark.testing.shell.remade import Remade
from tidemark.testing.shell.seams import seeded

SECONDS: Final = 10.0
"""For so long faults come, in virtual time."""
_END_SECONDS_MAX: Final = 60.0
"""Clients end, and everything can be read, so long after the last fault."""
_LATENCIES: Final = (0.0, 0.001, 0.01)
_SETTINGS: Final = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    **SETTINGS,
}


@dataclass(slots=True)
class Verdict:
    """What a run has come to."""

    seed: int
    found: list[str] = field(default_factory=list)
    """What is wrong; nothing, if every promise was kept."""
    faults: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    """Records that were acknowledged."""
    read: int = 0
    """Records, each time that somebody got one."""
    transactions: Counter[str] = field(default_factory=Counter)
    """How many came to which end."""
    commits: int = 0
    """Those that were acknowledged to members, without a transaction."""
    remade: int = 0
    """How often a topic was made anew, and written to."""
    seconds: float = 0.0
    """In virtual time."""
    lines: list[str] = field(default_factory=list)
    """When each piece of bytes arrived, and what was done, in order."""

    @property
    def digest(self) -> str:
        """Of all that: the same each time that a seed is run, by the same code."""
        return sha256("\n".join(self.lines).encode()).hexdigest()[:16]


class _Errors(logging.Handler):
    """A broker that logs an error has met something that it was not made for."""

    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._found = found

    def emit(self, record: logging.LogRecord) -> None:
        self._found.append(f"an error was logged: {record.getMessage()}")


class _Run:
    def __init__(self, verdict: Verdict, rng: Random, directory: Path) -> None:
        self.verdict = verdict
        self.brokers: list[ShellBroker] = []
        self._rng = rng
        self._directory = directory

    def note(self, what: str) -> None:
        self.verdict.lines.append(f"{trio.current_time():.6f} {what}")

    def drawn(self) -> Random:
        return Random(self._rng.getrandbits(64))

    async def run(self) -> None:
        count = self._rng.choice((1, 3))
        async with trio.open_nursery() as nursery:
            for node in range(1, count + 1):
                self.brokers.append(await self._broker(node, count, nursery))
            first = self.brokers[0]
            for broker in self.brokers:
                join = None if broker is first else first.peers.address
                await nursery.start(broker.run, join)
            await self._work(nursery)
            for broker in self.brokers:
                await broker.stop()
            nursery.cancel_scope.cancel()
        self.verdict.seconds = trio.current_time()

    async def _broker(self, node: int, count: int, nursery: trio.Nursery) -> ShellBroker:
        latency = self._rng.choice(_LATENCIES)
        clients, peers = (
            Cable(f"{kind} {node}", self.drawn(), self.note, latency=latency)
            for kind in ("clients", "peers")
        )
        await nursery.start(clients.run)
        await nursery.start(peers.run)
        settings = {
            **_SETTINGS,
            "default.replication.factor": str(count),
            "min.insync.replicas": str(count // 2 + 1),
        }
        path = self._directory / str(node)
        path.mkdir()
        return ShellBroker(node, Disk(path, self.drawn()), settings, clients, peers)

    async def _work(self, nursery: trio.Nursery) -> None:
        bootstrap = ",".join(broker.clients.address for broker in self.brokers)
        clients = Clients(bootstrap, self.note)
        members, remade = Members(clients, self.drawn()), Remade(clients)
        final = History()
        with self._at_most("no topics could be made"):
            await clients.make_topics()
        async with trio.open_nursery() as grouping:
            grouping.start_soon(members.look_on)
            for own, other in ((1, 2), (2, 1)):
                grouping.start_soon(members.read, self.drawn())
                grouping.start_soon(members.copy, f"copier-{own}", f"copier-{other}", self.drawn())
            await self._load(clients, remade, nursery)
            with self._at_most("the ends of what there is were not told"):
                await members.note_ends()
            grouping.cancel_scope.deadline = trio.current_time() + _END_SECONDS_MAX
        self._note_late("groups did not come to the end", grouping.cancel_scope)
        with self._at_most("what there is could not be read"):
            final = await clients.read_all()
            self.verdict.found += await remade.missing()
        self.verdict.found += [str(each) for each in judge(clients.history, final, members)]
        self._count(clients.history, members)
        self.verdict.remade = len(remade.stored)

    async def _load(self, clients: Clients, remade: Remade, nursery: trio.Nursery) -> None:
        """Clients come and go, and so do brokers."""
        async with trio.open_nursery() as working:
            for _ in range(2):
                working.start_soon(clients.produce, self.drawn())
            for topic in clients.isolation:
                working.start_soon(clients.consume, topic, self.drawn())
            working.start_soon(remade.remake, self.drawn())
            addresses = [
                cable.address for each in self.brokers for cable in (each.clients, each.peers)
            ]
            working.start_soon(clients.babble, addresses, self.drawn())
            self.verdict.faults = await harm(
                self.brokers, nursery, self.drawn(), self.note, seconds=SECONDS
            )
            clients.is_over = True
            working.cancel_scope.deadline = trio.current_time() + _END_SECONDS_MAX
        self._note_late("clients did not come to an end", working.cancel_scope)

    @contextmanager
    def _at_most(self, what: str) -> Iterator[None]:
        with trio.move_on_after(_END_SECONDS_MAX) as scope:
            yield
        self._note_late(what, scope)

    def _note_late(self, what: str, scope: trio.CancelScope) -> None:
        if scope.cancelled_caught:
            self.verdict.found.append(f"{what} within {_END_SECONDS_MAX} s")

    def _count(self, history: History, members: Members) -> None:
        self.verdict.sent = sum(send.outcome is Outcome.OK for send in history.sends)
        self.verdict.read = sum(len(poll.records) for poll in history.polls)
        self.verdict.transactions = Counter(each.outcome.value for each in members.transactions)
        self.verdict.commits = len(members.commits)


def run(seed: int) -> Verdict:
    """Run the seed. Nothing else may run in this process meanwhile."""
    verdict, rng, clock = Verdict(seed), Random(seed), MockClock(autojump_threshold=0)
    with (
        _nothing_left_open(verdict.found),
        _no_errors_logged(verdict.found),
        TemporaryDirectory(prefix="tidemark-shell-", dir=_memory()) as directory,
    ):
        try:
            with seeded(rng, clock):
                trio.run(_Run(verdict, rng, Path(directory)).run, clock=clock)
        except* Exception as errors:
            verdict.found.append("".join(format_exception(errors)))
    return verdict


@contextmanager
def _no_errors_logged(found: list[str]) -> Iterator[None]:
    logger, errors = logging.getLogger("tidemark"), _Errors(found)
    logger.addHandler(errors)
    try:
        yield
    finally:
        logger.removeHandler(errors)


@contextmanager
def _nothing_left_open(found: list[str]) -> Iterator[None]:
    before = _descriptors()
    yield
    gc.collect()
    if left := _descriptors() - before:
        found.append(f"{left} descriptors were left open")


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _memory() -> str | None:
    """Where syncs cost nothing: what a loss of power leaves is known elsewhere (`disks.py`)."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
