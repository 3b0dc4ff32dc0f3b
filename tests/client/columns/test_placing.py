import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.client.columns.placing import (
    murmur2_partitions,
    place,
    row_bytes,
    split_by_partition,
    split_by_topic,
)
from tidemark.client.partitioner import murmur2_partition
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.records.columns import HEADERS_TYPE, encode_columns

KEYS = st.lists(st.binary(max_size=300), max_size=40)


@given(keys=KEYS, skipped=st.integers(0, 3), partitions=st.integers(1, 2000))
def test_many_keys_are_placed_as_each_of_them_is(
    keys: list[bytes], skipped: int, partitions: int
) -> None:
    array = pa.array(keys, pa.binary())[skipped:]
    expected = [murmur2_partition(key, partitions) for key in keys[skipped:]]
    assert murmur2_partitions(array, partitions).tolist() == expected


def rows(**columns: list[object]) -> pa.RecordBatch:
    types = {"key": pa.binary(), "value": pa.binary(), "partition": pa.int32()}
    types |= {"topic": pa.string(), "headers": HEADERS_TYPE}
    return pa.record_batch(
        {name: pa.array(values, types[name]) for name, values in columns.items()}
    )


def test_the_column_decides_then_the_key_then_chance() -> None:
    batch = rows(key=[b"a", b"b", None, None], partition=[None, 2, 1, None])
    placed = place(batch, "t", 3, keyless=0)
    assert placed.tolist() == [murmur2_partition(b"a", 3), 2, 1, 0]
    assert place(rows(value=[b"x"]), "t", 3, keyless=2).tolist() == [2]


@pytest.mark.parametrize("partition", [-1, 3])
def test_a_partition_that_the_topic_lacks_is_refused(partition: int) -> None:
    with pytest.raises(
        ConfigError, match=f"partition has {partition}.*t has the partitions 0 to 2"
    ):
        place(rows(partition=[0, partition]), "t", 3, keyless=0)


def test_rows_are_told_apart_by_topic() -> None:
    batch = rows(topic=["a", "b", "a"], value=[b"1", b"2", b"3"])
    assert [(topic, own["value"].to_pylist()) for topic, own in split_by_topic(batch, None)] == [
        ("a", [b"1", b"3"]),
        ("b", [b"2"]),
    ]
    assert [topic for topic, _ in split_by_topic(batch, "fixed")] == ["fixed"]
    with pytest.raises(ConfigError, match="no topic"):
        list(split_by_topic(rows(topic=["a", None]), None))


@given(
    sizes=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 500)), min_size=1, max_size=60),
    bytes_max=st.integers(30, 2000),
)
def test_pieces_are_all_rows_in_their_order_and_no_longer_than_they_may(
    sizes: list[tuple[int, int]], bytes_max: int
) -> None:
    values = [b"%d" % index + bytes(size) for index, (_, size) in enumerate(sizes)]
    batch = rows(value=list(values))
    placed = np.array([partition for partition, _ in sizes], np.int32)
    pieces = list(split_by_partition(batch, "t", placed, bytes_max))
    for partition in range(4):
        own = [piece.rows["value"].to_pylist() for piece in pieces if piece.partition == partition]
        assert [value for part in own for value in part] == [
            value for value, at in zip(values, placed, strict=True) if at == partition
        ]
    for piece in pieces:
        assert piece.rows.num_rows == 1 or row_bytes(piece.rows).sum() <= bytes_max


def test_a_row_is_not_longer_than_it_was_taken_for() -> None:
    batch = rows(
        key=[b"k" * 10, None],
        value=[None, b"v" * 1000],
        headers=[[{"key": "h" * 50, "value": b"x" * 70}, {"key": "i", "value": None}], []],
    )
    for index, size in enumerate(row_bytes(batch)):
        encoded = encode_columns(batch[index : index + 1])
        assert len(encoded) - 61 <= size < len(encoded)
