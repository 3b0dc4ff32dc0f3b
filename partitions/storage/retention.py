"""Which segments are old enough to go, and which is old enough to be closed to writing.

A segment's age goes by its records' timestamps, as in Kafka, within reason: producers set those,
and some set nonsense.

* A record was appended before its file last changed, so a timestamp later than that is not
  believed: the file's time counts. A producer that writes microseconds into a field of
  milliseconds cannot keep its segments for ever.
* The same for a segment without timestamps.
* A file's time that is yet to come, of a clock that was ahead for a while, is not believed where
  the files of later segments have an earlier one.
* A timestamp in the past is believed: who loads last year's records into a topic that keeps a week
  loses them at the next sweep, in Kafka too. Set the topic's `retention.ms` first.

A segment is closed to writing by time in two ways.

* At an append, as in Kafka: a batch whose timestamp is more than `segment.ms` after that of the
  segment's first one begins a new segment. No clock is asked, so a replica that catches up closes
  about the segments that its leader did.
* At a sweep, by the clock of the broker: where nothing is appended any more, or timestamps say
  nothing. A sweep rolls a log at most once.

One absurd timestamp begins one new segment, and the next one not another: a segment whose first
one lies in the future is left to the sweep.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Final, Self

from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.home import LogHome
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.segment import Segment
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.syncing import SyncState
from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.types import Offset
from tidemark.protocol.values import dataclass

_AHEAD_MS_MAX: Final = 3_600_000
"""Of the file's time, which is when a batch came: so far ahead a clock may be that is believed. It
is the default of `message.timestamp.after.max.ms`."""
_NEVER_MS: Final = 2**63 - 1
"""No timestamp is larger."""


def expired_count(
    files: Files,
    sealed: Sequence[Segment],
    settings: LogSettings,
    *,
    active: Segment,
    size_bytes: int,
    now_ms: int,
    end_offset: Offset,
) -> int:
    """How many of the oldest segments retention removes; only such as lie below `end_offset`."""
    count = 0
    behind = _TimesBehind(files, [*sealed, active])
    for segment in sealed:
        if segment.end_offset > end_offset:
            break
        too_large = settings.retention_bytes >= 0 and (
            size_bytes - segment.size_bytes >= settings.retention_bytes
        )
        if not too_large and not _is_too_old(files, segment, settings, now_ms, behind, count):
            break
        size_bytes -= segment.size_bytes
        count += 1
    return count


def is_roll_due(files: Files, active: Segment, settings: LogSettings, now_ms: int) -> bool:
    """Whether the segment that is written to is to be closed: by age, or to be removed."""
    if active.size_bytes == 0:
        return False
    # It is yet to come where the clock was ahead when it was noted.
    if active.first_seen_ms is None or active.first_seen_ms > now_ms:
        active.first_seen_ms = first_time_ms(active, now_ms)
    if now_ms - active.first_seen_ms >= _open_ms_max(active, settings):
        return True
    return _is_too_old(files, active, settings, now_ms)


def rolls_above_ms(files: Files, active: Segment, settings: LogSettings) -> int:
    """A batch with a larger timestamp than this is not to be appended to a segment that has some.

    A segment that cannot be read here says nothing: no append is to be refused for that.
    """
    try:
        first, modified_ms = active.header_at(0), files.modified_ms(active.path)
    except OSError:
        return _NEVER_MS
    if first is None or not 0 <= first.max_timestamp <= modified_ms + _AHEAD_MS_MAX:
        return _NEVER_MS
    return first.max_timestamp + _open_ms_max(active, settings)


def _open_ms_max(segment: Segment, settings: LogSettings) -> int:
    """How long a segment is appended to. By `segment.jitter.ms` it may be less, for each segment
    another time, so that logs which began together do not roll together; and always the same for
    one, so that there is nothing to remember."""
    jitter_ms = min(settings.segment_jitter_ms, settings.segment_ms)
    if not jitter_ms:
        return settings.segment_ms
    return settings.segment_ms - crc32c(segment.path.encode()) % jitter_ms


class _TimesBehind:
    """The earliest file's time of the segments behind each, which were begun after its last record
    came. They are asked for at most once: a clock may have been ahead for thousands of them."""

    def __init__(self, files: Files, segments: Sequence[Segment]) -> None:
        self._files = files
        self._segments = segments
        self._earliest: list[int] = []

    def earliest_ms(self, number: int) -> int:
        """Of those behind this one. The first to be asked about is the first of all."""
        if not self._earliest:
            behind = self._segments[:number:-1]
            times = accumulate((self._files.modified_ms(each.path) for each in behind), min)
            self._earliest = list(times)
        return self._earliest[len(self._segments) - 2 - number]


def _is_too_old(
    files: Files,
    segment: Segment,
    settings: LogSettings,
    now_ms: int,
    behind: _TimesBehind | None = None,
    number: int = 0,
) -> bool:
    """`number` is the segment's among those that `behind` knows."""
    if settings.retention_ms < 0:
        return False
    last_ms = last_time_ms(files, segment)
    if last_ms > now_ms and behind is not None:
        last_ms = min(last_ms, behind.earliest_ms(number))
    return now_ms - last_ms > settings.retention_ms


