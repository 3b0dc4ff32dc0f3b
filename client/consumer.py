"""Reading records: see `Consumer`.

Here the caller meets what is read and fetched ahead (`readings.py`), the commits (`committing.py`)
and the group (`group.py`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import trio

from tidemark.client.background import Signal
from tidemark.client.committing import Committer
from tidemark.client.consumer_settings import ConsumerSettings
from tidemark.client.coordinator import GroupMembership
from tidemark.client.descriptions import CommittedOffset
from tidemark.client.fetch_buffer import Reading
from tidemark.client.group_settings import Rebalanced
from tidemark.client.lookups import list_offsets, require_partitions, resolve_starts
from tidemark.client.network import Network
from tidemark.client.offsets import AtOffset, Beginning, Start, as_start
from tidemark.client.reading import read_records
from tidemark.client.readings import Readings
from tidemark.client.records import ConsumerRecord, FetchedBatches
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError
from tidemark.protocol.types import Offset, TopicPartition


class Consumer:
    """Reads records; made by `Client.consumer`. An async iterator of `ConsumerRecord`.

    Positions count what was handed out. A group's automatic commits leave out the record that is
    in the caller's hands; asking for the next one says that it is done with. So one task reads:
    another that asks meanwhile gets a `trio.BusyResourceError`.
    """

    def __init__(self, network: Network, readings: Readings, settings: ConsumerSettings) -> None:
        self._network = network
        self._readings = readings
        self._settings = settings
        self._committer: Committer | None = None
        # What is being handed out: the first `taken` of `records` have been, and are of `reading`.
        # In the caller's hands is the last one of them, or, where several were handed out at once,
        # everything from `in_hand`.
        self._reading: Reading | None = None
        self._records: list[ConsumerRecord] = []
        self._taken = 0
        self._in_hand: Offset | None = None
        self._is_assigned = False
        self._is_asked = False
        self._is_closed = False
        self._callbacks_error: Exception | None = None

    # Reading

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now; in a group it changes with each rebalance."""
        return frozenset(self._readings.by_partition)

    def __aiter__(self) -> "Consumer":
        return self

    async def __anext__(self) -> ConsumerRecord:
        """The next record; ends (`StopAsyncIteration`) only with `until_end`.

        Raises `RequestError`: OFFSET_OUT_OF_RANGE where no reset policy is set, and what no retry
        can mend; `CorruptBatch`. Yields to other tasks only when it needs new data. Cancelled, no
        record is lost.
        """
        taken = self._taken
        if taken < len(self._records):
            self._taken = taken + 1
            return self._records[taken]
        await self._next_records()
        if not self._records:
            raise StopAsyncIteration
        self._taken = 1
        return self._records[0]

    async def fetch(self) -> list[ConsumerRecord]:
        """The next records, as many as one fetch brought of one partition; never empty, except
        at the end with `until_end`. Faster than iterating."""
        if self._taken == len(self._records):
            await self._next_records()
        records = self._records[self._taken :]
        self._taken = len(self._records)
        self._in_hand = records[0].offset if records else None
        return records

    async def fetch_batches(self) -> FetchedBatches | None:
        """The next record batches, undecoded; None at the end with `until_end`.

        The last of them may go on beyond that end.
        """
        if self._reading is not None and self._taken < len(self._records):
            self._reading.jump(self._records[self._taken].offset)
        taken = await self._next_fetched()
        if taken is None:
            return None
        reading, fetched = taken
        self._reading, self._in_hand = reading, fetched.fetch_offset
        self._advance(reading, fetched)
        return fetched

    async def _next_records(self) -> None:
        """Have records to hand out; none only at the end."""
        while (taken := await self._next_fetched()) is not None:
            reading, fetched = taken
            try:
                records = read_records(fetched, reading.end, self._settings.fetch.isolation)
            except CorruptBatch:
                reading.is_failed = True
                raise
            self._advance(reading, fetched)
            if records:
                self._reading, self._records = reading, records
                return

    async def _next_fetched(self) -> tuple[Reading, FetchedBatches] | None:
        """What to hand out next; None only at the end. What was in hand is done with."""
        with self._one_at_a_time():
            await trio.lowlevel.checkpoint()
            self._let_go()
            while True:
                self._require_open()
                taken = self._readings.take()
                if taken is not None:
                    return taken
                if self._is_at_end():
                    return None
                await self._readings.buffer.changed.wait()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Whoever asks says that what was in hand is done with, which only one task can know."""
        if self._is_asked:
            raise trio.BusyResourceError("another task is reading with this consumer")
        self._is_asked = True
        try:
            yield
        finally:
            self._is_asked = False

    def _require_open(self) -> None:
        if self._is_closed:
            # What a callback has raised is what the block ended with.
            raise self._callbacks_error or trio.ClosedResourceError("the consumer is closed")

    def _advance(self, reading: Reading, fetched: FetchedBatches) -> None:
        reading.position = fetched.next_offset
        reading.position_epoch = fetched.last_epoch

    def _let_go(self) -> None:
        self._reading, self._in_hand = None, None
        self._records, self._taken = [], 0

    def _is_at_end(self) -> bool:
        if not self._settings.until_end or not self._is_assigned:
            return False
        readings = self._readings.by_partition.values()
        return all(reading.is_at_end or reading.is_failed for reading in readings)

    # Positions

    def position(self, topic_partition: TopicPartition) -> Offset:
        """The offset of the next record to be handed out. `KeyError` if it is not assigned."""
        reading = self._readings.by_partition[topic_partition]
        if reading is self._reading and self._taken < len(self._records):
            return self._records[self._taken].offset
        return reading.position

    def done(self, topic_partition: TopicPartition) -> Offset:
        """As `position`, less what is in the caller's hands."""
        reading = self._readings.by_partition[topic_partition]
        if reading is self._reading:
            if self._in_hand is not None:
                return self._in_hand
            if self._taken:
                return self._records[self._taken - 1].offset
        return self.position(topic_partition)

    async def seek(self, topic_partition: TopicPartition, start: Start | str | int) -> None:
        """Go on from there; what was fetched ahead of it is dropped.

        `KeyError` if it is not assigned.
        """
        reading = self._readings.by_partition[topic_partition]
        starts = {topic_partition: as_start(start)}
        offsets = await resolve_starts(self._network, starts, self._settings.fetch.isolation)
        self._jump(reading, offsets[topic_partition])

    def _jump(self, reading: Reading, offset: Offset) -> None:
        if reading is self._reading:
            self._let_go()
        reading.jump(offset)
        self._readings.wake()

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing more of these until `resume`, and keep the positions."""
        for topic_partition in partitions:
            reading = self._readings.by_partition[topic_partition]
            position, done = self.position(topic_partition), self.done(topic_partition)
            if reading is self._reading:
                # What has been handed out stays in the caller's hands.
                self._records, self._taken, self._in_hand = [], 0, done
            reading.jump(position)
            reading.is_paused = True
        self._readings.wake()

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo `pause`."""
        for topic_partition in partitions:
            self._readings.by_partition[topic_partition].is_paused = False
        self._readings.wake()

    async def beginning_offsets(self) -> dict[TopicPartition, Offset]:
        """The log start of everything assigned, asked for now."""
        specs = dict.fromkeys(self._readings.by_partition, Beginning())
        found = await list_offsets(self._network, specs, self._settings.fetch.isolation)
        return {topic_partition: listed.offset for topic_partition, listed in found.items()}

    async def end_offsets(self) -> dict[TopicPartition, Offset]:
        """The end (exclusive) of everything assigned, asked for now; with the levels strict and
        two-step, all that was committed by now."""
        return await self._readings.ends(list(self._readings.by_partition))

    # The group

    async def commit(
        self, offsets: Mapping[TopicPartition, Offset | CommittedOffset] | None = None
    ) -> None:
        """Commit these next offsets for the group, or the positions of all that is assigned.

        The record in the caller's hands counts as done. Raises `RequestError` when the group has
        moved on without this member (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, ...), and
        `ValueError` without a group.
        """
        committer = self._require_group()
        if offsets is None:
            offsets = {tp: self._as_commit(tp) for tp in self._readings.by_partition}
        gone = [tp for tp in offsets if tp not in self._readings.by_partition]
        if gone:
            # Its next owner's commits would be set back.
            raise RequestError(
                ErrorCode.ILLEGAL_GENERATION, f"{gone[0]} is not assigned to this consumer now"
            )
        await committer.commit(offsets)

    def _as_commit(self, topic_partition: TopicPartition) -> CommittedOffset:
        """The position, with the epoch of the record before it."""
        reading = self._readings.by_partition[topic_partition]
        epoch = reading.position_epoch
        if reading is self._reading and 0 < self._taken < len(self._records):
            epoch = self._records[self._taken - 1].leader_epoch
        return CommittedOffset(offset=self.position(topic_partition), leader_epoch=epoch)

    async def committed(self) -> dict[TopicPartition, CommittedOffset]:
        """The group's commits for what is assigned; partitions without one are left out."""
        return await self._require_group().committed(self._readings.by_partition)

    @property
    def group_membership(self) -> GroupMembership:
        """This consumer in its group, as it is now: for `Producer.send_offsets_to_transaction`."""
        return self._require_group().group_membership

    def _require_group(self) -> Committer:
        self._require_open()
        if self._committer is None:
            raise ValueError("this consumer has no group")
        return self._committer

    async def start(self, committer: Committer | None) -> None:
        """Begin with what is read without sharing; the rest comes from the group's member."""
        self._committer = committer
        if self._settings.is_shared:
            return
        partitions = self._settings.partitions
        # Where every start is an offset, nothing else would ask about the topics.
        await require_partitions(self._network, partitions)
        for topic in self._settings.topics:
            found = await self._network.topic(topic)
            partitions += tuple(TopicPartition(topic, p.partition) for p in found.partitions)
        await self.assigned(frozenset(partitions))

    async def find_new_partitions_until_cancelled(self) -> None:
        """Read partitions that topics get while they are read, from their beginning."""
        changed = Signal()
        with self._network.listening(changed.set):
            while True:
                await changed.wait()
                known = self._network.view.partitions_of(self._settings.topics)
                new = [tp for tp in known if tp not in self._readings.by_partition]
                # Without success it is tried again when the view changes next.
                with suppress(OSError, RequestError):
                    await self._readings.add(dict.fromkeys(new, Beginning()), until_end=False)

    # GroupListener

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        commits: dict[TopicPartition, CommittedOffset] = {}
        if self._committer is not None and partitions:
            commits = await self._committer.committed(partitions)
        starts: dict[TopicPartition, Start] = {
            tp: AtOffset(commits[tp].offset) if tp in commits else self._settings.start_of(tp)
            for tp in sorted(partitions)
        }
        # What they are given to may have to be made ready first, or they are to begin elsewhere.
        await self._readings.add(starts, until_end=self._settings.until_end, is_held=True)
        try:
            await self._tell(self._settings.on_assigned, partitions)
        except BaseException:
            self._drop(partitions)
            raise
        self._readings.release(partitions)
        self._is_assigned = True
        self._readings.buffer.changed.set()

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        if self._committer is not None and self._settings.auto_commit_seconds is not None:
            await self._committer.try_commit({tp: self.done(tp) for tp in partitions})
        await self._tell(self._settings.on_revoked, partitions)
        self._drop(partitions)

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        self._drop(partitions)
        await self._tell(self._settings.on_revoked, partitions)

    async def _tell(
        self, callback: Rebalanced | None, partitions: frozenset[TopicPartition]
    ) -> None:
        if callback is None:
            return
        try:
            await callback(partitions)
        except Exception as error:  # whatever it is, it is the caller's, and goes to the caller
            self._callbacks_error = error
            raise

    def is_callers(self, error: Exception) -> bool:
        return error is self._callbacks_error

    def failed(self, error: Exception) -> None:
        self._readings.buffer.fail(error)

    def _drop(self, partitions: frozenset[TopicPartition]) -> None:
        if self._reading is not None and self._reading.topic_partition in partitions:
            self._let_go()
        self._readings.drop(partitions)

    async def commit_until_cancelled(self, seconds: float) -> None:
        """Commit what is done with, every so often; the consumer's own task."""
        while True:
            await trio.sleep(seconds)
            await self._commit_done()

    async def _commit_done(self) -> None:
        if self._committer is not None:
            await self._committer.try_commit(
                {tp: self.done(tp) for tp in self._readings.by_partition}
            )

    async def close(self, *, is_done: bool) -> None:
        """Commit a last time; `is_done` says whether that goes for the record in hand, too."""
        if is_done:
            self._in_hand = None
            self._records, self._taken = self._records[self._taken :], 0
        try:
            if self._settings.auto_commit_seconds is not None:
                await self._commit_done()
        finally:
            self._let_go()
            self._is_closed = True
            # Whoever reads in another task would wait for ever.
            self._readings.buffer.changed.set()
