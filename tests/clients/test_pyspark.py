"""PySpark's `format("tidemark")`, against a broker in a process of its own."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.clients.librdkafka import create, produce
from tests.clients.samples import CODECS, COMPRESSIBLE, SAMPLES
from tidemark.client.blocking import open_client

# The first test waits for the session.
pytestmark = pytest.mark.timeout(400)


def rows_of(spark: SparkSession, bootstrap: str, topic: str, **options: str) -> list[Any]:
    """The topic's rows in the order of its log. `Any`: a row's columns are attributes."""
    reader = spark.read.format("tidemark").option("kafka.bootstrap.servers", bootstrap)
    frame = reader.option("subscribe", topic).options(**options).load()
    return (
        frame.selectExpr("*", "unix_millis(timestamp) AS timestamp_ms")
        .orderBy("partition", "offset")
        .collect()
    )


def test_produce_and_consume(spark: SparkSession, bootstrap: str, topic: str) -> None:
    # They bear an old time: without this, retention takes them as soon as it looks.
    create(bootstrap, topic, configs={"retention.ms": "-1"})
    with open_client(bootstrap) as client, client.producer() as producer:
        for sample in SAMPLES:
            producer.send(
                topic,
                sample.value,
                sample.key,
                headers=sample.headers,
                timestamp_ms=sample.timestamp_ms,
            )
    rows = rows_of(spark, bootstrap, topic, includeHeaders="true")
    for offset, (sample, row) in enumerate(zip(SAMPLES, rows, strict=True)):
        assert (row.topic, row.partition, row.offset) == (topic, 0, offset)
        assert (row.key, row.value) == (sample.key, sample.value)
        assert row.timestamp_ms == sample.timestamp_ms
        assert tuple((header.key, header.value) for header in row.headers or ()) == sample.headers


@pytest.mark.parametrize("codec", CODECS)
def test_compression(spark: SparkSession, bootstrap: str, topic: str, codec: str) -> None:
    create(bootstrap, topic)
    produce(bootstrap, topic, COMPRESSIBLE, **{"compression.type": codec, "linger.ms": 50})
    assert [row.value for row in rows_of(spark, bootstrap, topic)] == COMPRESSIBLE


def test_streaming(spark: SparkSession, bootstrap: str, topic: str, tmp_path: Path) -> None:
    create(bootstrap, topic)
    stream = (
        spark.readStream.format("tidemark")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("CAST(value AS STRING) AS value")
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
    )
    for values in ([b"a", b"b"], [b"c"]):  # the second run goes on where the first one ended
        produce(bootstrap, topic, values)
        assert stream.trigger(availableNow=True).start().awaitTermination(120)
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row.value for row in rows) == ["a", "b", "c"]
