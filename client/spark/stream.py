"""Reading what comes, batch by batch.

A stream's offset is `{"topic": {"0": 5, "1": 7}}`: for each partition, where the next batch begins.
Spark writes the end of each batch down before it runs it, and asks for the same batch again after a
crash. Two things it does not do, and what is done about them:

1. It does not write down where the first batch *begins*. It asks for the initial offset again, even
   without a crash, and with `latest` that would be another one by then: records would be lost. So
   the end of the first batch says itself where it begins, under `@from`; the initial offset carries
   `@initial`, by which the first batch is known. Where nothing is new yet, Spark runs a first batch
   that ends at the initial offset, and is empty; then the second batch is the one with `@from`.
2. It compares offsets as JSON text. So the order of keys is fixed, and where nothing is new, the
   very start is returned.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from tidemark.client.spark.driver import Driver, report_loss
from tidemark.client.spark.options import SourceOptions
from tidemark.client.spark.ranges import OffsetRange, Offsets, limit_rows, resolve, split
from tidemark.client.spark.task import read_range
from tidemark.protocol.types import TopicPartition

StreamOffset = dict[str, Any]  # Spark's JSON

# No topic has such a name.
_INITIAL: Final = "@initial"
_FROM: Final = "@from"


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in one process for the whole query, and as a copy in every task."""

    def __init__(self, options: SourceOptions, names: tuple[str, ...]) -> None:
        self._options = options
        self._names = names
        self._driver = Driver(options)
        self._initial: StreamOffset | None = None
        self._target: dict[TopicPartition, int] | None = None
        self._last_batch: float | None = None  # by the monotonic clock

    def __reduce__(self) -> tuple[type["StreamReader"], tuple[SourceOptions, tuple[str, ...]]]:
        """A copy in a task has connections of its own."""
        return StreamReader, (self._options, self._names)

    def initialOffset(self) -> StreamOffset:
        if self._initial is None:
            # With a target, no partition that is younger than it.
            partitions = self._driver.partitions() if self._target is None else [*self._target]
            offsets = resolve(self._options.starting, partitions, self._driver, "starting")
            if self._target is not None:
                # What begins at the end may begin after the target, which was set before.
                ends = self._driver.ends(partitions)
                target = self._target.items()
                self._target = {tp: max(end, min(offsets[tp], ends[tp])) for tp, end in target}
            self._initial = {_INITIAL: True, **to_json(offsets)}
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        # With Trigger.Once, Spark asks for all that there is instead, whatever is said here.
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._driver.recent_ends()

    def latestOffset(self, start: StreamOffset, limit: ReadLimit) -> StreamOffset:
        """The end of the next batch; `start` itself if there is nothing for one."""
        starts = from_json(start)
        ends = self._ends(starts)
        starts |= self._driver.beginnings([tp for tp in ends if tp not in starts])
        if not isinstance(limit, ReadAllAvailable) and self._waits_for_more(starts, ends):
            return start
        if isinstance(limit, ReadMaxRows):
            ends = limit_rows(starts, ends, limit.max_rows)
        if ends == from_json(start):
            return start
        self._last_batch = time.monotonic()
        end = to_json(ends)
        return {_FROM: to_json(from_json(start)), **end} if _INITIAL in start else end

    def _waits_for_more(self, starts: Offsets, ends: Offsets) -> bool:
        """Whether there are fewer records than minOffsetsPerTrigger, and not for too long yet."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._last_batch is None or self._target is not None:
            return False
        waited_seconds = time.monotonic() - self._last_batch
        new = sum(max(0, end - starts[tp]) for tp, end in ends.items())
        return new < least and waited_seconds < self._options.max_trigger_delay_seconds

    def reportLatestOffset(self) -> StreamOffset:
        return to_json(self._driver.recent_ends())

    def partitions(self, start: StreamOffset, end: StreamOffset) -> Sequence[OffsetRange]:
        if start == end or _INITIAL in end:
            return []
        starts, planned = from_json(end.get(_FROM, start)), from_json(end)
        # After a restart, the log may have changed since the batch was planned.
        log_ends = self._log_ends(planned)
        ends = {tp: planned[tp] for tp in sorted(planned) if tp in log_ends}
        for tp in planned.keys() - ends.keys():
            if starts.get(tp) != planned[tp]:
                self._report_gone(tp)
        new = [tp for tp in ends if tp not in starts]
        beginnings = self._driver.beginnings(ends)
        starts |= {tp: beginnings[tp] for tp in new}
        ranges = [
            self._there(OffsetRange(tp, starts[tp], ends[tp]), beginnings[tp], log_ends[tp])
            for tp in ends
        ]
        return split(
            ranges,
            self._options.min_partitions,
            records_max=self._options.max_records_per_partition,
        )

    def _there(self, planned: OffsetRange, beginning: int, end: int) -> OffsetRange:
        """What of a range the log, from `beginning` to `end`, has; what it has not is a loss."""
        tp = planned.topic_partition
        anew = "(was the topic made anew? then begin with a new checkpoint)"
        if planned.end < planned.start:
            report_loss(
                self._options,
                f"{tp} ends at {planned.end}, but has been read to {planned.start} according to the"
                f" checkpoint {anew}",
            )
        elif planned.size and end < planned.end:
            report_loss(
                self._options,
                f"{tp} ends at {end}, before {planned.end}, where the batch ends according to the"
                f" checkpoint {anew}",
            )
        elif planned.start < beginning:
            report_loss(
                self._options,
                f"{tp}: the records from {planned.start} to {beginning} are not there any more"
                " (retention, or records deleted), and the checkpoint goes on at"
                f" {planned.start}",
            )
        return OffsetRange(tp, max(planned.start, beginning), min(planned.end, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(self._options, self._names, partition)

    def stop(self) -> None:
        # Spark calls this only after an error; otherwise the process ends, and so do connections.
        self._driver.close()

    def _ends(self, starts: Offsets) -> dict[TopicPartition, int]:
        """How far there is something to read, in the partitions there are."""
        ends = self._log_ends(starts) if self._target is None else dict(self._target)
        for tp in starts:
            if tp not in ends:
                self._report_gone(tp)
        return ends

    def _log_ends(self, reached: Offsets) -> dict[TopicPartition, int]:
        """Where the logs of all partitions end; looked up anew where that seems to be before what
        is `reached`, which is not a loss yet."""
        ends = self._driver.recent_ends()
        if any(end < reached.get(tp, end) for tp, end in ends.items()):
            ends = self._driver.ends_now()
        return ends

    def _report_gone(self, tp: TopicPartition) -> None:
        report_loss(
            self._options,
            f"{tp}, which was being read, is not there any more (was the topic deleted, or made"
            " anew with fewer partitions? then begin with a new checkpoint)",
        )


def to_json(offsets: Offsets) -> StreamOffset:
    """Topics and partitions in order, which is what makes equal offsets equal as text."""
    json: StreamOffset = {}
    for tp in sorted(offsets):
        json.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return json


def from_json(offset: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """The partitions' offsets, without the marks."""
    return {
        TopicPartition(topic, int(partition)): position
        for topic, partitions in offset.items()
        if not topic.startswith("@")
        for partition, position in partitions.items()
    }
