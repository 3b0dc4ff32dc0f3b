"""Opening groups: what of a directory and of `state.db` is a replica, after a redo of the journal.

A start opens thousands of logs, so what has to be recorded about them is one transaction. A log
that cannot be served does not keep the others from being.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tidemark.partitions.raft.entries import configuration
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.replication.applier import Applier
from tidemark.partitions.replication.group_log import GroupLog, around
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.host import Host
from tidemark.partitions.replication.producer_state import ProducerState
from tidemark.partitions.storage.epoch_rows import rows_within
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.left_groups import come_back, left_epochs
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.refusals import SyncFailed, may_lose, may_pass
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.state_db import Condition, PartitionKey, PartitionState, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, NodeId
from tidemark.protocol.values import dataclass

JOURNALED_BYTES_MAX: Final = 128 * 1024
"""Syncing another file costs about as much as writing this twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpec:
    """Which group a replica is of."""

    key: PartitionKey
    directory: str
    """Of its log; it exists. Its last part is the name that `state.db` knows it by."""
    settings: LogSettings
    syncs_before_ack: bool
    """`flush=commit`."""
    journaled_bytes_max: int = JOURNALED_BYTES_MAX
    """Then: a run of batches this large is synced where it lies, and not written to the journal."""
    voters: tuple[NodeId, ...]
    """The group's first, in any order; what the log says of them since goes before it."""
    applier: Applier | None = None

    @property
    def name(self) -> str:
        return self.directory.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class OpenedGroup:
    """A replica, or the reason why there is none."""

    replica: GroupReplica | None
    failure: str | None = None
    may_pass: bool = False
    """Whether it may open later: there was no descriptor, say, or no room."""


def open_groups(
    specs: Sequence[GroupSpec],
    stored: Mapping[PartitionKey, PartitionState],
    state: StateDb,
    *,
    host: Host,
    files: Files,
    readers: FileCache,
) -> list[OpenedGroup]:
    """A replica for each spec, in their order. Blocking; on any thread.

    `stored` is what `state` holds of them; those that are not there yet are recorded. Raises
    `StorageError` if that fails, or `OSError` if directories cannot be synced.
    """
    opened, changed, returned = [], [], []
    unsynced: list[str] = []
    left = left_epochs(state)
    for spec in specs:
        found = stored.get(spec.key)
        before = found or PartitionState(
            key=spec.key, name=spec.name, is_journaled=spec.syncs_before_ack
        )
        left_in = left.get(spec.key)
        if left_in is not None:
            # All rows that are durable count, also where the end of the log is lost.
            if before.epochs and before.epochs[-1].epoch > left_in:
                returned.append(spec.key)
                left_in = None
            elif before.hard_state.epoch < left_in:
                before = replace(before, hard_state=HardState(left_in, None))
        try:
            replica, after = _open(
                spec, before, left_in, host=host, files=files, readers=readers, unsynced=unsynced
            )
        except (OSError, StorageError) as error:
            opened.append(OpenedGroup(None, str(error), _may_pass(error)))
            if found is not None and _may_have_lost(found, error):
                changed.append(replace(found, condition=Condition.UNCLEAN))
            continue
        if found is None:
            # Also what an attempt has made that ended before it was synced.
            unsynced.append(spec.directory)
        opened.append(OpenedGroup(replica))
        if after is not found and after != found:
            changed.append(after)
    files.sync_directories(list(dict.fromkeys(unsynced)))
    if changed or returned:
        with state.transaction():
            state.save(changed)
            come_back(state, returned)
    return opened


def open_group(
    spec: GroupSpec,
    stored: PartitionState | None,
    state: StateDb,
    *,
    host: Host,
    files: Files,
    readers: FileCache,
) -> GroupReplica:
    """One of them. Raises `StorageError` if it cannot be served."""
    by_key = {} if stored is None else {spec.key: stored}
    (opened,) = open_groups([spec], by_key, state, host=host, files=files, readers=readers)
    if opened.replica is None:
        raise StorageError(opened.failure or spec.name)
    return opened.replica


def _open(
    spec: GroupSpec,
    stored: PartitionState,
    left_in: Epoch | None,
    *,
    host: Host,
    files: Files,
    readers: FileCache,
    unsynced: list[str],
) -> tuple[GroupReplica, PartitionState]:
    producers = ProducerState()
    log = Log.open(
        files,
        spec.directory,
        spec.settings,
        start_offset=stored.log_start,
        recovery_point=stored.recovery_point,
        epochs=stored.epochs,
        readers=readers,
        on_batch=producers.on_batch,
        on_control=producers.on_control,
        load_snapshot=producers.load,
        take_snapshot=producers.take,
        unsynced=unsynced,
        may_begin_later=stored.condition is Condition.DAMAGED,
        may_end_earlier=stored.condition is Condition.DAMAGED and spec.voters != (host.node_id,),
    )
    producers.start_at(log.start_offset)
    # What the log holds after its opening is on the disk, whatever it was before.
    after = _after_loss(stored, log)
    if after.is_journaled != spec.syncs_before_ack:
        after = replace(after, is_journaled=spec.syncs_before_ack)
    first_batch, committed = around(log, log.start_offset)
    shape = LogShape(
        after.epochs,
        start_offset=first_batch,
        end_offset=log.end_offset,
        config=configuration(tuple(sorted(spec.voters))),
    )
    store = GroupLog(
        spec.key,
        host=host,
        log=log,
        first_batch=first_batch,
        producers=producers,
        syncs_before_ack=spec.syncs_before_ack,
        journaled_bytes_max=spec.journaled_bytes_max,
        has_state_machine=spec.applier is not None,
        voters=shape.config,
    )
    replica = GroupReplica(
        store,
        host=host,
        shape=shape,
        hard_state=after.hard_state,
        condition=after.condition,
        committed=committed,
        left_in=left_in,
        applier=spec.applier,
    )
    return replica, after


def _may_pass(error: Exception) -> bool:
    return isinstance(error, OSError) and may_pass(error) and not isinstance(error, SyncFailed)


def _may_have_lost(stored: PartitionState, error: Exception) -> bool:
    """Whether the next start may find less than this one would: a sync that fails now leaves the
    end of a log that is not journaled in the page cache only, and nobody knows for how long."""
    is_failing = isinstance(error, OSError) and (
        error.errno == errno.EIO or (isinstance(error, SyncFailed) and may_lose(error))
    )
    return is_failing and stored.condition is Condition.CLEAN and not stored.is_journaled


def _after_loss(stored: PartitionState, log: Log) -> PartitionState:
    """What is left of the epochs where a crash has taken the end of the log with it; and where the
    log begins, if the journal has lost that."""
    if log.start_offset != stored.log_start:
        stored = replace(stored, log_start=log.start_offset)
    rows = rows_within(stored.epochs, log.end_offset)
    if rows == stored.epochs:
        return stored
    lost = Condition.UNCLEAN if stored.condition is Condition.CLEAN else stored.condition
    return replace(stored, epochs=rows, condition=lost)
