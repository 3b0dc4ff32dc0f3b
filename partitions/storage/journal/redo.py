"""After a start: bring segments and `state.db` up to what the journal says, before anything opens.

All of the journal is read, what it says of each partition is taken together (`replay`), and done:

1. What of the journal may be in the page cache only is made durable. Else a log could be cut, or
   its segments removed, by the word of a record that the next loss of power takes back.
2. Each log is checked from where the journal begins to speak of it. What is of another history
   there is cut, and so is what is not sound. The journal's batches that it does not hold are
   written to it, and it is synced. So is the snapshot with which its start has moved.
3. Everything small, the recovery points, and where the journal goes on, are one transaction.

Only that ends it. A crash before leaves the journal as it is and all of it is done again, to the
same end; a crash after finds nothing to do. The journal's old blocks are not erased: they are
before where it goes on.

Of a partition whose records were damaged, the log is left as it is. What the records would make of
it is not known, and its owner may want to look at it.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import Final

from tidemark.partitions.storage.directory import DataDirectory, partition_of
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.journal.blocks import FIRST_LSN, Lsn
from tidemark.partitions.storage.journal.journal import JournalStart
from tidemark.partitions.storage.journal.names import DAMAGED_SUFFIX
from tidemark.partitions.storage.journal.reader import ReadJournal, StoredRecord
from tidemark.partitions.storage.journal.records import RecordKind
from tidemark.partitions.storage.journal.replay import PartitionReplay, forgotten
from tidemark.partitions.storage.journal.segments import redo_log
from tidemark.partitions.storage.left_groups import leave
from tidemark.partitions.storage.state_db import (
    Condition,
    GroupSnapshot,
    PartitionKey,
    PartitionState,
    StateDb,
)
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch
from tidemark.protocol.values import dataclass

_NOTHING_THERE: Final = (
    "{path} is empty, though there was a journal in it. Nothing was changed. If a disk is to be "
    "mounted there, mount it and start again. If the journal is lost, remove the directory, too: "
    "then a start takes all partitions for damaged, and they are repaired from other replicas. "
    "Those without others are not served; restore the whole data directory from a copy instead"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RedoReport:
    """What a redo found and did."""

    start: JournalStart
    """Where the journal goes on."""
    blocks: int
    partitions: int
    """Of which the journal said something."""
    appended_bytes: int
    """That the segments did not have."""
    cut_bytes: int
    """Of a torn tail: written, and not synced before the crash."""
    damage: tuple[str, ...]
    """A sentence for each thing that had been durable and was not there."""
    damaged: frozenset[PartitionKey]
    """Whose records may be gone with it; `state.db` says so too."""


def redo(files: Files, directory: DataDirectory, state: StateDb) -> RedoReport:
    """Do all that the journal says. Blocking; before any log of the directory is opened.

    A partition that cannot be brought up to the journal is marked as damaged and keeps nobody else
    from being redone. Raises `OSError` or `StorageError` when the disk does not take what has
    to be written, or the journal is one that this release cannot read; it may be tried again. So it
    may where the journal's directory is empty and was not: its disk may not be mounted.
    """
    stored_start = state.journal_start
    start = FIRST_LSN if stored_start is None else Lsn(stored_start)
    path, owner = directory.journal_path, state.journal_owner
    # Now, when nothing is changed yet: a journal whose disk is not mounted is no lost journal.
    if not files.exists(path):
        files.make_directory(path)
        directory.sync()
    elif start > FIRST_LSN and not files.sizes(path) and not files.subdirectories(path):
        raise StorageError(_NOTHING_THERE.format(path=path))
    journal = ReadJournal(files, path, owner, start, former_owner=state.directory_id)
    redoing = _Redoing(files, directory, state)
    for record in journal.records():
        redoing.add(record)
    journal.make_durable()
    damage = list(journal.damage)
    is_missing = start > FIRST_LSN and journal.is_missing
    if is_missing:
        damage.append(f"{path} has no journal, though there was one")
    if is_missing or journal.is_torn_apart:
        redoing.doubt_all()
    redoing.forget_renamed()
    redoing.redo_logs()
    redoing.remove_forgotten()
    # Not at the next page, but behind whatever is there: a block of a torn tail that is whole
    # must not be met again behind a block that comes to lie before it.
    goes_on = max(start, journal.next_lsn)
    redoing.record(goes_on, is_new=goes_on != stored_start or not state.has_journal_owner)
    if damage:
        _keep_for_people(files, journal.paths)
    return RedoReport(
        start=JournalStart(state.journal_owner, goes_on),
        blocks=journal.block_count,
        partitions=len(redoing.replays),
        appended_bytes=redoing.appended_bytes,
        cut_bytes=journal.cut_bytes,
        damage=(*damage, *redoing.damage),
        damaged=redoing.damaged(),
    )


class _Redoing:
    """One redo: the partitions that the journal speaks of, and what is done to them."""

    def __init__(self, files: Files, directory: DataDirectory, state: StateDb) -> None:
        self._files = files
        self._directory = directory
        self._state = state
        self.replays: dict[PartitionKey, PartitionReplay] = {}
        self.appended_bytes = 0
        self.damage: list[str] = []

    @cached_property
    def _stored(self) -> dict[PartitionKey, PartitionState]:
        """Not read after a clean stop, when the journal has nothing to say."""
        return self._state.partition_states()

    def add(self, record: StoredRecord) -> None:
        """Take in one record. Of a partition that is not recorded there is nothing to do: it was
        recorded before the first, so it was deleted."""
        stored = self._stored.get(record.key)
        if stored is None:
            return
        replay = self.replays.get(record.key)
        if record.kind is RecordKind.FORGET and record.is_sound:
            known = stored if replay is None else replay.state
            self.replays[record.key] = forgotten(stored, known)
            return
        if replay is None:
            replay = self.replays[record.key] = PartitionReplay(stored)
        replay.add(record)

    def doubt_all(self) -> None:
        """Records are missing, and nobody knows whose."""
        for key, stored in self._stored.items():
            self.replays.setdefault(key, PartitionReplay(stored)).is_broken = True

    def forget_renamed(self) -> None:
        """Directories that were renamed by who gave them up, whose FORGET was not durable yet: a
        row without its directory could not be opened, should the partition be here again."""
        if not self._directory.deleted():
            return
        there = {str(partition) for partition in self._directory.partitions()}
        for key, stored in self._stored.items():
            if stored.name not in there and self._directory.is_marked_deleted(stored.name):
                replay = self.replays.get(key)
                if replay is None or replay.left_in is None:
                    known = stored if replay is None else replay.state
                    self.replays[key] = forgotten(stored, known)

    def redo_logs(self) -> None:
        for replay in self._kept():
            is_of_log = replay.pieces or replay.reset or replay.below_start or replay.is_in_segments
            if is_of_log and not replay.is_broken:
                self._redo_log(replay)

    def _redo_log(self, replay: PartitionReplay) -> None:
        name = replay.state.name
        assert name, "journaled before its directory was recorded"
        try:
            redone = redo_log(self._files, f"{self._directory.path}/{name}", replay)
        except (StorageError, FileNotFoundError) as error:
            self.damage.append(f"{name} cannot be brought up to the journal: {error}")
            replay.is_broken = True
            return
        self.appended_bytes += redone.appended_bytes
        replay.state = replace(
            replay.state,
            log_start=max(replay.state.log_start, redone.start_offset),
            recovery_point=redone.end_offset,
        )

    def record(self, goes_on: Lsn, *, is_new: bool) -> None:
        """The one transaction that ends it."""
        if not self.replays and not is_new:
            return
        with self._state.transaction():
            for replay in self._kept():
                reset, log_start = replay.reset, replay.outcome().log_start
                # If the start has moved since, there is a newer one of this replica's own.
                if reset and reset.snapshot and log_start <= reset.start.offset:
                    snapshot = GroupSnapshot(reset.start, reset.snapshot)
                    self._state.save_group_snapshot(replay.state.key, snapshot)
            leave(self._state, self._gone())
            self._state.save(self._states(), journal_start=goes_on)
            self._state.make_journal_owner()

    def remove_forgotten(self) -> None:
        """Finish deletions: a directory that nobody knows would keep its name from being used."""
        gone = set(self._gone())
        if not gone:
            return
        used = {stored.name for key, stored in self._stored.items() if key not in gone}
        for key in sorted(gone):
            name = self._stored[key].name
            partition = partition_of(name)
            if partition is not None and name not in used:
                self._directory.mark_deleted([partition], key.topic_id)

    def _gone(self) -> dict[PartitionKey, Epoch]:
        """Whether the groups live on is not known here: so their epochs are kept."""
        replays = self.replays.items()
        return {key: replay.left_in for key, replay in replays if replay.left_in is not None}

    def damaged(self) -> frozenset[PartitionKey]:
        return frozenset(s.key for s in self._states() if s.condition is Condition.DAMAGED)

    def _kept(self) -> Iterable[PartitionReplay]:
        return (replay for replay in self.replays.values() if replay.left_in is None)

    def _states(self) -> Iterable[PartitionState]:
        return (replay.outcome() for replay in self._kept())


def _keep_for_people(files: Files, paths: Iterable[str]) -> None:
    """Put a journal with damage aside, as it is: nothing in it is needed, but who knows."""
    for path in paths:
        files.rename(path, path + DAMAGED_SUFFIX)
