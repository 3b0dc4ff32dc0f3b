"""Real brokers inside the test process: the production code on real sockets, on free ports.

```python
async with open_cluster() as cluster:
    async with open_client(cluster.bootstrap) as client:
        ...
```

`open_cluster(brokers=3)` is three that have joined each other. They can be killed, stopped, started
again, paused, cut off from each other and given a slow disk; `docs/testing.md` shows it.

`testing.blocking` has the twin for code without trio, and pytest gets the fixture `tidemark`. For
`kill -9` and the like there is a broker in a process of its own, in `testing.process`.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import trio
from trio.testing import MockClock

from tidemark.broker.server import RunningBroker
from tidemark.protocol.errors import TidemarkError
from tidemark.protocol.types import NodeId
from tidemark.testing import standing
from tidemark.testing.hosted_broker import HostedBroker

TEST_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",  # a group forms at once
    "offsets.topic.num.partitions": "1",
}
"""What a broker under test has that differs from the defaults; `settings` goes over it. Where there
are several, topics get as many replicas as there are brokers, but no more than three."""

_OF_ONE_BROKER: Final = ("listeners", "http.listen", "peer.listen", "join", "node.id")
_REPLICAS_MAX: Final = 3
LOOK_SECONDS: Final = 0.005
_OPEN_SECONDS_MAX: Final = 30.0


class NotInTime(TidemarkError):
    """What a test waited for has not happened; says what, and how the cluster stood."""


class Cluster:
    """The brokers of a test, by node id, counted from 1. Made by `open_cluster`; ends with it."""

    def __init__(self, hosted: Mapping[int, HostedBroker], nursery: trio.Nursery) -> None:
        self._hosted = hosted
        self._nursery = nursery
        self._cuts: set[tuple[int, int]] = set()

    @property
    def nodes(self) -> tuple[int, ...]:
        """All brokers, running or not."""
        return tuple(self._hosted)

    @property
    def brokers(self) -> dict[int, RunningBroker]:
        """Those that run, for looking inside."""
        hosted = self._hosted.items()
        return {node: each.running for node, each in hosted if each.running is not None}

    @property
    def broker(self) -> RunningBroker:
        """The first that runs, for looking inside."""
        assert self.brokers, "none runs"
        return next(iter(self.brokers.values()))

    @property
    def bootstrap(self) -> str:
        """`host:port` of all, for a client's bootstrap setting; the same after a restart."""
        return ",".join(each.kafka for each in self._hosted.values())

    @property
    def http(self) -> str:
        """`host:port` of the first one's `/metrics`, `/healthz` and `/readyz`; it stays, too."""
        return self._hosted[1].http

    @property
    def data_dir(self) -> Path:
        """Of the first."""
        return self._hosted[1].data_dir

    def bootstrap_of(self, node: int) -> str:
        """`host:port` of one broker."""
        return self._hosted[node].kafka

    def data_dir_of(self, node: int) -> Path:
        return self._hosted[node].data_dir

    async def start(self, *nodes: int) -> None:
        """Start these, at once, on the same data and the same ports; without any, all that do not
        run."""
        with _lone_errors_as_themselves():
            await self._start_all(nodes)

    async def stop(self, *nodes: int) -> None:
        """Stop these, at once, as SIGTERM does: what is in flight is answered, everything is
        synced. Without any, all."""
        async with trio.open_nursery() as stopping:
            for node in nodes or self.nodes:
                stopping.start_soon(self._hosted[node].stop)

    async def kill(self, *nodes: int) -> None:
        """End these without any order; without any, all. They have ended when this returns.

        As with `kill -9`, their connections close, whoever waits is not answered, what was to be
        written is not, and the next start finds no clean end. What cannot be had in one process:
        to be killed in the middle of a write, whatever a thread of theirs is writing is finished;
        and to lose what was not synced, for which there is `testing.memory_files`.
        """
        async with trio.open_nursery() as killing:
            for node in nodes or self.nodes:
                killing.start_soon(self._hosted[node].kill)

    async def restart(self, *nodes: int) -> None:
        """`stop`, then `start`."""
        await self.stop(*nodes)
        await self.start(*nodes)

    def pause(self, *nodes: int) -> None:
        """Have these stand still until `resume`, as a machine that hangs does.

        Their sockets stay open, and take what the kernel takes; nobody is answered, and no time
        passes for them. The other brokers notice after `peer.failure.timeout.ms`.
        """
        for node in nodes:
            self._hosted[node].pause()

    def resume(self, *nodes: int) -> None:
        """Have these go on where they were, late; without any, all that are paused."""
        for node in nodes or self.nodes:
            self._hosted[node].resume()

    def cut(self, one: int, other: int) -> None:
        """Let nothing pass between two brokers, as behind a cut cable: nobody is told, they have to
        notice. It lasts until `heal`, also for one that is started again. Clients reach both."""
        if one == other:
            raise ValueError("a broker cannot be cut off from itself")
        for node in (one, other):
            assert node in self._hosted, f"there is no broker {node}"
        self._cuts.add((min(one, other), max(one, other)))
        self._apply_cuts()

    def isolate(self, node: int) -> None:
        """`cut` it off from all others. Its clients still reach it."""
        for other in self.nodes:
            if other != node:
                self.cut(node, other)

    def heal(self) -> None:
        """The end of all cuts. What was on its way is lost; the brokers connect anew."""
        cuts, self._cuts = self._cuts, set()
        for broker, other in self._ends(cuts):
            broker.peers.heal(other)

    def delay_disk(self, node: int, seconds: float) -> None:
        """Have each sync of a broker take so much longer, until it is told otherwise or killed."""
        self._hosted[node].delay_disk(seconds)

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """Who serves the partition, if anybody does.

        The brokers themselves are asked. One that was cut off may believe for a while that it still
        leads; then it is the one with the newest epoch.
        """
        return standing.leader_of(self.brokers, topic, partition)

    @property
    def controller(self) -> int | None:
        """Who leads the cluster's metadata, if anybody does; of several that think so, the newest.

        It takes changes of topics and the like, whichever broker a client gives them to.
        """
        return standing.controller(self.brokers)

    async def wait_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        other_than: int | None = None,
        timeout_seconds: float = 10,
    ) -> int:
        """Until somebody serves the partition, perhaps somebody else; who. Raises `NotInTime`."""
        other = "" if other_than is None else f"other than broker {other_than}"
        await self.wait_for(
            lambda: self.leader_of(topic, partition) not in (None, other_than),
            f"{topic}-{partition} has a leader {other}".rstrip(),
            timeout_seconds=timeout_seconds,
        )
        leader = self.leader_of(topic, partition)
        assert leader is not None
        return leader

    async def wait_caught_up(self, *, timeout_seconds: float = 10) -> None:
        """Until the replicas on all brokers that run hold what their leaders hold, and that is
        committed: of every topic, and of the metadata. Raises `NotInTime`."""
        try:
            await self.wait_for(
                lambda: not standing.behind(self.brokers),
                "all replicas on running brokers hold what their leaders hold",
                timeout_seconds=timeout_seconds,
            )
        except NotInTime as error:
            raise NotInTime(
                f"{error}; behind: {', '.join(standing.behind(self.brokers))}"
            ) from None

    async def wait_for(
        self, predicate: Callable[[], object], what: str, *, timeout_seconds: float = 10
    ) -> None:
        """Look again and again until it is so. Raises `NotInTime`, which says what was waited for.

        Nothing is left behind when it is cancelled.
        """
        with trio.move_on_after(timeout_seconds):
            while not predicate():  # noqa: ASYNC110 # nobody says when
                await trio.sleep(LOOK_SECONDS)
            return
        raise self.not_in_time(what, timeout_seconds)

    def not_in_time(self, what: str, timeout_seconds: float) -> NotInTime:
        """The error of who has waited in vain."""
        told = standing.described(self.brokers, self.nodes)
        return NotInTime(f"not within {timeout_seconds} s: {what}. {told}")

    async def _start_all(self, nodes: Collection[int]) -> None:
        async with trio.open_nursery() as starting:
            for node in nodes or self._hosted.keys() - self.brokers.keys():
                starting.start_soon(self._start, self._hosted[node])

    async def _start(self, hosted: HostedBroker) -> None:
        others = [each.peers for each in self._hosted.values() if each.running is not None]
        await self._nursery.start(hosted.run, others[0] if others else None)
        self._apply_cuts()

    def _apply_cuts(self) -> None:
        for broker, other in self._ends(self._cuts):
            broker.peers.cut(other)

    def _ends(self, cuts: Iterable[tuple[int, int]]) -> Iterator[tuple[RunningBroker, NodeId]]:
        """Each broker that runs at one end of a cut, with the one at the other end."""
        running = self.brokers
        for one, other in cuts:
            for node, opposite in ((one, other), (other, one)):
                if node in running:
                    yield running[node], NodeId(opposite)

    async def _open(self) -> None:
        # The first begins the cluster; the others can all be taken in at once.
        await self.start(1)
        if len(self.nodes) > 1:
            await self.start()
            await self.wait_for(
                lambda: standing.is_complete(self.brokers, self.nodes),
                "the brokers know each other, and enough of them vote on the metadata",
                timeout_seconds=_OPEN_SECONDS_MAX,
            )

    async def _end(self) -> None:
        self.heal()
        self.resume()
        for each in self._hosted.values():
            each.delay_disk(0)
        await self.stop()


