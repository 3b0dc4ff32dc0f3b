from itertools import pairwise
from random import Random

import pytest
from aiokafka.partitioner import murmur2 as aiokafka_murmur2
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.partitioner import StickyPartitions, murmur2, murmur2_partition


@pytest.mark.parametrize(
    ("key", "java"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_javas(key: bytes, java: int) -> None:
    assert murmur2(key) == java % 2**32


@given(key=st.binary(max_size=40), partitions=st.integers(1, 100))
def test_a_key_goes_where_other_clients_send_it(key: bytes, partitions: int) -> None:
    theirs = (aiokafka_murmur2(key) & 0x7FFFFFFF) % partitions
    assert murmur2_partition(key, partitions) == theirs


def test_to_move_on_is_to_go_to_another_partition_of_that_topic() -> None:
    sticky = StickyPartitions(Random(7))
    chosen = [sticky.move_on("t", [0, 1, 2]) for _ in range(50)]
    assert all(now != following for now, following in pairwise(chosen))
    assert {sticky.move_on(f"u{index}", [0, 1]) for index in range(50)} == {0, 1}


def test_with_one_partition_there_is_nowhere_else_to_go() -> None:
    sticky = StickyPartitions(Random(7))
    assert [sticky.move_on("t", [3]) for _ in range(3)] == [3, 3, 3]


def test_all_partitions_get_their_share() -> None:
    sticky = StickyPartitions(Random(7))
    chosen = [sticky.move_on("t", range(4)) for _ in range(4000)]
    assert all(800 < chosen.count(partition) < 1200 for partition in range(4))
