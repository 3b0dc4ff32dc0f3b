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

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import trio
from trio.testing import MockClock

from tidemark.protocol.errors import TidemarkError
from tidemark.testing import standing
from tidemark.testing.cluster_controls import ClusterControls, lone_errors_as_themselves
from tidemark.testing.forks import let_go_by_children, own_folder
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


class Cluster(ClusterControls):
    """The brokers of a test, by node id, counted from 1. Made by `open_cluster`; ends with it."""

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
    data_dir: Path | str | None = None,
    settings: Mapping[str, str] | None = None,
    racks: Sequence[str] = (),
) -> AsyncIterator[Cluster]:
    """Brokers that serve when the block begins and have stopped when it ends.

    Several of them know each other by then, and enough of them vote on the cluster's metadata that
    any one of three may go at once.

    Without `data_dir` the data goes to a temporary folder that is removed with the block.
    `settings` are the brokers', by name, as `docs/configuration.md` lists them; `racks` are where
    the first, second, ... of them are, if they are to have racks of their own. Raises
    `ConfigError`, `StorageError` or `OSError` as `tidemark serve` would, `ValueError` for settings
    that several brokers cannot share and for more racks than brokers, and `RuntimeError` outside of
    trio and under a mock clock.
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
    if brokers < 1:
        raise ValueError(f"a cluster has at least one broker, not {brokers}")
    if len(racks) > brokers:
        raise ValueError(f"{len(racks)} racks for {brokers} brokers")
    if brokers > 1:
        own = [name for name in _OF_ONE_BROKER if name in given]
        if own:
            raise ValueError(f"{', '.join(own)}: several brokers cannot share that")
    with own_folder() as folder, lone_errors_as_themselves():
        hosted = _hosted(brokers, Path(data_dir or folder / "data"), given, racks)
        with let_go_by_children(hosted.values()):
            async with trio.open_nursery() as nursery:
                cluster = Cluster(hosted, nursery)
                try:
                    await cluster._open()
                    yield cluster
                finally:
                    # Not cancelled with the block: the brokers answer, and sync what they have
                    # taken.
                    with trio.CancelScope(shield=True):
                        await cluster._end()


def _hosted(
    count: int, data_dir: Path, given: Mapping[str, str], racks: Sequence[str]
) -> dict[int, HostedBroker]:
    if count == 1:
        own_rack = {"broker.rack": racks[0]} if racks else {}
        return {1: HostedBroker(1, data_dir, {**TEST_SETTINGS, **given, **own_rack})}
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
