"""Looking for records by their timestamps: the index finds a batch, the batch is opened.

A batch's header states the largest timestamp of its records. It is the producer's word, where that
can be true (the first record's is not above it): one that overstates it costs a look into the
batch, one that understates it hides its records from here. What is in a batch is its word, too.
Where that cannot be read here (garbage, or more than is inflated), the header is all there is to go
by: the batch counts as one, from its first offset on.

A look may take seconds, for a batch of a megabyte may hold a million records, and there may be many
whose headers overstate. So a search goes in steps: its owner asks for the next batch, opens it and
has some records of it looked at, and may do something else before each of these. The log may change
meanwhile: every step looks at it as it is then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Final, NamedTuple

from tidemark.partitions.storage.segment import Segment
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import BatchHeader, check_crc
from tidemark.protocol.records.skimming import times
from tidemark.protocol.types import NO_TIMESTAMP_MS, Offset

HEADERS_MAX: Final = 1_000
"""That one step walks over."""


class TimestampAndOffset(NamedTuple):
    """A record, as ListOffsets answers it."""

    timestamp_ms: int
    offset: Offset


class Unreadable(Exception):
    """A batch is as it was sent, but its records cannot be made out."""


class Look(NamedTuple):
    """A batch that has to be looked into, and which of its records count."""

    data: bytes
    header: BatchHeader
    start: Offset
    end: Offset

    def open(self) -> Iterator[tuple[int, Offset]]:
        """Its records' times and offsets. On any thread; raises `CorruptBatch` for one that is
        damaged, and `Unreadable`, as does going on.

        The first step decompresses: up to 128 MiB, and without holding up other threads.
        """
        check_crc(self.data, self.header)
        records = self._records()
        first = next(records, None)
        return iter(()) if first is None else chain((first,), records)

    def _records(self) -> Iterator[tuple[int, Offset]]:
        try:
            yield from times(self.data, self.header)
        except CorruptBatch as error:
            raise Unreadable from error

    @property
    def whole(self) -> TimestampAndOffset:
        """What stands for its records where they cannot be made out: whoever reads from there on
        misses none."""
        first = max(self.header.base_offset, self.start)
        return TimestampAndOffset(self.header.max_timestamp, first)


class Search:
    """What is being looked for, how far the search has come, and what it has found."""

    def __init__(self) -> None:
        self.found: TimestampAndOffset | None = None
        self.is_over = False
        self._at = Offset(0)
        """What lies before needs no look any more."""

    def next(self, segments: Sequence[Segment], start: Offset, end: Offset) -> Look | None:
        """The next batch to look into, of a log that begins and ends there. If there is none, the
        search is over, or goes on with the next step. Raises `StorageError` and `OSError`."""
        raise NotImplementedError

    def take(self, look: Look, records: Iterator[tuple[int, Offset]], count: int) -> bool:
        """Look at so many more records of a batch; whether there may be more to look at."""
        raise NotImplementedError

    def take_whole(self, look: Look) -> None:
        """Go by what the batch's header states: it is `Unreadable`."""
        raise NotImplementedError

    def _segments_from(
        self, segments: Sequence[Segment], start: Offset, end: Offset
    ) -> Iterator[Segment]:
        """Those that are left; once they are exhausted the search is over."""
        self._at = max(self._at, start)
        for segment in segments:
            if segment.base_offset >= end:
                break
            if segment.end_offset > self._at:
                yield segment
        self.is_over = True


class FirstSince(Search):
    """The first record whose timestamp is this or later."""

    def __init__(self, timestamp_ms: int) -> None:
        super().__init__()
        self._timestamp_ms = timestamp_ms

    def next(self, segments: Sequence[Segment], start: Offset, end: Offset) -> Look | None:
        for segment in self._segments_from(segments, start, end):
            known = segment.index.largest
            if known is None or known.timestamp_ms < self._timestamp_ms:
                continue
            earlier = segment.earlier(self._timestamp_ms)
            # All records up to that entry's offset are earlier; it may be in the middle of a walk.
            self._at = max(
                self._at, segment.base_offset if earlier is None else Offset(earlier.offset + 1)
            )
            walk = segment.batches_from(segment.position_of(self._at))
            for position, header in islice(walk, HEADERS_MAX):
                if header.base_offset >= end:
                    self.is_over = True
                    return None
                if header.max_timestamp >= self._timestamp_ms and not header.is_control:
                    return Look(segment.read_batch(position, header), header, self._at, end)
                self._at = header.next_offset
            if self._at < segment.end_offset:
                return None
        return None

    def take(self, look: Look, records: Iterator[tuple[int, Offset]], count: int) -> bool:
        taken = 0
        for timestamp_ms, offset in islice(records, count):
            taken += 1
            if timestamp_ms >= self._timestamp_ms and look.start <= offset < look.end:
                self.found, self.is_over = TimestampAndOffset(timestamp_ms, offset), True
                return False
        if taken < count:
            self._at = look.header.next_offset
        return taken == count

    def take_whole(self, look: Look) -> None:
        self.found, self.is_over = look.whole, True


