"""A broker's checkpoints: when its journal's files may be used again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.storage.journal.blocks import Lsn
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.state_db import PartitionKey, PartitionState, StateDb
from tidemark.partitions.storage.syncing import SyncCapture
from tidemark.protocol.types import Offset


class Checkpoint:
    """One checkpoint. It is captured at one moment, and completed once `batch` is durable.

    So `state.db` is never ahead of the journal on the disk.
    """

    def __init__(
        self,
        journal: Journal,
        state: StateDb,
        replicas: Mapping[PartitionKey, GroupReplica],
        batch: int,
    ) -> None:
        """`replicas` are those that are open, now and later."""
        self.batch = batch
        self._journal = journal
        self._state = state
        self._open = replicas
        self._captured = dict(replicas)
        self._mark: Lsn = journal.begin_checkpoint()
        self._parts: list[tuple[SyncCapture, PartitionState]] = [
            (replica.log.begin_sync(), replica.state_row(Offset(0)))
            for replica in replicas.values()
        ]

    def complete(self) -> None:
        """Sync the segments, record the rest, and free the journal. Raises `OSError`."""
        states = [replace(state, recovery_point=capture.sync()) for capture, state in self._parts]
        self._state.save(states, journal_start=self._mark)
        self._journal.checkpointed(self._mark)
        # One that was given up meanwhile must not come back.
        gone = [key for key, was in self._captured.items() if self._open.get(key) is not was]
        if gone:
            self._state.forget_partitions(gone)
