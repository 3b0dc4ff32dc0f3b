"""The stream reader against a driver that answers from a dictionary."""

import json
import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from tidemark.client.spark.committing import read_end
from tidemark.client.spark.driver import DataLoss
from tidemark.client.spark.options import read_options
from tidemark.client.spark.ranges import OffsetRange
from tidemark.client.spark.stream import StreamReader, from_json, to_json
from tidemark.protocol.types import TopicPartition

ALL = ReadAllAvailable()


def tp(partition: int) -> TopicPartition:
    return TopicPartition("t", partition)


class Log:
    """A cluster's answers, in the place of `Driver`."""

    def __init__(self, ends: dict[int, int]) -> None:
        self.log = {tp(partition): (0, end) for partition, end in ends.items()}

    def grow(self, partition: int, end: int, beginning: int = 0) -> None:
        self.log[tp(partition)] = (beginning, end)

    def partitions(self) -> list[TopicPartition]:
        return sorted(self.log)

    def beginnings(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {one: self.log[one][0] for one in partitions}

    def ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        return {one: self.log[one][1] for one in partitions}

    def at_times(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {one: time if time < self.log[one][1] else None for one, time in times.items()}

    def recent_ends(self) -> dict[TopicPartition, int]:
        return self.ends(self.partitions())

    ends_now = recent_ends


def reader(log: Log, **options: str) -> StreamReader:
    given = {"bootstrap": "h:1", "subscribe": "t", **options}
    made = StreamReader(read_options(given, streaming=True), ("value",))
    made._driver = log  # type: ignore[assignment] # the seam of this test
    return made


def spoken(offset: dict[str, object]) -> dict[str, object]:
    """The offset as Spark gives it back: through JSON."""
    again: dict[str, object] = json.loads(json.dumps(offset))
    return again


def test_a_stream_from_latest_reads_what_comes_after_it_began() -> None:
    log = Log({0: 10})
    stream = reader(log)
    start = spoken(stream.initialOffset())
    log.grow(0, 13)
    end = spoken(stream.latestOffset(start, ALL))
    assert stream.partitions(start, end) == [OffsetRange(tp(0), 10, 13)]


def test_the_first_batch_begins_where_it_began_though_spark_asks_again() -> None:
    log = Log({0: 10})
    first = reader(log)
    end = spoken(first.latestOffset(spoken(first.initialOffset()), ALL))
    assert end == {"@initial": True, "t": {"0": 10}}, "nothing new: the start itself"
    log.grow(0, 15)
    end = spoken(first.latestOffset(spoken(first.initialOffset()), ALL))
    # A crash before the batch is done; more records come, and another process asks again.
    log.grow(0, 99)
    restarted = reader(log)
    start = spoken(restarted.initialOffset())
    assert from_json(start) == {tp(0): 99}
    assert restarted.partitions(start, end) == [OffsetRange(tp(0), 10, 15)]
    following = spoken(restarted.latestOffset(end, ALL))
    assert restarted.partitions(end, following) == [OffsetRange(tp(0), 15, 99)]
    assert "@from" not in following


def test_an_empty_first_batch_that_failed_is_still_empty_when_it_is_run_again() -> None:
    log = Log({0: 10})
    first = reader(log)
    end = spoken(first.latestOffset(spoken(first.initialOffset()), ALL))
    log.grow(0, 15)
    restarted = reader(log)
    assert restarted.partitions(spoken(restarted.initialOffset()), end) == []
    log.grow(0, 20)
    following = spoken(restarted.latestOffset(end, ALL))
    assert restarted.partitions(end, following) == [OffsetRange(tp(0), 10, 20)]


def test_the_initial_offset_is_the_same_each_time_it_is_asked_for() -> None:
    log = Log({0: 1})
    stream = reader(log)
    first = stream.initialOffset()
    log.grow(0, 5)
    assert stream.initialOffset() == first


def test_offsets_are_the_same_text_in_whatever_order_they_come() -> None:
    offsets = {TopicPartition("b", 10): 1, TopicPartition("b", 9): 2, TopicPartition("a", 0): 3}
    text = '{"a": {"0": 3}, "b": {"9": 2, "10": 1}}'
    assert json.dumps(to_json(offsets)) == text
    assert json.dumps(to_json(dict(reversed(offsets.items())))) == text
    assert from_json(json.loads(text)) == offsets


def test_where_nothing_is_new_the_start_itself_comes_back() -> None:
    stream = reader(Log({0: 10}))
    for start in ({"t": {"0": 10}}, {"@from": {"t": {"0": 1}}, "t": {"0": 10}}):
        assert stream.latestOffset(start, ALL) is start
        assert stream.partitions(start, start) == []


def test_a_limit_holds_back_what_is_over_it() -> None:
    stream = reader(Log({0: 1000, 1: 100}), maxOffsetsPerTrigger="110", startingOffsets="earliest")
    assert stream.getDefaultReadLimit() == ReadMaxRows(110)
    start = stream.initialOffset()
    assert from_json(stream.latestOffset(start, ReadMaxRows(110))) == {tp(0): 100, tp(1): 10}
    assert from_json(stream.latestOffset(start, ALL)) == {tp(0): 1000, tp(1): 100}


def test_a_stream_may_begin_at_a_time() -> None:
    log = Log({0: 10, 1: 5})
    stream = reader(log, startingTimestamp="7", startingOffsetsByTimestampStrategy="latest")
    assert from_json(stream.initialOffset()) == {tp(0): 7, tp(1): 5}


def test_a_batch_waits_for_enough_records_but_the_first_for_none() -> None:
    log = Log({0: 3})
    stream = reader(log, minOffsetsPerTrigger="10", startingOffsets="earliest")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMinRows(10)
    first = spoken(stream.latestOffset(spoken(stream.initialOffset()), limit))
    assert from_json(first) == {tp(0): 3}
    log.grow(0, 12)
    assert stream.latestOffset(first, limit) is first
    assert from_json(stream.latestOffset(first, ALL)) == {tp(0): 12}, "Trigger.Once waits for none"
    log.grow(0, 13)
    assert from_json(stream.latestOffset(first, limit)) == {tp(0): 13}


def test_a_batch_waits_no_longer_than_it_may() -> None:
    log = Log({0: 3})
    options = {"minOffsetsPerTrigger": "10", "maxOffsetsPerTrigger": "10", "maxTriggerDelay": "0s"}
    stream = reader(log, startingOffsets="earliest", **options)
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    first = spoken(stream.latestOffset(spoken(stream.initialOffset()), limit))
    log.grow(0, 4)
    assert from_json(stream.latestOffset(first, limit)) == {tp(0): 4}


def test_available_now_does_not_wait_for_enough_records() -> None:
    log = Log({0: 3})
    stream = reader(
        log, minOffsetsPerTrigger="2", maxOffsetsPerTrigger="2", startingOffsets="earliest"
    )
    stream.prepareForTriggerAvailableNow()
    limit = stream.getDefaultReadLimit()
    start = spoken(stream.initialOffset())
    first = spoken(stream.latestOffset(start, limit))
    assert from_json(first) == {tp(0): 2}
    assert from_json(stream.latestOffset(first, limit)) == {tp(0): 3}


def test_a_partition_that_is_added_is_read_from_its_beginning() -> None:
    log = Log({0: 10})
    stream = reader(log)
    start = {"t": {"0": 10}}
    log.grow(1, 7, beginning=2)
    end = stream.latestOffset(start, ALL)
    assert stream.partitions(start, end) == [OffsetRange(tp(1), 2, 7)]


def test_available_now_stops_at_what_was_there() -> None:
    log = Log({0: 10})
    stream = reader(log, startingOffsets="earliest")
    stream.prepareForTriggerAvailableNow()
    log.grow(0, 50)
    log.grow(1, 5)
    end = stream.latestOffset(stream.initialOffset(), ALL)
    assert from_json(end) == {tp(0): 10}
    assert stream.latestOffset(end, ALL) is end


def test_available_now_that_begins_after_its_target_reads_nothing() -> None:
    log = Log({0: 10})
    stream = reader(log)
    stream.prepareForTriggerAvailableNow()
    log.grow(0, 12)
    start = stream.initialOffset()
    assert stream.latestOffset(start, ALL) is start


def test_available_now_that_is_to_begin_behind_the_end_is_an_error() -> None:
    stream = reader(Log({0: 10}), startingOffsets='{"t": {"0": 11}}')
    stream.prepareForTriggerAvailableNow()
    start = spoken(stream.initialOffset())
    with pytest.raises(DataLoss, match="ends at 10"):
        stream.partitions(start, spoken(stream.latestOffset(start, ALL)))


@pytest.mark.parametrize("is_available_now", [False, True])
@pytest.mark.parametrize(
    ("beginning", "end", "what"),
    [(8, 20, "not there any more"), (0, 3, "ends at 3")],
    ids=["retention", "made anew"],
)
def test_lost_records_are_an_error(
    beginning: int, end: int, what: str, is_available_now: bool
) -> None:
    log = Log({0: 10})
    stream = reader(log)
    start = {"t": {"0": 5}}
    log.grow(0, end, beginning)
    if is_available_now:
        stream.prepareForTriggerAvailableNow()
    with pytest.raises(DataLoss, match=what):
        stream.partitions(start, spoken(stream.latestOffset(start, ALL)))


def test_lost_records_may_be_gone_on_without() -> None:
    log = Log({0: 10})
    stream = reader(log, failOnDataLoss="false")
    start = {"t": {"0": 5}}
    log.grow(0, 20, beginning=8)
    end = stream.latestOffset(start, ALL)
    assert stream.partitions(start, end) == [OffsetRange(tp(0), 8, 20)]
    log.grow(0, 3)
    lower = stream.latestOffset(end, ALL)
    assert stream.partitions(end, lower) == []
    log.grow(0, 4)
    assert stream.partitions(lower, stream.latestOffset(lower, ALL)) == [OffsetRange(tp(0), 3, 4)]


def test_a_partition_that_is_gone_is_an_error() -> None:
    log = Log({0: 10})
    with pytest.raises(DataLoss, match="t-1"):
        reader(log).latestOffset({"t": {"0": 5, "1": 5}}, ALL)


@pytest.mark.parametrize(
    ("log", "what"),
    [(Log({0: 10, 1: 3}), "t-1 ends at 3, before 8"), (Log({0: 10}), "t-1, which was being read")],
    ids=["made anew", "deleted"],
)
def test_a_planned_batch_that_the_log_has_not_any_more_is_an_error(log: Log, what: str) -> None:
    with pytest.raises(DataLoss, match=what):
        reader(log).partitions({"t": {"0": 5, "1": 0}}, {"t": {"0": 10, "1": 8}})


@pytest.mark.parametrize(
    ("log", "left"),
    [(Log({0: 10, 1: 3}), [OffsetRange(tp(1), 0, 3)]), (Log({0: 10}), [])],
    ids=["made anew", "deleted"],
)
def test_what_the_log_has_of_a_planned_batch_is_read(log: Log, left: list[OffsetRange]) -> None:
    """Else its task would wait for records that nobody may ever write."""
    stream = reader(log, failOnDataLoss="false")
    ranges = stream.partitions({"t": {"0": 5, "1": 0}}, {"t": {"0": 10, "1": 8}})
    assert ranges == [OffsetRange(tp(0), 5, 10), *left]


@pytest.mark.parametrize("end", [None, "", "17", "null", '[{"t": 5}]', '{"t": 5}', "0.5"])
def test_the_end_of_another_source_is_none(end: str | None) -> None:
    assert read_end(end) == {}


def test_the_end_of_a_batch_is_known_with_and_without_marks() -> None:
    for end in ({"t": {"0": 5}}, {"@from": {"t": {"0": 1}}, "t": {"0": 5}}):
        assert read_end(json.dumps(end)) == {tp(0): 5}


def test_making_a_reader_costs_nothing_and_it_travels_without_its_connections() -> None:
    stream = StreamReader(
        read_options({"bootstrap": "192.0.2.1:1", "subscribe": "t"}, streaming=True), ("value",)
    )
    again = pickle.loads(pickle.dumps(stream))
    assert isinstance(again, StreamReader)
    assert again.getDefaultReadLimit() == ALL
