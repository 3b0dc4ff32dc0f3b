import pickle
from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.spark.places import AtTimes, Place, Side
from tidemark.client.spark.ranges import OffsetRange, limit_rows, resolve, split
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BEGINNINGS, ENDS = {A: 3, B: 0}, {A: 10, B: 20}

SIZES = st.lists(st.integers(0, 1000), min_size=1, max_size=6)


def ranges_of(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", i), 5, 5 + size) for i, size in enumerate(sizes)]


class Log:
    """A cluster's answers: a record a second from the time 0 on."""

    def beginnings(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: BEGINNINGS[tp] for tp in partitions}

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: ENDS[tp] for tp in partitions}

    def at_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        seconds = {tp: time // 1000 for tp, time in times.items()}
        return {tp: second if second < ENDS[tp] else None for tp, second in seconds.items()}


def at(place: Place, side: Side = "starting") -> dict[TopicPartition, int]:
    return resolve(place, [A, B], Log(), side)


def test_a_word_or_a_number_below_zero_means_an_end_of_the_log() -> None:
    assert at("earliest") == BEGINNINGS
    assert at("latest") == ENDS
    assert at({A: -2, B: -1}) == {A: 3, B: 20}
    assert at({A: 7, B: 8}) == {A: 7, B: 8}


def test_a_time_means_the_first_record_that_is_not_earlier() -> None:
    assert at(AtTimes(5000, False)) == {A: 5, B: 5}
    assert at(AtTimes({A: 4000, B: 15000}, False)) == {A: 4, B: 15}


def test_a_time_after_the_last_record_is_the_end_or_an_error() -> None:
    assert at(AtTimes(12000, True)) == {A: 10, B: 12}
    with pytest.raises(ConfigError, match=r"startingTimestamp is after the last record of t-0"):
        at(AtTimes(12000, False))
    with pytest.raises(ConfigError, match="startingOffsetsByTimestampStrategy"):
        at(AtTimes({A: 1, B: 99000}, False))


@pytest.mark.parametrize("named", [{A: 1}, {A: 1, B: 1, TopicPartition("u", 0): 1}], ids=len)
def test_offsets_name_every_partition_and_no_other(named: dict[TopicPartition, int]) -> None:
    with pytest.raises(ConfigError, match="startingOffsets"):
        at(named)
    with pytest.raises(ConfigError, match="endingOffsetsByTimestamp"):
        at(AtTimes(named, True), "ending")


@given(sizes=SIZES, at_least=st.integers(0, 20), records_max=st.none() | st.integers(1, 400))
def test_split_ranges_are_the_same_offsets_in_at_least_so_many_pieces(
    sizes: list[int], at_least: int, records_max: int | None
) -> None:
    pieces = split(ranges_of(sizes), at_least, records_max=records_max)
    for whole in ranges_of(sizes):
        mine = [one for one in pieces if one.topic_partition == whole.topic_partition]
        offsets = [offset for one in mine for offset in range(one.start, one.end)]
        assert offsets == list(range(whole.start, whole.end))
    assert all(one.size > 0 for one in pieces)
    assert len(pieces) >= min(at_least, sum(sizes))
    assert all(records_max is None or one.size <= records_max for one in pieces)


@given(sizes=SIZES, rows_max=st.integers(1, 500))
def test_a_limit_is_shared_out_and_leaves_no_partition_behind(
    sizes: list[int], rows_max: int
) -> None:
    ranges = ranges_of(sizes)
    starts = {one.topic_partition: one.start for one in ranges}
    ends = {one.topic_partition: one.end for one in ranges}
    limited = limit_rows(starts, ends, rows_max)
    taken = {tp: limited[tp] - starts[tp] for tp in limited}
    assert all(0 <= taken[one.topic_partition] <= one.size for one in ranges)
    assert all(taken[one.topic_partition] > 0 for one in ranges if one.size)
    assert sum(taken.values()) < rows_max + len(sizes)
    if sum(sizes) <= rows_max:
        assert limited == ends


def test_a_range_travels_to_its_task() -> None:
    assert pickle.loads(pickle.dumps(OffsetRange(A, 1, 2))) == OffsetRange(A, 1, 2)
