"""Real brokers inside the test process: the production code on real sockets, on free ports.

```python
async with open_cluster() as cluster:
    async with open_client(cluster.bootstrap) as client:
        ...
```

`open_cluster(brokers=3)` is three that have joined each other.

`testing.blocking` has the twin for code without trio, and pytest gets the fixture `tidemark`. For
`kill -9` and the like there is a broker in a process of its own, in `testing.process`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import trio

from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.server import RunningBroker
from tidemark.partitions.state_machines.cluster_brokers import voter_count
from tidemark.protocol.errors import TidemarkError
from tidemark.testing.hosted_broker import HostedBroker

TEST_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",  # a group forms at once
    "offsets.topic.num.partitions": "1",
}
"""What a broker under test has that differs from the defaults; `settings` goes over it. Where there
are several, topics get as many replicas as there are brokers, but no more than three."""

_OF_ONE_BROKER: Final = ("listeners", "http.listen", "peer.listen", "join", "node.id")
_REPLICAS_MAX: Final = 3
_LOOK_SECONDS: Final = 0.005
_OPEN_SECONDS_MAX: Final = 30.0


class NotInTime(TidemarkError):
    """What a test waited for has not happened; says what, and how the cluster stood."""


class Cluster:
    """The brokers of a test, by node id, counted from 1. Made by `open_cluster`; ends with it."""

    def __init__(self, hosted: Mapping[int, HostedBroker], nursery: trio.Nursery) -> None:
        self._hosted = hosted
        self._nursery = nursery

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
        async with trio.open_nursery() as starting:
            for node in nodes or self._hosted.keys() - self.brokers.keys():
                starting.start_soon(self._start, self._hosted[node])

    async def stop(self, *nodes: int) -> None:
        """Stop these, at once, as SIGTERM does: what is in flight is answered, everything is
        synced. Without any, all."""
        async with trio.open_nursery() as stopping:
            for node in nodes or self.nodes:
                stopping.start_soon(self._hosted[node].stop)

    async def restart(self, *nodes: int) -> None:
        """`stop`, then `start`."""
        await self.stop(*nodes)
        await self.start(*nodes)

    async def wait_for(
        self, predicate: Callable[[], object], what: str, *, timeout_seconds: float = 10
    ) -> None:
        """Look again and again until it is so. Raises `NotInTime`, which says what was waited for.

        Nothing is left behind when it is cancelled.
        """
        with trio.move_on_after(timeout_seconds):
            while not predicate():  # noqa: ASYNC110 # nobody says when
                await trio.sleep(_LOOK_SECONDS)
            return
        raise NotInTime(f"not within {timeout_seconds} s: {what}. {self._standing()}")

    async def _start(self, hosted: HostedBroker) -> None:
        others = [each.peers for each in self._hosted.values() if each.running is not None]
        await self._nursery.start(hosted.run, others[0] if others else None)

    async def _open(self) -> None:
        # The first begins the cluster; the others can all be taken in at once.
        await self.start(1)
        if len(self.nodes) > 1:
            await self.start()
            await self.wait_for(
                self._is_complete,
                "the brokers know each other, and enough of them vote on the metadata",
                timeout_seconds=_OPEN_SECONDS_MAX,
            )

    def _is_complete(self) -> bool:
        """Whether all know all, and any of them may go."""
        running = self.brokers.values()
        if not all(_knows_all(broker, self.nodes) for broker in running):
            return False
        leaders = (broker.node.brokers.quorum(CLUSTER_KEY) for broker in running)
        quorum = next((each for each in leaders if each is not None), None)
        return quorum is not None and (
            len(quorum.voters) == voter_count(len(self.nodes))
            and all(each.is_caught_up for each in (*quorum.voters, *quorum.learners))
        )

    def _standing(self) -> str:
        """For a person who has waited in vain."""
        running = self.brokers
        said = [
            f"broker {node}: controller {broker.node.brokers.controller}, "
            f"connected to {sorted(broker.peers.up)}"
            for node, broker in running.items()
        ]
        gone = [f"broker {node}: does not run" for node in self.nodes if node not in running]
        return "; ".join([*said, *gone])


def _knows_all(broker: RunningBroker, nodes: Collection[int]) -> bool:
    known = broker.node.brokers
    return (
        set(known.registered) == set(nodes)
        and all(map(known.is_alive, known.registered))
        and known.controller is not None
    )


@asynccontextmanager
async def open_cluster(
    *,
    brokers: int = 1,
    data_dir: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Cluster]:
    """Brokers that serve when the block begins and have stopped when it ends.

    Several of them know each other by then, and enough of them vote on the cluster's metadata that
    any one of three may go at once.

    Without `data_dir` the data goes to a temporary folder that is removed with the block.
    `settings` are the brokers', by name, as `docs/configuration.md` lists them. Raises
    `ConfigError`, `StorageError` or `OSError` as `tidemark serve` would, and `ValueError` for
    settings that several brokers cannot share.
    """
    given = settings or {}
    if brokers > 1:
        own = [name for name in _OF_ONE_BROKER if name in given]
        if own:
            raise ValueError(f"{', '.join(own)}: several brokers cannot share that")
    with TemporaryDirectory(prefix="tidemark-") as folder, _lone_errors_as_themselves():
        hosted = _hosted(brokers, data_dir or Path(folder) / "data", given)
        async with trio.open_nursery() as nursery:
            cluster = Cluster(hosted, nursery)
            try:
                await cluster._open()
                yield cluster
            finally:
                # Not cancelled with the block: the brokers answer and sync what they have taken.
                with trio.CancelScope(shield=True):
                    await cluster.stop()


def _hosted(count: int, data_dir: Path, given: Mapping[str, str]) -> dict[int, HostedBroker]:
    if count == 1:
        return {1: HostedBroker(1, data_dir, {**TEST_SETTINGS, **given})}
    data_dir.mkdir(parents=True, exist_ok=True)
    same = {
        **TEST_SETTINGS,
        "default.replication.factor": str(min(count, _REPLICAS_MAX)),
        **given,
    }
    return {
        node: HostedBroker(node, data_dir / f"broker-{node}", {**same, "node.id": str(node)})
        for node in range(1, count + 1)
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
