"""The readers against a real broker, without Spark around them."""

import pickle
import time
from collections.abc import Iterator

import pytest
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable

from tidemark.client.blocking import BlockingClient, open_client
from tidemark.client.spark.batch import BatchReader
from tidemark.client.spark.driver import DataLoss
from tidemark.client.spark.options import read_options
from tidemark.client.spark.ranges import OffsetRange
from tidemark.client.spark.stream import StreamReader
from tidemark.protocol.errors import RequestError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing import BlockingCluster

TP = TopicPartition("t", 0)
NOW_MS = int(time.time() * 1000)


@pytest.fixture
def client(tidemark: BlockingCluster) -> Iterator[BlockingClient]:
    with open_client(tidemark.bootstrap) as opened:
        opened.run(opened.admin.create_topic, "t", partitions=1)
        yield opened


def produce(client: BlockingClient, count: int, size: int = 1) -> None:
    records = [Record(value=b"v" * size, timestamp_ms=NOW_MS)] * count
    with client.producer() as producer:
        batch = encode_batch(records, compression=Compression.ZSTD)
        producer.send_batch("t", 0, batch).wait()


def batch_reader(cluster: BlockingCluster, **options: str) -> BatchReader:
    given = {"bootstrap": cluster.bootstrap, "subscribe": "t", **options}
    return BatchReader(read_options(given, streaming=False), ("offset", "value"))


def offsets(reader: BatchReader | StreamReader, partition: InputPartition) -> list[int]:
    return [offset for batch in reader.read(partition) for offset in batch["offset"].to_pylist()]


def test_a_reader_that_was_pickled_reads_the_same(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    produce(client, 10)
    reader = batch_reader(tidemark)
    (partition,) = reader.partitions()
    in_task, wanted = pickle.loads(pickle.dumps((reader, partition)))
    assert offsets(in_task, wanted) == list(range(10))


def test_what_is_planned_again_sees_what_is_new(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    reader = batch_reader(tidemark)
    assert reader.partitions() == []
    assert offsets(reader, InputPartition(None)) == [], "what Spark puts in the place of none"
    produce(client, 3)
    assert reader.partitions() == [OffsetRange(TP, 0, 3)]


def test_a_fetch_that_grew_comes_in_pieces(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    produce(client, 100, size=10_000)
    reader = batch_reader(tidemark, batchBytes="100000")
    (partition,) = reader.partitions()
    rows = [batch.num_rows for batch in reader.read(partition)]
    assert sum(rows) == 100
    assert max(rows) <= 11


def test_retention_after_planning_is_an_error_or_skipped(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    produce(client, 5)
    produce(client, 5)
    strict, lax = batch_reader(tidemark), batch_reader(tidemark, failOnDataLoss="false")
    (partition,) = strict.partitions()
    client.run(client.admin.delete_records, {TP: Offset(7)})
    with pytest.raises(DataLoss, match="failOnDataLoss"):
        offsets(strict, partition)
    assert offsets(lax, partition) == [7, 8, 9]


def test_a_topic_that_is_not_there_is_an_error(tidemark: BlockingCluster) -> None:
    with pytest.raises(RequestError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        batch_reader(tidemark, subscribe="nowhere").partitions()


def test_a_stream_goes_on_when_the_broker_was_restarted(
    tidemark: BlockingCluster, client: BlockingClient
) -> None:
    given = {"bootstrap": tidemark.bootstrap, "subscribe": "t", "offsetCacheMs": "1"}
    stream = StreamReader(read_options(given, streaming=True), ("offset",))
    start = stream.initialOffset()
    try:
        tidemark.restart()
        produce(client, 4)
        end = stream.latestOffset(start, ReadAllAvailable())
        assert end["t"] == {"0": 4}
        (partition,) = stream.partitions(start, end)
        assert offsets(stream, partition) == [0, 1, 2, 3]
    finally:
        stream.stop()
