from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from tidemark.client.spark.pushdown import Pushed
from tidemark.client.spark.ranges import OffsetRange
from tidemark.protocol.types import TopicPartition

TP = TopicPartition("t", 1)
WHOLE = OffsetRange(TP, 10, 20)
TOPIC, PARTITION, OFFSET, TIMESTAMP = ("topic",), ("partition",), ("offset",), ("timestamp",)
MOMENT = datetime(2026, 11, 21, 12, 0, 0, 1500, tzinfo=UTC)
MOMENT_MS = 1_795_262_400_001


def clipped(*filters: Filter) -> tuple[int, int]:
    pushed = Pushed()
    pushed.take(filters)
    one = pushed.clip(WHOLE, {})
    return one.start, one.end


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ([EqualTo(PARTITION, 2)], [2]),
        ([In(PARTITION, (0, 3))], [0, 3]),
        ([GreaterThan(PARTITION, 1), LessThan(PARTITION, 3)], [2]),
        ([GreaterThanOrEqual(PARTITION, 1), LessThanOrEqual(PARTITION, 2)], [1, 2]),
        ([In(PARTITION, (0, 3)), In(PARTITION, (3, 4))], [3]),
        ([EqualTo(TOPIC, "t")], [0, 1, 2, 3]),
        ([In(TOPIC, ("u", "v"))], []),
    ],
)
def test_partitions_are_left_out_and_spark_need_not_look(
    filters: list[Filter], kept: list[int]
) -> None:
    pushed = Pushed()
    assert pushed.take([*filters, IsNotNull(PARTITION)]) == []
    assert [n for n in range(4) if pushed.keeps(TopicPartition("t", n))] == kept


def test_filters_on_the_offset_move_the_ends() -> None:
    assert clipped(GreaterThan(OFFSET, 12), LessThanOrEqual(OFFSET, 15)) == (13, 16)
    assert clipped(GreaterThanOrEqual(OFFSET, 5), LessThan(OFFSET, 99)) == (10, 20)
    assert clipped(EqualTo(OFFSET, 12)) == (12, 13)
    assert clipped(In(OFFSET, (12, 17))) == (12, 18)
    for nothing in (
        [GreaterThan(OFFSET, 50)],
        [LessThan(OFFSET, 3)],
        [EqualTo(OFFSET, 12), EqualTo(OFFSET, 13)],
    ):
        start, end = clipped(*nothing)
        assert start == end


def test_spark_looks_at_what_a_range_cannot_say() -> None:
    filters = [
        In(OFFSET, (12, 17)),
        GreaterThan(TIMESTAMP, MOMENT),
        LessThan(TIMESTAMP, MOMENT),
        EqualTo(("value",), b"x"),
        EqualNullSafe(PARTITION, None),
        Not(EqualTo(PARTITION, 1)),
        StringStartsWith(TOPIC, "t"),
        IsNotNull(("key",)),
        IsNotNull(TIMESTAMP),  # it is null where Spark's reach no further
    ]
    assert Pushed().take(filters) == filters


@pytest.mark.parametrize("kind", [EqualTo, GreaterThan, GreaterThanOrEqual])
def test_a_time_moves_where_reading_begins(kind: type[EqualTo]) -> None:
    pushed = Pushed()
    pushed.take([kind(TIMESTAMP, MOMENT.astimezone(timezone(timedelta(hours=2))))])
    pushed.take([kind(TIMESTAMP, MOMENT - timedelta(hours=1))])
    assert pushed.since_ms == MOMENT_MS, "the latest, rounded down to a millisecond"
    assert pushed.clip(WHOLE, {TP: 14}) == OffsetRange(TP, 14, 20)
    assert pushed.clip(WHOLE, {TP: 4}) == WHOLE
    assert pushed.clip(WHOLE, {TP: None}).size == 0


def test_a_time_before_1970_leaves_no_record_out() -> None:
    """Those without a time, for one, whose time is -1."""
    pushed = Pushed()
    assert pushed.take([GreaterThan(TIMESTAMP, datetime(1969, 7, 20, tzinfo=UTC))])
    assert pushed.since_ms is None
    assert pushed.clip(WHOLE, {}) == WHOLE
