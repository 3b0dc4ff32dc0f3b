"""Snapshots of the cluster's metadata: they stand for the beginning of the log, which is given up.

Each replica takes its own, and moves the start of its log only to where it has one:

1. a crash before the snapshot is in `state.db`: nothing has happened;
2. after it, before the log's start is durable in the journal: the next start moves it;
3. after that: the snapshot and the log behind it are the whole.
What a snapshot holds is durable in this replica's log before: so the log never ends below it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final, Protocol

from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.state_machines.cluster_machine import ClusterMachine
from tidemark.partitions.storage.state_db import GroupSnapshot, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Offset, Position

COMMANDS_MAX: Final = 1000
"""Commands kept in the log behind a snapshot, about."""


class LogStart(Protocol):
    """The log, as far as its start is concerned."""

    @property
    def log_start(self) -> Offset: ...

    @property
    def failure(self) -> str | None:
        """Why nothing more is applied, perhaps in the middle of a batch."""
        ...

    async def give_up_below(self, offset: Offset) -> None:
        """Move the start there, durably, and remove what lies below. Raises `OSError`."""
        ...


def restore(machine: ClusterMachine, state: StateDb) -> None:
    """What the last snapshot says, and no log start below it: before the log is opened. Blocking.

    Raises `StorageError` for a snapshot that is not there or cannot be read.
    """
    snapshot = state.group_snapshot(CLUSTER_KEY)
    stored = state.partition_state(CLUSTER_KEY)
    log_start = Offset(0) if stored is None else stored.log_start
    at = Offset(0) if snapshot is None else snapshot.position.offset
    if log_start > at:
        raise StorageError(
            f"state.db: the cluster's metadata begin at offset {log_start}, and the snapshot of "
            "what was before is missing. Restore the file from a copy"
        )
    if snapshot is not None:
        machine.restore(snapshot.data, snapshot.position)
        if stored is not None and log_start < at:
            state.save([replace(stored, log_start=at)])


def keep_received(state: StateDb, snapshot: bytes, start: Position) -> None:
    """Another replica's, with which the log begins from now on: it must not be without it, and a
    newer version may read what this one cannot.

    Blocks for a moment, and rarely: before a checkpoint could forget where it came from.
    """
    state.save_group_snapshot(CLUSTER_KEY, GroupSnapshot(start, snapshot))


class ClusterSnapshots:
    """Takes them, from time to time."""

    def __init__(
        self,
        machine: ClusterMachine,
        state: StateDb,
        log: LogStart,
        wait_durable: Callable[[], Awaitable[None]],
    ) -> None:
        self._machine = machine
        self._state = state
        self._log = log
        self._wait_durable = wait_durable

    @property
    def is_due(self) -> bool:
        behind_start = self._machine.applied - self._log.log_start
        return self._log.failure is None and behind_start >= COMMANDS_MAX

    async def take(self) -> None:
        """Take one now. Raises `OSError` and `StorageError`; what is there then stays valid."""
        machine = self._machine
        position = machine.position
        data = machine.state.encode()
        await self._wait_durable()
        is_newest = await run_in_thread(self._save, GroupSnapshot(position, data))
        if is_newest and self._log.log_start < position.offset:
            machine.keep_snapshot(data, position.offset)
            await self._log.give_up_below(position.offset)
            machine.drop_snapshots(position.offset)

    def _save(self, snapshot: GroupSnapshot) -> bool:
        """On a thread. The log may be reset meanwhile: its snapshot is newer then, and stays."""
        with self._state.transaction():
            stored = self._state.group_snapshot(CLUSTER_KEY)
            is_newest = stored is None or stored.position.offset < snapshot.position.offset
            if is_newest:
                self._state.save_group_snapshot(CLUSTER_KEY, snapshot)
        return is_newest
