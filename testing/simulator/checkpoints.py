"""A broker's checkpoints: when its journal's files may be used again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.storage.journal.blocks import Lsn
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.left_groups import remember
from tidemark.partitions.storage.state_db import PartitionKey, PartitionState, StateDb
from tidemark.partitions.storage.syncing import Capture
from tidemark.protocol.types import Epoch, Offset


class Checkpoint:
    """One checkpoint. It is captured at one moment, and completed once `write` is durable.

    So `state.db` is never ahead of the journal on the disk.
    """

    def __init__(
        self,
        journal: Journal,
        state: StateDb,
        replicas: Mapping[PartitionKey, GroupReplica],
        left: Mapping[PartitionKey, Epoch],
        write: int,
    ) -> None:
        self.write = write
        self.is_syncing = False
        self._journal = journal
        self._state = state
        self._left = dict(left)
        self._mark: Lsn = journal.begin_checkpoint()
        self._parts: list[tuple[Capture, PartitionState]] = [
            (replica.log.begin_sync(), replica.state_row(Offset(0)))
            for replica in replicas.values()
        ]

    def complete(self) -> None:
        """Sync the segments, record the rest, and free the journal. Raises `OSError`."""
        states = [replace(state, recovery_point=capture.sync()) for capture, state in self._parts]
        remember(self._state, self._left)
        self._state.save(states, journal_start=self._mark)
        self._journal.checkpointed(self._mark)