@asynccontextmanager
async def open_cluster(
    *,
    brokers: int = 1,
    data_dir: Path | None = None,
    settings: Mapping[str, str] | None = None,
    racks: Sequence[str] = (),
) -> AsyncIterator[Cluster]:
    """Brokers that serve when the block begins and have stopped when it ends.

    Several of them know each other by then, and enough of them vote on the cluster's metadata that
    any one of three may go at once.

    Without `data_dir` the data goes to a temporary folder that is removed with the block.
    `settings` are the brokers', by name, as `docs/configuration.md` lists them; `racks` are where
    the first, second, ... of them are, if they are to have racks of their own. Raises
    `ConfigError`, `StorageError` or `OSError` as `tidemark serve` would, and `ValueError` for
    settings that several brokers cannot share, and `RuntimeError` outside of trio and under a mock
    clock.
    """
    if not trio.lowlevel.in_trio_task():
        raise RuntimeError(
            "open_cluster runs under trio: use open_blocking_cluster, or pytest's fixture tidemark"
        )
    if isinstance(trio.lowlevel.current_clock(), MockClock):
        raise RuntimeError(
            "open_cluster needs real time: sockets and disks know nothing of a mock clock; do "
            "without autojump_clock"
        )
    given = settings or {}
    if brokers > 1:
        own = [name for name in _OF_ONE_BROKER if name in given]
        if own:
            raise ValueError(f"{', '.join(own)}: several brokers cannot share that")
    with TemporaryDirectory(prefix="tidemark-") as folder, _lone_errors_as_themselves():
        hosted = _hosted(brokers, data_dir or Path(folder) / "data", given, racks)
        async with trio.open_nursery() as nursery:
            cluster = Cluster(hosted, nursery)
            try:
                await cluster._open()
                yield cluster
            finally:
                # Not cancelled with the block: the brokers answer and sync what they have taken.
                with trio.CancelScope(shield=True):
                    await cluster._end()


def _hosted(
    count: int, data_dir: Path, given: Mapping[str, str], racks: Sequence[str]
) -> dict[int, HostedBroker]:
    if count == 1:
        return {1: HostedBroker(1, data_dir, {**TEST_SETTINGS, **given})}
    data_dir.mkdir(parents=True, exist_ok=True)
    same = {
        **TEST_SETTINGS,
        "default.replication.factor": str(min(count, _REPLICAS_MAX)),
        **given,
    }
    own = {node: {"node.id": str(node)} for node in range(1, count + 1)}
    for node, rack in enumerate(racks, start=1):
        own[node]["broker.rack"] = rack
    return {
        node: HostedBroker(node, data_dir / f"broker-{node}", {**same, **settings})
        for node, settings in own.items()
    }


@contextmanager
def _lone_errors_as_themselves() -> Iterator[None]:
    """Spare a test the exception groups of our tasks where there is one error to speak of."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None
