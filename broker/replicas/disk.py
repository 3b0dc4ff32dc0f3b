"""The group commit: one writer thread per data directory.

Logs that were appended to are queued. Whenever the thread is free it gets all that is queued,
syncs it, and reports back to the loop once; what was appended meanwhile is the next group. So
a busy disk makes the groups larger and not the queue longer.

A sync that fails is never tried again: the kernel may have dropped the pages and would report
success (the fsyncgate of 2018). Nothing is known about the disk any more, so nothing that
waited is answered, and the broker stops.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Protocol, TypeAlias

import trio

from tidemark.broker.network.turn import Turn
from tidemark.protocol.types import Offset

STOP_SECONDS_MAX = 30.0


class Capture(Protocol):
    """What of a log was dirty at one moment; made on the loop, synced by the writer thread."""

    def sync(self) -> Offset:
        """Block until it is on the disk; the end offset that is durable then."""
        ...


class SyncTarget(Protocol):
    """A replica, as the disk writer sees it."""

    def begin_sync(self) -> Capture: ...
    def synced(self, end_offset: Offset) -> None:
        """All below `end_offset` is durable. Must not raise."""
        ...


Group: TypeAlias = Sequence[tuple[SyncTarget, Capture]]


class DiskWriter:
    """Queues logs for the writer thread. Used from the loop's thread only.

    `call_in_loop` runs a function on the loop's thread from any other (trio's
    `run_sync_soon`); `failed` is told of the first error, after which nothing is synced;
    `observe` is told how many seconds each group took, and how many logs it covered.
    """

    def __init__(
        self,
        *,
        turn: Turn,
        call_in_loop: Callable[[Callable[[], None]], None],
        failed: Callable[[OSError], None],
        observe: Callable[[float, int], None] = lambda seconds, logs: None,
    ) -> None:
        self._turn = turn
        self._call_in_loop = call_in_loop
        self._failed = failed
        self._observe = observe
        self._queued: dict[SyncTarget, None] = {}
        self._groups: SimpleQueue[Group | None] = SimpleQueue()
        self._busy = False
        self._submit_is_due = False
        self._idle = trio.Event()
        self._idle.set()
        self.error: OSError | None = None

    def enqueue(self, target: SyncTarget) -> None:
        """Have `target` synced soon; it is told through `synced`. Twice in a turn is once."""
        if self.error is not None:
            return
        self._queued[target] = None
        if self._idle.is_set():
            self._idle = trio.Event()
        if not self._busy and not self._submit_is_due:
            self._submit_is_due = True
            self._turn.after(self._submit)

    def forget(self, target: SyncTarget) -> None:
        """Do not sync `target` if that has not begun: its files are going away."""
        self._queued.pop(target, None)

    async def wait_idle(self) -> None:
        """Until nothing is queued or being synced."""
        await self._idle.wait()

    def _submit(self) -> None:
        self._submit_is_due = False
        if self._busy:
            return
        if not self._queued:
            self._idle.set()
            return
        group = [(target, target.begin_sync()) for target in self._queued]
        self._queued.clear()
        self._busy = True
        self._groups.put(group)

    def _report(self, synced: Sequence[tuple[SyncTarget, Offset]], seconds: float) -> None:
        self._busy = False
        self._observe(seconds, len(synced))
        # The next group first: the disk works while this one is answered.
        self._submit()
        for target, end_offset in synced:
            target.synced(end_offset)

    def _report_failure(self, error: OSError) -> None:
        self.error = error
        self._queued.clear()
        self._idle.set()
        self._failed(error)

    def _write_until_stopped(self) -> None:
        """The thread. It knows nothing but captures, and touches no state of the loop's."""
        while (group := self._groups.get()) is not None:
            started = time.perf_counter()
            try:
                synced = [(target, capture.sync()) for target, capture in group]
            except OSError as error:
                self._call_in_loop(partial(self._report_failure, error))
                return
            self._call_in_loop(partial(self._report, synced, time.perf_counter() - started))

    def start(self) -> Thread:
        thread = Thread(target=self._write_until_stopped, name="disk writer", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        self._groups.put(None)


@asynccontextmanager
async def open_disk_writer(
    *,
    turn: Turn,
    failed: Callable[[OSError], None],
    observe: Callable[[float, int], None] = lambda seconds, logs: None,
) -> AsyncIterator[DiskWriter]:
    """A disk writer whose thread lives as long as this block, and finishes what is queued."""
    token = trio.lowlevel.current_trio_token()
    writer = DiskWriter(
        turn=turn,
        call_in_loop=lambda callback: token.run_sync_soon(turn.run, callback),
        failed=failed,
        observe=observe,
    )
    thread = writer.start()
    try:
        yield writer
    finally:
        with trio.move_on_after(STOP_SECONDS_MAX, shield=True):
            await writer.wait_idle()
            writer.stop()
            await trio.to_thread.run_sync(thread.join, abandon_on_cancel=True)