class Largest(Search):
    """The first of the records that have the largest timestamp.

    A transaction's marker counts, as it does with Kafka: the index says where the largest is, and
    a marker is stamped after all that it ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self._candidate: tuple[int, Offset] | None = None
        """The largest timestamp that a batch of the segment at hand states, and its last offset."""
        self._segment = Offset(0)
        """That of the last look."""
        self._overstated: tuple[Offset, int, Offset] | None = None
        """A segment, the timestamp that a batch there states but none of its records has, and where
        it ends. Of the others those that state less are still to be gone through."""

    def next(self, segments: Sequence[Segment], start: Offset, end: Offset) -> Look | None:
        for segment in self._segments_from(segments, start, end):
            known = segment.index.largest
            if known is None or known.timestamp_ms <= self._found_ms:
                self._at = segment.end_offset
            elif self._at <= known.offset < end and not self._is_overstated_in(segment):
                look = self._look(segment, known.offset, start, end)
                is_whole = look.header.base_offset >= start
                self._at = segment.end_offset if is_whole else look.header.next_offset
                return look
            elif not self._walk(segment, start, end):
                return None
            elif self._candidate is not None:
                return self._look(segment, self._candidate[1], start, end)
        return None

    def take(self, look: Look, records: Iterator[tuple[int, Offset]], count: int) -> bool:
        taken = 0
        for timestamp_ms, offset in islice(records, count):
            taken += 1
            if timestamp_ms > self._found_ms and look.start <= offset < look.end:
                self.found = TimestampAndOffset(timestamp_ms, offset)
        header = look.header
        is_whole = header.base_offset >= look.start and header.next_offset <= look.end
        if taken < count and is_whole and header.max_timestamp > self._found_ms:
            self._overstated = self._segment, header.max_timestamp, header.last_offset
            self._at = self._segment
        return taken == count

    def take_whole(self, look: Look) -> None:
        if look.header.max_timestamp > self._found_ms:
            self.found = look.whole

    @property
    def _found_ms(self) -> int:
        return NO_TIMESTAMP_MS if self.found is None else self.found.timestamp_ms

    def _walk(self, segment: Segment, start: Offset, end: Offset) -> bool:
        """Go from header to header for the candidate, where the largest of the whole segment does
        not count; whether that has come to the segment's end, or to a batch that is cut."""
        is_overstated = self._is_overstated_in(segment)
        entry = None if is_overstated else segment.largest_before(end)
        if entry is not None:
            # All before it are smaller, but its own batch may be the one.
            self._at = max(self._at, entry.offset)
        walk = segment.batches_from(segment.position_of(max(self._at, segment.base_offset)))
        for _, header in islice(walk, HEADERS_MAX):
            if header.base_offset >= end:
                self._at = segment.end_offset
                return True
            if header.next_offset > end and self._candidate is not None:
                # What it states may be of those that do not count: the ones before it go first.
                self._at = header.base_offset
                return True
            self._at = header.next_offset
            least_ms = self._found_ms if self._candidate is None else self._candidate[0]
            is_done = is_overstated and self._is_done(header, end)
            if header.max_timestamp > least_ms and not is_done:
                self._candidate = (header.max_timestamp, header.last_offset)
                if header.base_offset < start:
                    return True  # its largest may be among those that do not count
        return self._at >= segment.end_offset

    def _is_overstated_in(self, segment: Segment) -> bool:
        return self._overstated is not None and self._overstated[0] == segment.base_offset

    def _is_done(self, header: BatchHeader, end: Offset) -> bool:
        """Whether a batch has no records, or its turn was before the one's that overstates."""
        assert self._overstated is not None
        _, stated_ms, last_offset = self._overstated
        stated = (header.max_timestamp, -header.last_offset)
        is_cut = header.next_offset > end  # and so the last
        return header.record_count == 0 or (not is_cut and stated >= (stated_ms, -last_offset))

    def _look(self, segment: Segment, last_offset: Offset, start: Offset, end: Offset) -> Look:
        """Into the batch that ends there."""
        self._candidate = None
        self._segment = segment.base_offset
        position, header = next(segment.batches_from(segment.position_of(last_offset)))
        return Look(segment.read_batch(position, header), header, start, end)
