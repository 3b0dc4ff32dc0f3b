"""The source in a real session, two cores, against a real broker."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PythonException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tidemark.client.blocking import BlockingClient
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.testing import BlockingCluster

# The first test waits for the session.
pytestmark = pytest.mark.timeout(400)

NOW_MS = int(time.time() * 1000)


def produce(
    client: BlockingClient,
    topic: str,
    partition: int,
    count: int,
    compression: Compression = Compression.NONE,
) -> None:
    """Records with the values `<partition>-<n>`, `n` from 0 in each call."""
    batch = encode_batch(
        [
            Record(
                key=None if n % 2 else b"key",
                value=f"{partition}-{n}".encode(),
                timestamp_ms=NOW_MS + n,
                headers=(("n", str(n).encode()), ("empty", None)) if n % 3 == 0 else (),
            )
            for n in range(count)
        ],
        compression=compression,
    )
    with client.producer() as producer:
        producer.send_batch(topic, partition, batch).wait()


def read(spark: SparkSession, cluster: BlockingCluster, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("tidemark").option("kafka.bootstrap.servers", cluster.bootstrap)
    return reader.option("subscribe", topic).options(**options).load()


def test_a_topic_comes_as_it_is_one_task_a_partition(
    spark: SparkSession, tidemark_session: BlockingCluster, client: BlockingClient, topic: str
) -> None:
    produce(client, topic, 0, 10, Compression.ZSTD)
    produce(client, topic, 0, 5, Compression.SNAPPY)
    produce(client, topic, 2, 7)
    frame = read(spark, tidemark_session, topic, includeHeaders="true")
    assert frame.rdd.getNumPartitions() == 2
    rows = (
        frame.selectExpr("*", "unix_millis(timestamp) AS ms")
        .orderBy("partition", "offset")
        .collect()
    )
    expected = [(0, offset, n) for offset, n in enumerate([*range(10), *range(5)])]
    expected += [(2, n, n) for n in range(7)]
    assert [
        (row.topic, row.partition, row.offset, row.value, row.key, row.ms, row.timestampType)
        for row in rows
    ] == [
        (
            topic,
            partition,
            offset,
            f"{partition}-{n}".encode(),
            None if n % 2 else b"key",
            NOW_MS + n,
            0,
        )
        for partition, offset, n in expected
    ]
    assert [row.headers and [tuple(header) for header in row.headers] for row in rows] == [
        [("n", str(n).encode()), ("empty", None)] if n % 3 == 0 else None for _, _, n in expected
    ]


def test_offsets_bound_what_is_read_and_min_partitions_splits_it(
    spark: SparkSession, tidemark_session: BlockingCluster, client: BlockingClient, topic: str
) -> None:
    for partition in range(3):
        produce(client, topic, partition, 100)
    frame = read(
        spark,
        tidemark_session,
        topic,
        startingOffsets=json.dumps({topic: {"0": 10, "1": 90, "2": -2}}),
        endingOffsets=json.dumps({topic: {"0": 60, "1": -1, "2": 0}}),
        minPartitions="6",
    )
    assert frame.rdd.getNumPartitions() >= 6
    rows = frame.select("partition", "offset").collect()
    assert sorted(map(tuple, rows)) == [(0, n) for n in range(10, 60)] + [
        (1, n) for n in range(90, 100)
    ]


def test_a_schema_leaves_columns_unread_and_an_empty_topic_has_no_rows(
    spark: SparkSession, tidemark_session: BlockingCluster, client: BlockingClient, topic: str
) -> None:
    def frame() -> DataFrame:
        reader = spark.read.format("tidemark").schema("partition int, value binary")
        return reader.option("bootstrap", tidemark_session.bootstrap).load(
            subscribePattern=f"{topic}.*"
        )

    assert frame().count() == 0
    produce(client, topic, 1, 2)
    assert sorted(map(tuple, frame().collect())) == [(1, b"1-0"), (1, b"1-1")]


def test_filters_leave_out_what_need_not_be_fetched(
    spark: SparkSession, tidemark_session: BlockingCluster, client: BlockingClient, topic: str
) -> None:
    for partition in range(3):
        produce(client, topic, partition, 100)
    session = spark.newSession()
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    frame = read(session, tidemark_session, topic, filterPushdown="true")
    assert frame.count() == 300, "without a filter, the source is not asked to take any"
    frame = frame.where(
        f"partition < 2 AND offset < 90 AND timestamp >= timestamp_millis({NOW_MS + 70})"
        " AND value LIKE '%5'"
    )
    assert frame.rdd.getNumPartitions() == 2
    rows = frame.select("partition", "offset").collect()
    assert sorted(map(tuple, rows)) == [(0, 75), (0, 85), (1, 75), (1, 85)]


def test_a_wrong_option_is_an_error_at_load(
    spark: SparkSession, tidemark_session: BlockingCluster
) -> None:
    with pytest.raises(AnalysisException, match="did you mean startingOffsets"):
        read(spark, tidemark_session, "t", startingOffset="earliest")


def test_records_that_retention_took_are_an_error_or_left_out(
    spark: SparkSession, tidemark_session: BlockingCluster, client: BlockingClient, topic: str
) -> None:
    produce(client, topic, 0, 10)
    client.run(client.admin.delete_records, {TopicPartition(topic, 0): Offset(4)})
    places = {
        "startingOffsets": json.dumps({topic: {"0": 0, "1": 0, "2": 0}}),
        "endingOffsets": json.dumps({topic: {"0": 10, "1": 0, "2": 0}}),
    }
    with pytest.raises((AnalysisException, PythonException), match="not there any more"):
        read(spark, tidemark_session, topic, **places).count()
    assert read(spark, tidemark_session, topic, **places, failOnDataLoss="false").count() == 6


class Stream:
    """A query that appends to files, and can be run again on its checkpoint."""

    def __init__(self, spark: SparkSession, frame: DataFrame, directory: Path) -> None:
        self._spark = spark
        self._frame = frame
        self._directory = directory

    def run(self) -> list[dict[str, Any]]:
        """Run it over what is there; the progress of its batches."""
        query = (
            self._frame.select("partition", "offset")
            .writeStream.format("parquet")
            .option("path", str(self._directory / "out"))
            .option("checkpointLocation", str(self._directory / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return [dict(progress) for progress in query.recentProgress if progress["numInputRows"]]

    def rows(self) -> list[tuple[int, int]]:
        frame = self._spark.read.parquet(str(self._directory / "out"))
        return sorted((row.partition, row.offset) for row in frame.collect())


def stream_of(
    spark: SparkSession, cluster: BlockingCluster, topic: str, **options: str
) -> DataFrame:
    reader = spark.readStream.format("tidemark").option("bootstrap", cluster.bootstrap)
    return reader.option("subscribe", topic).options(**options).load()


def test_a_stream_goes_on_from_its_checkpoint_and_finds_new_partitions(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    produce(client, topic, 0, 30)
    produce(client, topic, 1, 10)
    frame = stream_of(
        spark, tidemark_session, topic, startingOffsets="earliest", maxOffsetsPerTrigger="20"
    )
    stream = Stream(spark, frame, tmp_path)
    assert [progress["numInputRows"] for progress in stream.run()] == [20, 20]
    client.run(client.admin.create_partitions, topic, 4)
    produce(client, topic, 0, 5)
    produce(client, topic, 3, 5)
    stream.run()
    assert stream.rows() == (
        [(0, n) for n in range(35)] + [(1, n) for n in range(10)] + [(3, n) for n in range(5)]
    )


def test_a_stream_from_latest_loses_nothing_when_its_first_batch_fails(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    produce(client, topic, 0, 10)
    frame = stream_of(spark, tidemark_session, topic).select("partition", "offset")
    seen: list[tuple[int, int]] = []
    is_failing = True

    def take(batch: DataFrame, _: int) -> None:
        if is_failing and batch.count():
            raise RuntimeError("a crash in the first batch")
        seen.extend((row.partition, row.offset) for row in batch.collect())

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path))
    query = writer.start()
    while not query.lastProgress and query.isActive:
        time.sleep(0.1)
    produce(client, topic, 0, 20)
    with pytest.raises(StreamingQueryException, match="a crash in the first batch"):
        query.awaitTermination()
    produce(client, topic, 0, 5)
    is_failing = False
    query = writer.start()
    query.processAllAvailable()
    query.stop()
    assert seen == [(0, n) for n in range(10, 35)]
