"""What a consumer hands out of what its readings bring, and how far it has got with that."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

import trio

from tidemark.client.consumer_settings import ConsumerSettings
from tidemark.client.coordinator import GroupMembership
from tidemark.client.descriptions import CommittedOffset
from tidemark.client.fetch_buffer import Reading
from tidemark.client.limits import require_partition
from tidemark.client.reading import before_corrupt, corrupt_at, read_records
from tidemark.client.readings import Readings
from tidemark.client.records import ConsumerRecord, FetchedBatches
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.types import Offset, TopicPartition


class HandingOut:
    """The reading half of a `Consumer`."""

    def __init__(self, readings: Readings, settings: ConsumerSettings) -> None:
        self._readings = readings
        self._settings = settings
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
        self._gave_up: Exception | None = None
        """Why this consumer is no member of its group any more, and never will be."""
        self._was: GroupMembership | None = None
        """As whom it was given partitions that have been taken away since it handed out last."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now; in a group it changes with each rebalance."""
        return frozenset(self._readings.by_partition)

    def __aiter__(self) -> Self:
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
            self._put_back(self._reading)
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
            except CorruptBatch as error:
                # Nothing is handed out behind it, unless the caller says so.
                whole = before_corrupt(fetched, error)
                reading.jump(reading.position if whole is None else whole.next_offset)
                self._readings.wake()
                if whole is None:
                    at = fetched.fetch_offset
                    raise corrupt_at(reading.topic_partition, at, error) from error
                # It is the first of what is fetched next, and raised then.
                fetched = whole
                records = read_records(fetched, reading.end, self._settings.fetch.isolation)
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
                if self._gave_up is not None:
                    raise self._gave_up.with_traceback(None)
                taken = self._readings.take()
                if taken is not None:
                    self._was = None
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
        return all(reading.is_at_end for reading in readings)

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

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out nothing more of these until `resume`, and keep the positions."""
        for topic_partition in partitions:
            require_partition(topic_partition)
            reading = self._readings.by_partition[topic_partition]
            reading.is_paused = True
            self._put_back(reading)

    def resume(self, *partitions: TopicPartition) -> None:
        """Undo `pause`."""
        for topic_partition in partitions:
            require_partition(topic_partition)
            self._readings.by_partition[topic_partition].is_paused = False
        self._readings.wake()

    def _put_back(self, reading: Reading) -> None:
        """Hand out nothing of what was fetched; what has been stays in the caller's hands."""
        topic_partition = reading.topic_partition
        position, done = self.position(topic_partition), self.done(topic_partition)
        if reading is self._reading:
            self._records, self._taken, self._in_hand = [], 0, done
        reading.jump(position)
        self._readings.wake()

    def _hold(self, topic_partition: TopicPartition) -> None:
        reading = self._readings.by_partition.get(topic_partition)
        if reading is not None:
            reading.is_held = True
            self._put_back(reading)

    def take_back(self, record: ConsumerRecord, count: int) -> None:
        """Of what `fetch` has given, `count` were not used, the last of which is `record`: they
        are the next to be handed out. Nothing if they are not this consumer's any more."""
        if self._records and self._records[-1] is record:
            self._taken = len(self._records) - count

    def take_back_batches(self, fetched: FetchedBatches) -> None:
        """What `fetch_batches` has given was not used: it is fetched once more. Nothing if it is
        not this consumer's any more."""
        reading = self._reading
        if reading is not None and reading.topic_partition == fetched.topic_partition:
            self._jump(reading, fetched.fetch_offset)

    def _finish_to(self, topic_partition: TopicPartition, offset: Offset) -> None:
        """The caller has said so: what it has in its hands before that is done with."""
        reading = self._readings.by_partition.get(topic_partition)
        if reading is None or reading is not self._reading:
            return
        if offset >= self.position(topic_partition):
            self._records, self._taken, self._in_hand = self._records[self._taken :], 0, None
        elif offset > self.done(topic_partition):
            self._in_hand = offset

    def _jump(self, reading: Reading, offset: Offset) -> None:
        if reading is self._reading:
            self._let_go()
        reading.jump(offset)
        self._readings.wake()
        self._readings.buffer.changed.set()  # for another task, which may be at the end by that

    def _as_commit(self, topic_partition: TopicPartition) -> CommittedOffset:
        """The position, with the epoch of the record before it."""
        reading = self._readings.by_partition[topic_partition]
        epoch = reading.position_epoch
        if reading is self._reading and 0 < self._taken < len(self._records):
            epoch = self._records[self._taken - 1].leader_epoch
        return CommittedOffset(offset=self.position(topic_partition), leader_epoch=epoch)
