"""A real broker inside the test process: the production code on real sockets, on free ports.

```python
async with open_cluster() as cluster:
    async with open_client(cluster.bootstrap) as client:
        ...
```

`testing.blocking` has the twin for code without trio, and pytest gets the fixture `tidemark`. For
`kill -9` and the like there is a broker in a process of its own, in `testing.process`.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from tidemark.broker.config import load_settings
from tidemark.broker.server import RunningBroker, open_broker

TEST_SETTINGS: Mapping[str, str] = {
    "group.initial.rebalance.delay.ms": "0",  # a group forms at once
    "offsets.topic.num.partitions": "1",
}
"""What a broker under test has that differs from the defaults; `settings` goes over it."""


class Cluster:
    """The brokers of a test. Made by `open_cluster`; ends with its block."""

    def __init__(self, data_dir: Path, settings: Mapping[str, str], nursery: trio.Nursery) -> None:
        self.data_dir = data_dir
        self._settings = {**TEST_SETTINGS, **settings, "data.dir": str(data_dir)}
        self._nursery = nursery
        self._broker: RunningBroker | None = None
        self._stop = trio.Event()
        self._stopped = trio.Event()
        self._kafka = self._settings.pop("listeners", "127.0.0.1:0")
        self._http = self._settings.pop("http.listen", "127.0.0.1:0")

    @property
    def bootstrap(self) -> str:
        """`host:port` for a client's bootstrap setting; the same after a restart."""
        return self._kafka

    @property
    def http(self) -> str:
        """`host:port` of `/metrics`, `/healthz` and `/readyz`; the same after a restart."""
        return self._http

    @property
    def broker(self) -> RunningBroker:
        """The broker itself, for looking inside."""
        assert self._broker is not None, "it does not run"
        return self._broker

    async def start(self) -> None:
        """Start the broker after a `stop`, on the same data and the same ports."""
        assert self._broker is None, "it runs already"
        self._stop, self._stopped = trio.Event(), trio.Event()
        self._broker = await self._nursery.start(self._run)
        self._kafka = str(self._broker.kafka_address)
        self._http = str(self._broker.http_address)

    async def stop(self) -> None:
        """Stop it as SIGTERM does: what is in flight is answered, everything is synced."""
        self._stop.set()
        await self._stopped.wait()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def _run(self, task_status: trio.TaskStatus[RunningBroker]) -> None:
        options = {
            "peer.listen": "127.0.0.1:0",
            **self._settings,
            "listeners": self._kafka,
            "http.listen": self._http,
        }
        try:
            async with open_broker(load_settings(options=options).settings) as broker:
                task_status.started(broker)
                await self._stop.wait()
        finally:
            self._broker = None
            self._stopped.set()


@asynccontextmanager
async def open_cluster(
    *, data_dir: Path | None = None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Cluster]:
    """A broker that serves when the block begins and has stopped when it ends.

    Without `data_dir` the data goes to a temporary folder that is removed with the block.
    `settings` are the broker's, by name, as `docs/configuration.md` lists them. Raises
    `ConfigError`, `StorageError` or `OSError` as `tidemark serve` would.
    """
    with TemporaryDirectory(prefix="tidemark-") as folder, _lone_errors_as_themselves():
        async with trio.open_nursery() as nursery:
            cluster = Cluster(data_dir or Path(folder) / "data", settings or {}, nursery)
            await cluster.start()
            try:
                yield cluster
            finally:
                # Not cancelled with the block: the broker answers and syncs what it has taken.
                with trio.CancelScope(shield=True):
                    await cluster.stop()


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
