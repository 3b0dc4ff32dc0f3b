"""`open_cluster` for code without trio: the broker runs in a thread of its own.

The thread has its own trio loop, so any client in the test, blocking, asyncio or trio, talks to it
over its socket as to any broker.
"""

import queue
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import trio

from tidemark.testing.cluster import Cluster, open_cluster

Action = Callable[[], Coroutine[None, None, None]]


class BlockingCluster:
    """The blocking twin of `Cluster`. Made by `open_blocking_cluster`."""

    def __init__(self, cluster: Cluster, token: trio.lowlevel.TrioToken) -> None:
        self._cluster = cluster
        self._token = token

    @property
    def bootstrap(self) -> str:
        """`host:port` for a client's bootstrap setting; the same after a restart."""
        return self._cluster.bootstrap

    @property
    def http(self) -> str:
        """`host:port` of `/metrics`, `/healthz` and `/readyz`; the same after a restart."""
        return self._cluster.http

    @property
    def data_dir(self) -> Path:
        return self._cluster.data_dir

    def start(self) -> None:
        """Start the broker after a `stop`, on the same data and the same ports."""
        self._run(self._cluster.start)

    def stop(self) -> None:
        """Stop it as SIGTERM does: what is in flight is answered, everything is synced."""
        self._run(self._cluster.stop)

    def restart(self) -> None:
        self._run(self._cluster.restart)

    def _run(self, action: Action) -> None:
        trio.from_thread.run(action, trio_token=self._token)


@contextmanager
def open_blocking_cluster(
    *, data_dir: Path | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[BlockingCluster]:
    """As `open_cluster`, without trio. Raises what that raises, in the calling thread."""
    opened: queue.SimpleQueue[BlockingCluster | BaseException] = queue.SimpleQueue()
    finish = trio.Event()

    async def serve() -> None:
        async with open_cluster(data_dir=data_dir, settings=settings) as cluster:
            opened.put(BlockingCluster(cluster, trio.lowlevel.current_trio_token()))
            await finish.wait()

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as error:  # the thread's edge: it is raised in the caller's thread
            opened.put(error)

    thread = threading.Thread(target=run, name="tidemark-broker")
    thread.start()
    first = opened.get()
    if isinstance(first, BaseException):
        thread.join()
        raise first
    try:
        yield first
    finally:
        with suppress(trio.RunFinishedError):  # it has ended by itself; the error is raised below
            first._token.run_sync_soon(finish.set)
        thread.join()
        if not opened.empty():
            late = opened.get()
            assert isinstance(late, BaseException)
            raise late
