"""Whole topics as columns, against a real broker."""

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from tidemark.client.blocking import BlockingClient, open_client
from tidemark.client.columns import open_writer, read_columns, read_topic, write_topic
from tidemark.client.columns.reading import PIECE_BYTES
from tidemark.client.offsets import AtTime
from tidemark.client.partitioner import murmur2_partition
from tidemark.protocol.errors import ConfigError, ErrorCode, RequestError
from tidemark.protocol.records.columns import encode_columns
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing import BlockingCluster

NOW_MS = int(time.time() * 1000)
COUNT = 30_000


@pytest.fixture
def scripts(tidemark_session: BlockingCluster) -> Iterator[BlockingClient]:
    with open_client(tidemark_session.bootstrap) as client:
        yield client


@pytest.fixture
def here(scripts: BlockingClient, topic: str) -> str:
    scripts.run(scripts.admin.create_topic, topic, partitions=3)
    return topic


def numbered(count: int = COUNT) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "key": [b"%d" % (index % 100) if index % 4 else None for index in range(count)],
            "value": [b"%d" % index for index in range(count)],
            "timestamp": pa.array(
                [NOW_MS + index for index in range(count)], pa.timestamp("ms", tz="UTC")
            ),
        }
    )


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_rows_that_are_written_come_back_where_their_keys_belong(
    tidemark_session: BlockingCluster, here: str, compression: Compression
) -> None:
    bootstrap = tidemark_session.bootstrap
    batches = [numbered()[at : at + 7000] for at in range(0, COUNT, 7000)]
    assert write_topic(bootstrap, here, batches, compression=compression) == COUNT
    table = read_topic(bootstrap, here).read_all()
    assert table.column_names == [
        "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers",
    ]  # fmt: skip
    found = table.to_pylist()
    assert sorted(int(row["value"]) for row in found) == list(range(COUNT))
    for row in found:
        if row["key"] is not None:
            assert row["partition"] == murmur2_partition(row["key"], 3)
    for partition in range(3):
        keyed = [row for row in found if row["partition"] == partition and row["key"]]
        values = [int(row["value"]) for row in keyed]
        assert values == sorted(values), "each partition in the order of the rows"


def test_what_inflates_a_lot_is_read_in_pieces(
    tidemark_session: BlockingCluster, scripts: BlockingClient, here: str
) -> None:
    """Two hundred megabytes are a few kilobytes on the wire."""
    partition = TopicPartition(here, 0)
    batch = encode_columns(
        pa.record_batch({"value": [bytes(10**6)] * 10}), compression=Compression.ZSTD
    )
    with scripts.producer() as producer:
        producer.send_batches((here, 0, batch) for _ in range(20))
    sizes = [
        (rows.num_rows, rows.nbytes)
        for rows in read_columns(tidemark_session.bootstrap, partition, 0, 200)
    ]
    assert sum(rows for rows, _ in sizes) == 200
    assert max(size for _, size in sizes) <= PIECE_BYTES


def test_a_topic_is_read_between_places_in_the_columns_that_are_wanted(
    tidemark_session: BlockingCluster, scripts: BlockingClient, here: str
) -> None:
    rows = numbered(100).append_column("partition", pa.array([1] * 100, pa.int32()))
    write_topic(tidemark_session.bootstrap, here, [rows])
    scripts.run(scripts.admin.delete_records, {TopicPartition(here, 1): Offset(5)})

    def offsets(**places: object) -> list[int]:
        found = read_topic(
            tidemark_session.bootstrap,
            here,
            columns=["offset"],
            **places,  # type: ignore[arg-type]  # as they are written
        ).read_all()
        assert found.column_names == ["offset"]
        column: list[int] = found["offset"].to_pylist()
        return column

    assert offsets() == list(range(5, 100))
    assert offsets(start=3, end=8) == [5, 6, 7]
    assert offsets(start=-4) == [96, 97, 98, 99]
    assert offsets(start=AtTime(NOW_MS + 90), end=AtTime(NOW_MS + 93)) == [90, 91, 92]
    assert offsets(partitions=[0, 2]) == []
    assert offsets(end=10_000) == list(range(5, 100))


def test_one_line_makes_a_frame_of_pandas_polars_and_duckdb(
    tidemark_session: BlockingCluster, here: str
) -> None:
    import duckdb
    import polars

    bootstrap = tidemark_session.bootstrap
    write_topic(bootstrap, here, [numbered(1000)])
    assert len(read_topic(bootstrap, here).read_pandas()) == 1000
    assert polars.DataFrame(read_topic(bootstrap, here)).height == 1000
    relation = duckdb.from_arrow(read_topic(bootstrap, here))
    assert relation.aggregate("count(*), count(key)").fetchall() == [(1000, 750)]


def test_what_is_not_there_is_said(tidemark_session: BlockingCluster, here: str) -> None:
    bootstrap = tidemark_session.bootstrap
    with pytest.raises(ConfigError, match="no column size; there are partition, offset"):
        read_topic(bootstrap, here, columns=["size"])
    with pytest.raises(ConfigError, match="3 partitions, no partition 7"):
        read_topic(bootstrap, here, partitions=[7])
    with pytest.raises(ConfigError, match="topic nowhere is not there; create it"):
        write_topic(bootstrap, "nowhere", [numbered(1)])
    with pytest.raises(ConfigError, match="int64, not binary"):
        write_topic(bootstrap, here, [pa.record_batch({"value": [1, 2]})])


def test_a_row_that_the_broker_refuses_is_an_error(
    tidemark_session: BlockingCluster, here: str
) -> None:
    rows = pa.record_batch({"value": [b"x", bytes(3 << 20), b"y"]})
    with pytest.raises(RequestError) as caught:
        write_topic(tidemark_session.bootstrap, here, [rows])
    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_an_error_in_the_block_leaves_rows_unsent(
    tidemark_session: BlockingCluster, here: str
) -> None:
    def fail() -> None:
        with open_writer(tidemark_session.bootstrap, here) as writer:
            writer.write(numbered(10))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert read_topic(tidemark_session.bootstrap, here).read_all().num_rows == 0


def test_batches_of_different_columns_are_written_in_turn(
    tidemark_session: BlockingCluster, here: str
) -> None:
    bootstrap = tidemark_session.bootstrap
    batches = [
        pa.record_batch({"value": pa.array([b"a"])}),
        pa.record_batch({"key": pa.array([b"k"]), "value": pa.array([b"b"])}),
        pa.record_batch({"value": pa.array([b"c"])}),
    ]
    assert write_topic(bootstrap, here, batches) == 3
    rows = read_topic(bootstrap, here, columns=["key", "value"]).read_all().to_pylist()
    found = sorted((row["value"], row["key"]) for row in rows)
    assert found == [(b"a", None), (b"b", b"k"), (b"c", None)]
