import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.spark.ranges import OffsetRange, limit_rows, resolve, split
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BEGINNINGS, ENDS = {A: 3, B: 0}, {A: 10, B: 20}

SIZES = st.lists(st.integers(0, 1000), min_size=1, max_size=6)


def ranges_of(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", i), 5, 5 + size) for i, size in enumerate(sizes)]


def test_a_word_or_a_number_below_zero_means_an_end_of_the_log() -> None:
    def at(place: object) -> dict[TopicPartition, int]:
        return resolve(place, [A, B], BEGINNINGS, ENDS, option="x")  # type: ignore[arg-type] # brief

    assert at("earliest") == BEGINNINGS
    assert at("latest") == ENDS
    assert at({A: -2, B: -1}) == {A: 3, B: 20}
    assert at({A: 7, B: 8}) == {A: 7, B: 8}


@pytest.mark.parametrize("place", [{A: 1}, {A: 1, B: 1, TopicPartition("u", 0): 1}], ids=len)
def test_offsets_name_every_partition_and_no_other(place: dict[TopicPartition, int]) -> None:
    with pytest.raises(ConfigError, match="startingOffsets"):
        resolve(place, [A, B], BEGINNINGS, ENDS, option="startingOffsets")


@given(sizes=SIZES, at_least=st.integers(0, 20))
def test_split_ranges_are_the_same_offsets_in_at_least_so_many_pieces(
    sizes: list[int], at_least: int
) -> None:
    pieces = split(ranges_of(sizes), at_least)
    for whole in ranges_of(sizes):
        mine = [one for one in pieces if one.topic_partition == whole.topic_partition]
        offsets = [offset for one in mine for offset in range(one.start, one.end)]
        assert offsets == list(range(whole.start, whole.end))
    assert all(one.size > 0 for one in pieces)
    assert len(pieces) >= min(at_least, sum(sizes))


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
