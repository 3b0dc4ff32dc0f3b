"""A group's log on the disk, its producers, and what of both the journal has to say.

It does what it is told, in the order in which it is told; why, and what may be said about it when,
is `group_replica`'s.

With `flush=os` batches are in the page cache alone, and a loss of power takes the log's end and all
epochs that begin behind it. *A change of the voters is not among them*: before the journal says of
an epoch that it begins with other voters, what precedes it in the log is synced. So up to its
newest change every log is one that lost nothing, and Raft's argument about configurations holds,
whatever else was in page caches. A change is committed once majorities hold it. They hold it after
any loss of power, their logs do not end before it, and they elect nobody whose log does; nor does a
vote of all by an older configuration, which is what a majority of unclean replicas needs, for they
are among these. And whoever asks for votes by newer voters than those who are asked know of has the
longer log.

Were voters durable and what precedes them not, a replica would ask by the voters of one log and be
compared by the end of another. Two were elected in one epoch like that: by all of an older
configuration, whose logs had been cut, and by all of the newest; and in another group nobody ever.

It costs a sync of one log for each change of its voters. An epoch with the same voters costs none:
where a broker has died, thousands begin at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from tidemark.partitions.raft.entries import Configuration, Entry, EpochStart, Run
from tidemark.partitions.raft.messages import HardState, ResetRequest
from tidemark.partitions.raft.ready import Ready
from tidemark.partitions.replication.checking import bytes_of
from tidemark.partitions.replication.host import Host
from tidemark.partitions.replication.producer_state import ProducerState
from tidemark.partitions.replication.reading import read_entries
from tidemark.partitions.replication.recent import NO_RUNS, KeptRun, find
from tidemark.partitions.storage.journal import records as journal
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.refusals import may_pass
from tidemark.partitions.storage.state_db import Condition, PartitionKey, PartitionState
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import (
    CONTROL_BIT,
    HEADER_BYTES,
    BatchHeader,
    Fields,
    read_header,
)
from tidemark.protocol.types import BytesLike, Epoch, Offset, Position

# Made for every batch: calling the class takes twice the time.
_kept_run: Final = partial(tuple.__new__, KeptRun)


class Appended(NamedTuple):
    """Where batches lie. They are committed once `Position(epoch, end_offset)` is."""

    base_offset: Offset
    end_offset: Offset
    epoch: Epoch


class GroupLog:
    """One group's. What raises does so with the `OSError`, `StorageError` or `CorruptBatch` of
    its log."""

    __slots__ = (
        "_host",
        "_recent",
        "_syncs",
        "_voters",
        "first_batch",
        "has_state_machine",
        "journaled_bytes_max",
        "key",
        "last_staged",
        "log",
        "producers",
    )

    def __init__(
        self,
        key: PartitionKey,
        *,
        host: Host,
        log: Log,
        first_batch: Offset,
        producers: ProducerState,
        syncs_before_ack: bool,
        journaled_bytes_max: int,
        has_state_machine: bool,
        voters: Configuration,
    ) -> None:
        """`voters` are those of its last epoch."""
        self.key = key
        self.log = log
        self.first_batch = first_batch
        """Where it begins for other replicas: they are sent whole batches, and clients may begin
        to read within one (`move_start`)."""
        self.producers = producers
        self.has_state_machine = has_state_machine
        """Then what is below the log's start is in its snapshot, and there are no producers."""
        self.last_staged = 0
        """The journal write with the newest record of this group."""
        self._host = host
        self._syncs = syncs_before_ack
        self.journaled_bytes_max = journaled_bytes_max
        """A run of so many bytes is synced where it lies, and not written to the journal."""
        self._recent = NO_RUNS
        # As the journal has them; `None` where the end of the log was given up.
        self._voters: Configuration | None = voters

    @property
    def name(self) -> str:
        """Of its directory."""
        return self.log.directory.rpartition("/")[2]

    @property
    def syncs_before_ack(self) -> bool:
        return self._syncs

    def state_row(
        self,
        recovery_point: Offset,
        *,
        hard_state: HardState,
        epochs: tuple[EpochStart, ...],
        condition: Condition,
    ) -> PartitionState:
        """What a checkpoint records."""
        return PartitionState(
            key=self.key,
            name=self.name,
            log_start=self.log.start_offset,
            recovery_point=recovery_point,
            hard_state=hard_state,
            epochs=epochs,
            condition=condition,
            is_journaled=self._syncs,
        )

    def set_syncs_before_ack(self, syncs: bool) -> None:
        if syncs and not self._syncs:
            # The journal must not go on where the log's files may end.
            self.log.sync()
        self._syncs = syncs

    def append(
        self, records: bytearray | memoryview, epoch: Epoch, *, has_followers: bool
    ) -> Offset:
        """Append batches that were placed; where they end. They count once the journal has them,
        or at once."""
        base_offset = self.log.end_offset
        end_offset = self.log.append(records)
        if self._syncs or has_followers:
            span = epoch, base_offset, end_offset
            self._keep(span, (records,), has_followers=has_followers)
        return end_offset

    def append_run(
        self,
        headers: Sequence[Fields],
        batches: Sequence[bytearray | memoryview],
        epoch: Epoch,
        *,
        has_followers: bool,
    ) -> Offset:
        """Place clients' batches at the end, and append them as `append` does."""
        base_offset = self.log.end_offset
        end_offset = self.log.append_run(batches, headers, epoch)
        if self._syncs or has_followers:
            span = epoch, base_offset, end_offset
            self._keep(span, batches, has_followers=has_followers)
        return end_offset

    def _keep(
        self,
        span: tuple[Epoch, Offset, Offset],
        batches: Sequence[bytearray | memoryview],
        *,
        has_followers: bool,
    ) -> None:
        """One copy for all who need it later: the journal, and the frames to the followers.

        Of a large run there is none: it goes to the followers from the page cache.
        """
        if sum(map(len, batches)) >= self.journaled_bytes_max:
            if self._syncs:
                self.last_staged = self._host.outbox.stage_record(self._synced_to(span[2]))
            return
        kept = b"".join(batches)
        if self._syncs:
            record = journal.batches(self.key, kept)
            self.last_staged = self._host.outbox.stage_record(record)
        if has_followers:
            if self._recent is NO_RUNS:
                self._recent = {}
            self._host.recent.keep(self._recent, _kept_run((*span, kept)))

    def _synced_to(self, end_offset: Offset) -> JournalRecord:
        """The journal's record of a large run: the log's files have it, and are synced before.

        So its bytes are written once, and not a second time to the journal.
        """
        self._host.outbox.stage_sync(self.key, self.log.begin_tail_sync())
        return journal.synced(self.key, end_offset)

    def stage(self, ready: Ready, then: Callable[[], None] | None = None) -> None:
        """Have the journal say what is in a `Ready`; do `then` once it is durable.

        What it is not to have of the entries is in the log by now (`flush=os`).
        """
        records = self._records_of(ready)
        if records or then is not None:
            self.last_staged = self._host.outbox.stage(records, then)

    def _records_of(self, ready: Ready) -> list[JournalRecord]:
        key, records = self.key, []
        if ready.reset is not None:
            reset = ready.reset
            records += self._reset_records(reset)
        if ready.truncate_to is not None:
            records.append(journal.truncate(key, ready.truncate_to))
        for entry in ready.entries:
            if isinstance(entry, EpochStart):
                if entry.config != self._voters:
                    self._change_voters(entry.config)
                records.append(journal.epoch_start(key, entry))
            elif self._syncs:
                records.append(self._record_of(entry, is_written=not ready.is_cut))
        if ready.hard_state is not None:
            records.append(journal.hard_state(key, ready.hard_state))
        return records

    def _change_voters(self, voters: Configuration) -> None:
        self._voters = voters
        if not self._syncs:
            self._host.outbox.stage_sync(self.key, self.log.begin_tail_sync())

    def _record_of(self, run: Run, *, is_written: bool) -> JournalRecord:
        data = bytes_of(run)
        if is_written and len(data) >= self.journaled_bytes_max:
            return self._synced_to(run.end_offset)
        return journal.batches(self.key, data)

    def _reset_records(self, reset: ResetRequest) -> list[JournalRecord]:
        key, start = self.key, reset.start
        if self.has_state_machine or not reset.snapshot:
            return [journal.reset(key, start, reset.table, reset.snapshot)]
        begin = journal.reset(key, start, reset.table)
        return [begin, journal.log_start(key, start.offset, reset.snapshot)]

    def when_durable(self, then: Callable[[], None]) -> None:
        """Do `then` once all that was staged of this group is durable; at once if it is."""
        self._host.outbox.wait_for(self.last_staged, then)

    def write(self, entries: Sequence[Entry]) -> None:
        """Append another replica's batches."""
        producers, now_ms = self.producers, self._host.now_ms()
        for entry in entries:
            if isinstance(entry, Run):
                data = bytes_of(entry)
                self.log.append(data)
                producers.on_run(data, now_ms)

    def take_run(self, records: BytesLike, headers: Sequence[BatchHeader]) -> None:
        """Append another replica's batches, whose headers these are, all checked; and have the
        journal say so, if it has to. `records` is not needed any more when this returns."""
        self.log.append_placed(records, headers)
        for header in headers:
            _, _, _, _, _, attributes, _, _, _, producer_id, _, _, _ = header
            if attributes & CONTROL_BIT:
                self.producers.on_control_within(header, records, self._host.now_ms())
            elif producer_id >= 0:
                self.producers.on_batch(header, self._host.now_ms())
        if self._syncs:
            if len(records) < self.journaled_bytes_max:
                record = journal.batches(self.key, bytes(records))
            else:
                record = self._synced_to(headers[-1].next_offset)
            self.last_staged = self._host.outbox.stage_record(record)

    def recent_run(self, base: Offset, end: Offset, *, bytes_max: int) -> KeptRun | None:
        """All that lies between two offsets, if it is in memory and no more than so much."""
        run = find(self._recent, base, end=end, bytes_max=bytes_max)
        if run is None or run.end_offset != end or len(run.records) > bytes_max:
            return None
        return run

    def run_in_file(self, epoch: Epoch, base: Offset, end: Offset, *, bytes_max: int) -> Run | None:
        """What lies between two offsets of an epoch, as a slice of the log: as much of it as that,
        or one batch. Also raises `RequestError` outside of the log."""
        found = self.log.read(max(base, self.log.start_offset), bytes_max=bytes_max, end_offset=end)
        # Where compaction was, a batch may begin before `base`.
        if not found or read_header(found.peek(HEADER_BYTES)).base_offset != base:
            return None
        return Run(epoch, base, found.end_offset, found)

    def cut(self, ready: Ready) -> None:
        """Reset or truncate, as it says."""
        if ready.reset is not None:
            self.reset(ready.reset)
        elif ready.truncate_to is not None:
            self.truncate(ready.truncate_to.offset)

    def truncate(self, offset: Offset) -> None:
        """Give up all from `offset` on, and what it said of producers. The journal has it."""
        self._recent, self._voters = NO_RUNS, None
        if offset < self.log.end_offset:
            self.producers.is_stale = True
            self.log.truncate(offset)
        if self.producers.is_stale:
            self.producers.rebuild(self.log)
            self.producers.end_at(self.log.end_offset)
            self.first_batch = min(self.first_batch, self.log.start_offset)

    def reset(self, reset: ResetRequest) -> None:
        """Give up everything, to begin anew where another's log begins. The journal has it."""
        self._recent, self._voters = NO_RUNS, None
        snapshot = b"" if self.has_state_machine else reset.snapshot
        self.log.reset(reset.start.offset, snapshot)
        self.first_batch = reset.start.offset
        self.producers.rebuild(self.log)

    def forget_recent(self) -> None:
        """There are no followers any more."""
        self._recent = NO_RUNS

    def move_start(self, offset: Offset, snapshot: bytes) -> None:
        """Give up all below `offset`, files and all once the journal has it, but for what is known
        of producers.

        A batch that `offset` is within stays, and is on the disk before the journal says so: were
        it lost, the log would begin anew where nobody's batches do, and fit to no other. Raises
        `OSError`, and nothing has changed, if it cannot be told now whether there is one.
        """
        first_batch, _ = around(self.log, offset)
        removal = self.log.delete_before(offset, snapshot)
        self.producers.start_at(self.log.start_offset)
        self.first_batch = max(self.first_batch, first_batch)
        record = journal.log_start(self.key, self.log.start_offset, snapshot)
        outbox = self._host.outbox
        if self.first_batch < offset and not self._syncs:
            outbox.stage_sync(self.key, self.log.begin_tail_sync())
        self.last_staged = outbox.stage_record(record)
        outbox.stage_removal(removal)

    def snapshot_at(self, start: Offset) -> bytes:
        """What is known of producers, for a replica that begins with this log's first batch."""
        return self.log.snapshot_at_start() if start == self.first_batch else b""

    def read(
        self, rows: Sequence[EpochStart], after: Position, up_to: Position, bytes_max: int
    ) -> tuple[Entry, ...]:
        """Entries for other replicas. Also raises `RequestError` outside of the log."""
        return read_entries(rows, self.log, self._recent, after, up_to, bytes_max=bytes_max)


def around(log: Log, start: Offset) -> tuple[Offset, Offset]:
    """The batch that a log's start is within, as `Log.batch_around` has it.

    Where that cannot be read there is none: who gives up what is damaged goes on with the rest.
    Raises `OSError` if it may be read later.
    """
    try:
        return log.batch_around(start)
    except OSError as error:
        if may_pass(error):
            raise
    except StorageError:
        pass
    return start, start