def last_time_ms(files: Files, segment: Segment) -> int:
    """The time of the latest record, as far as it can be true."""
    modified_ms = files.modified_ms(segment.path)
    largest = segment.index.largest
    return modified_ms if largest is None else min(largest.timestamp_ms, modified_ms)


def first_time_ms(segment: Segment, now_ms: int) -> int:
    """The time of the first batch; now, if it states none or one that is yet to come."""
    for _, header in segment.batches_from(0):
        if 0 <= header.max_timestamp <= now_ms:
            return header.max_timestamp
        break
    return now_ms


@dataclass(frozen=True, slots=True)
class Removal:
    """Segments that are no longer part of their log, whose files are still to be removed.

    Removing a gigabyte takes the file system long enough to do it on another thread. The log's
    new start offset should be durable before, but need not: the oldest go first, each name synced
    before the next goes, so a crash leaves a shorter removal and never a gap.
    """

    home: LogHome
    state: SyncState
    beginning: int
    """What the state's `beginnings` were when the segments were part of the log."""
    segments: tuple[Segment, ...]
    recycled_batch_bytes: int = -1
    """The last of their files is kept for the log's next segment, if its batches have so much on
    average; -1: it is not."""

    @classmethod
    def of(
        cls,
        home: LogHome,
        state: SyncState,
        segments: tuple[Segment, ...],
        *,
        recycled_batch_bytes: int = -1,
    ) -> Self:
        """Of segments that are part of the log no longer since now."""
        return cls(home, state, state.beginnings, segments, recycled_batch_bytes)

    def __len__(self) -> int:
        return len(self.segments)

    def run(self) -> None:
        """Remove the files, unless the log was given up or reset since. Blocking; on any thread.

        Raises `OSError`; it may be repeated, unless the log has failed by it.
        """
        for segment in self.segments:
            is_recycled = self.recycled_batch_bytes >= 0 and segment is self.segments[-1]
            with self.state.lock:
                # They are known by their names, which a topic made anew gives to its own, and a
                # log that was reset to where it once began.
                if self.state.is_given_up or self.beginning != self.state.beginnings:
                    return
                if is_recycled:
                    self.home.recycle(segment, self.state.recycled)
                else:
                    self.home.remove_files(segment)
            try:
                self.home.sync()
            except SyncFailed as error:
                self.state.failure = error  # of other names, too, nothing is known since
                raise
            if is_recycled:
                self.state.recycled.settle()
                self.offer()

    def offer(self) -> None:
        """Have the file that was kept written over by the log's next segment, if nobody reads it
        or may yet. Blocking; on any thread. Raises `OSError`."""
        recycled = self.state.recycled
        file = recycled.prepared(self.recycled_batch_bytes)
        with self.state.lock:
            # What has begun anew since may come to offsets that are in that file.
            if file is not None and self.beginning == self.state.beginnings:
                recycled.offer(file)
