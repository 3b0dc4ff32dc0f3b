"""What a test does to its brokers: ends and starts them, holds them up, cuts the cables between."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import trio

from tidemark.broker.server import RunningBroker
from tidemark.protocol.types import NodeId
from tidemark.testing.hosted_broker import HostedBroker


class ClusterControls:
    """The half of a `Cluster` that acts; the other one looks."""

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
        return self._of(node).kafka

    def data_dir_of(self, node: int) -> Path:
        return self._of(node).data_dir

    async def start(self, *nodes: int) -> None:
        """Start these, at once, on the same data and the same ports; without any, all that do not
        run."""
        with lone_errors_as_themselves():
            await self._start_all(nodes)

    async def stop(self, *nodes: int) -> None:
        """Stop these, at once, as SIGTERM does: what is in flight is answered, everything is
        synced. Without any, all."""
        stopped = self._these(nodes)
        async with trio.open_nursery() as stopping:
            for each in stopped:
                stopping.start_soon(each.stop)

    async def kill(self, *nodes: int) -> None:
        """End these without any order; without any, all. They have ended when this returns.

        As with `kill -9`, their connections close, whoever waits is not answered, what was to be
        written is not, and the next start finds no clean end. What cannot be had in one process:
        to be killed in the middle of a write, whatever a thread of theirs is writing is finished;
        and to lose what was not synced, for which there is `testing.memory_files`.
        """
        killed = self._these(nodes)
        async with trio.open_nursery() as killing:
            for each in killed:
                killing.start_soon(each.kill)

    async def restart(self, *nodes: int) -> None:
        """`stop`, then `start`."""
        await self.stop(*nodes)
        await self.start(*nodes)

    def pause(self, *nodes: int) -> None:
        """Have these stand still until `resume`, as a machine that hangs does.

        Their sockets stay open, and take what the kernel takes; nobody is answered, and no time
        passes for them. The other brokers notice after `peer.failure.timeout.ms`.
        """
        for each in [self._of(node) for node in nodes]:
            each.pause()

    def resume(self, *nodes: int) -> None:
        """Have these go on where they were, late; without any, all that are paused."""
        for each in self._these(nodes):
            each.resume()

    def cut(self, one: int, other: int) -> None:
        """Let nothing pass between two brokers, as behind a cut cable: nobody is told, they have to
        notice. It lasts until `heal`, also for one that is started again. Clients reach both."""
        if one == other:
            raise ValueError("a broker cannot be cut off from itself")
        self._these((one, other))
        self._cuts.add((min(one, other), max(one, other)))
        self._apply_cuts()

    def isolate(self, node: int) -> None:
        """`cut` it off from all others. Its clients still reach it."""
        self._of(node)
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
        self._of(node).delay_disk(seconds)

    def _of(self, node: int) -> HostedBroker:
        hosted = self._hosted.get(node)
        if hosted is None:
            there = ", ".join(map(str, self.nodes))
            raise ValueError(f"there is no broker {node}; of this cluster are: {there}")
        return hosted

    def _these(self, nodes: Collection[int]) -> list[HostedBroker]:
        """Without any, all."""
        return [self._of(node) for node in nodes or self.nodes]

    async def _start_all(self, nodes: Collection[int]) -> None:
        missing = self._hosted.keys() - self.brokers.keys()
        started = [self._of(node) for node in nodes or missing]
        async with trio.open_nursery() as starting:
            for each in started:
                starting.start_soon(self._start, each)

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


@contextmanager
def lone_errors_as_themselves() -> Iterator[None]:
    """Spare a test the exception groups of our tasks where there is one error to speak of."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from None
