"""`open_cluster` for code without trio: the brokers run in a thread of its own.

The thread has its own trio loop, so any client in the test, blocking, asyncio or trio, talks
to them over their sockets as to any broker.
"""

import os
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio

from tidemark.client.blocking.portal import run_there
from tidemark.testing.cluster import LOOK_SECONDS, Cluster, open_cluster

T = TypeVar("T")


class BlockingCluster:
    """The blocking twin of `Cluster`. Made by `open_blocking_cluster`."""

    def __init__(self, cluster: Cluster, token: trio.lowlevel.TrioToken) -> None:
        self._cluster = cluster
        self._token = token
        self._process = os.getpid()

    @property
    def bootstrap(self) -> str:
        """`host:port` of all, for a client's bootstrap setting; the same after a restart."""
        return self._cluster.bootstrap

    @property
    def http(self) -> str:
        """`host:port` of the first one's `/metrics`, `/healthz` and `/readyz`; it stays, too."""
        return self._cluster.http

    @property
    def data_dir(self) -> Path:
        """Of the first."""
        return self._cluster.data_dir

    @property
    def nodes(self) -> tuple[int, ...]:
        """All brokers, running or not."""
        return self._cluster.nodes

    def bootstrap_of(self, node: int) -> str:
        """`host:port` of one broker."""
        return self._cluster.bootstrap_of(node)

    def data_dir_of(self, node: int) -> Path:
        """As `Cluster.data_dir_of`."""
        return self._cluster.data_dir_of(node)

    def start(self, *nodes: int) -> None:
        """As `Cluster.start`."""
        self._run(self._cluster.start, *nodes)

    def stop(self, *nodes: int) -> None:
        """As `Cluster.stop`."""
        self._run(self._cluster.stop, *nodes)

    def restart(self, *nodes: int) -> None:
        """As `Cluster.restart`."""
        self._run(self._cluster.restart, *nodes)

    def kill(self, *nodes: int) -> None:
        """As `Cluster.kill`."""
        self._run(self._cluster.kill, *nodes)

    def pause(self, *nodes: int) -> None:
        """As `Cluster.pause`."""
        self._run_sync(self._cluster.pause, *nodes)

    def resume(self, *nodes: int) -> None:
        """As `Cluster.resume`."""
        self._run_sync(self._cluster.resume, *nodes)

    def cut(self, one: int, other: int) -> None:
        """As `Cluster.cut`."""
        self._run_sync(self._cluster.cut, one, other)

    def isolate(self, node: int) -> None:
        """As `Cluster.isolate`."""
        self._run_sync(self._cluster.isolate, node)

    def heal(self) -> None:
        """As `Cluster.heal`."""
        self._run_sync(self._cluster.heal)

    def delay_disk(self, node: int, seconds: float) -> None:
        """As `Cluster.delay_disk`."""
        self._run_sync(self._cluster.delay_disk, node, seconds)

    @property
    def controller(self) -> int | None:
        """As `Cluster.controller`."""
        return self._run_sync(lambda: self._cluster.controller)

    def leader_of(self, topic: str, partition: int = 0) -> int | None:
        """As `Cluster.leader_of`."""
        return self._run_sync(self._cluster.leader_of, topic, partition)

    def wait_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        other_than: int | None = None,
        timeout_seconds: float = 10,
    ) -> int:
        """As `Cluster.wait_leader`."""
        wait = partial(
            self._cluster.wait_leader, other_than=other_than, timeout_seconds=timeout_seconds
        )
        return self._run(wait, topic, partition)

    def wait_caught_up(self, *, timeout_seconds: float = 10) -> None:
        """As `Cluster.wait_caught_up`."""
        self._run(partial(self._cluster.wait_caught_up, timeout_seconds=timeout_seconds))

    def wait_for(
        self, predicate: Callable[[], object], what: str, *, timeout_seconds: float = 10
    ) -> None:
        """As `Cluster.wait_for`; `predicate` is called here, and may ask this cluster."""
        deadline = time.monotonic() + timeout_seconds
        while not predicate():
            if time.monotonic() >= deadline:
                raise self._run_sync(self._cluster.not_in_time, what, timeout_seconds)
            time.sleep(LOOK_SECONDS)

    def _run_sync(self, action: Callable[..., T], *args: object) -> T:
        self._require_process()
        return trio.from_thread.run_sync(action, *args, trio_token=self._token)

    def _run(self, action: Callable[..., Awaitable[T]], *args: object) -> T:
        self._require_process()
        return run_there(self._token, partial(action, *args))

    def _require_process(self) -> None:
        if os.getpid() != self._process:
            # Nobody would ever answer.
            raise RuntimeError("brokers do not outlive a fork: ask the process that opened them")


@contextmanager
def open_blocking_cluster(
    *,
    brokers: int = 1,
    data_dir: Path | str | None = None,
    settings: Mapping[str, str] | None = None,
    racks: Sequence[str] = (),
) -> Iterator[BlockingCluster]:
    """As `open_cluster`, without trio. Raises what that raises, in the calling thread."""
    begun: queue.SimpleQueue[trio.lowlevel.TrioToken] = queue.SimpleQueue()
    opened: queue.SimpleQueue[BlockingCluster | BaseException] = queue.SimpleQueue()
    whole, finish = trio.CancelScope(), trio.Event()

    async def serve() -> None:
        token = trio.lowlevel.current_trio_token()
        begun.put(token)
        with whole:
            async with open_cluster(
                brokers=brokers, data_dir=data_dir, settings=settings, racks=racks
            ) as cluster:
                opened.put(BlockingCluster(cluster, token))
                await finish.wait()

    def run() -> None:
        try:
            trio.run(serve)
        except BaseException as error:  # the thread's edge: it is raised in the caller's thread
            opened.put(error)

    thread = threading.Thread(target=run, name="tidemark-broker")
    thread.start()
    try:
        first = opened.get()
    except BaseException:  # Ctrl-C: the interpreter would wait for the thread, and it for nobody
        with suppress(trio.RunFinishedError):
            begun.get().run_sync_soon(whole.cancel)
        thread.join()
        raise
    if isinstance(first, BaseException):
        thread.join()
        raise first
    try:
        yield first
    finally:
        # A forked child that ends in the block has no such thread.
        if os.getpid() == first._process:
            with suppress(trio.RunFinishedError):  # ended by itself; the error is raised below
                first._token.run_sync_soon(finish.set)
            thread.join()
            if not opened.empty():
                late = opened.get()
                assert isinstance(late, BaseException)
                raise late
