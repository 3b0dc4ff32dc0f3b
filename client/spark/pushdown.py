"""Filters of a query as narrower ranges: what need not be fetched is not. Pure.

Filters on topic and partition leave partitions out, and filters on the offset move the ends of
ranges: they are done with. A filter on the timestamp only moves where reading begins, to the first
record of that time or later; records need not be in the order of their times, so Spark applies it
as well. Every other filter is Spark's.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from typing import Final

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

from tidemark.client.spark.ranges import OffsetRange
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass

_NEVER_NULL: Final = frozenset({("topic",), ("partition",), ("offset",)})
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(slots=True)
class Numbers:
    """The whole numbers from `low` to `high` (exclusive) that are among `only`."""

    low: int | None = None
    high: int | None = None
    only: frozenset[int] | None = None

    def narrow(self, wanted: Filter) -> bool:
        """Take a filter in; whether it is one that this can say."""
        match wanted:
            case EqualTo(_, int(value)):
                self._keep_only({value})
            case In(_, values) if all(isinstance(value, int) for value in values):
                self._keep_only(set(values))
            case GreaterThan(_, int(value)):
                self._raise_low(value + 1)
            case GreaterThanOrEqual(_, int(value)):
                self._raise_low(value)
            case LessThan(_, int(value)):
                self._lower_high(value)
            case LessThanOrEqual(_, int(value)):
                self._lower_high(value + 1)
            case _:
                return False
        return True

    def __contains__(self, number: int) -> bool:
        return (
            (self.low is None or number >= self.low)
            and (self.high is None or number < self.high)
            and (self.only is None or number in self.only)
        )

    def _keep_only(self, values: set[int]) -> None:
        self.only = frozenset(values if self.only is None else values & self.only)

    def _raise_low(self, low: int) -> None:
        self.low = low if self.low is None else max(low, self.low)

    def _lower_high(self, high: int) -> None:
        self.high = high if self.high is None else min(high, self.high)


@dataclass(slots=True)
class Pushed:
    """What the filters that were pushed down leave to be read."""

    topics: frozenset[str] | None = None
    partitions: Numbers = field(default_factory=Numbers)
    offsets: Numbers = field(default_factory=Numbers)
    since_ms: int | None = None

    def take(self, filters: Iterable[Filter]) -> list[Filter]:
        """Take in what can be; the filters that Spark must apply itself."""
        return [wanted for wanted in filters if not self._take(wanted)]

    def _take(self, wanted: Filter) -> bool:
        """Whether the filter is done with."""
        match wanted:
            case IsNotNull(attribute):
                return attribute in _NEVER_NULL
            case EqualTo(("topic",), str(topic)):
                self._keep_topics({topic})
                return True
            case In(("topic",), topics) if all(isinstance(topic, str) for topic in topics):
                self._keep_topics(set(topics))
                return True
            case (
                EqualTo(("timestamp",), datetime() as moment)
                | GreaterThan(("timestamp",), datetime() as moment)
                | GreaterThanOrEqual(("timestamp",), datetime() as moment)
            ) if moment.tzinfo is not None:
                self._raise_since(moment)
                return False
            case _ if getattr(wanted, "attribute", None) == ("partition",):
                return self.partitions.narrow(wanted)
            case _ if getattr(wanted, "attribute", None) == ("offset",):
                # A set of offsets is a range with gaps: Spark leaves those out.
                return self.offsets.narrow(wanted) and not isinstance(wanted, In)
            case _:
                return False

    def keeps(self, tp: TopicPartition) -> bool:
        """Whether records of this partition may be wanted."""
        return (self.topics is None or tp.topic in self.topics) and tp.partition in self.partitions

    def clip(self, whole: OffsetRange, since: Mapping[TopicPartition, int | None]) -> OffsetRange:
        """What of a range may be wanted; `since` has the offsets of `since_ms`, if there is one."""
        tp, start, end = whole.topic_partition, whole.start, whole.end
        only = self.offsets.only
        if only is not None:
            start, end = (
                max(start, min(only, default=end)),
                min(end, max(only, default=start - 1) + 1),
            )
        if self.offsets.low is not None:
            start = max(start, self.offsets.low)
        if self.offsets.high is not None:
            end = min(end, self.offsets.high)
        if self.since_ms is not None:
            first = since[tp]
            start = end if first is None else max(start, first)
        return OffsetRange(tp, start, max(start, end))

    def _keep_topics(self, topics: set[str]) -> None:
        self.topics = frozenset(topics if self.topics is None else topics & self.topics)

    def _raise_since(self, moment: datetime) -> None:
        # Rounded down: records' times are whole milliseconds, Spark's are not.
        milliseconds = (moment - datetime.fromtimestamp(0, moment.tzinfo)) // _MILLISECOND
        # A look-up of 0 would leave out records without a time, which have -1.
        if milliseconds > 0:
            self.since_ms = max(milliseconds, self.since_ms or 0)
