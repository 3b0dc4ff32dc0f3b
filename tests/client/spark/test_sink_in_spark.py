"""The sink in a real session, two cores, against a real broker."""

import pickle
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidemark.client.blocking import BlockingClient
from tidemark.client.columns import read_topic, write_topic
from tidemark.client.partitioner import murmur2_partition
from tidemark.client.spark.sink import BatchWriter, Written
from tidemark.client.spark.sink_options import read_sink_options
from tidemark.testing import BlockingCluster

# The first test waits for the session.
pytestmark = pytest.mark.timeout(400)


def write(frame: DataFrame, cluster: BlockingCluster, mode: str = "append", **options: str) -> None:
    writer = frame.write.format("tidemark").option("kafka.bootstrap.servers", cluster.bootstrap)
    writer.options(**options).mode(mode).save()


def test_rows_are_stored_with_all_that_they_say(
    spark: SparkSession, tidemark_session: BlockingCluster, topic: str
) -> None:
    begun_ms = int(time.time() * 1000)
    frame = spark.sql(
        "SELECT CAST(id AS STRING) AS value, IF(id % 5 = 0, NULL, CONCAT('k', id % 7)) AS key,"
        " IF(id % 2 = 0, CAST(1 AS INT), NULL) AS partition,"
        " IF(id % 3 = 0, ARRAY(NAMED_STRUCT('key', 'id', 'value', CAST(CAST(id AS STRING) AS"
        " BINARY))), NULL) AS headers FROM RANGE(0, 1000, 1, 4)"
    )
    write(frame, tidemark_session, topic=topic, **{"kafka.compression.type": "lz4"})
    found = read_topic(tidemark_session.bootstrap, topic).read_all().to_pylist()
    assert sorted(int(row["value"]) for row in found) == list(range(1000))
    for row in found:
        number = int(row["value"])
        assert row["key"] == (None if number % 5 == 0 else b"k%d" % (number % 7))
        if number % 2 == 0:
            assert row["partition"] == 1
        elif row["key"] is not None:
            assert row["partition"] == murmur2_partition(row["key"], 3)
        headers = [{"key": "id", "value": b"%d" % number}] if number % 3 == 0 else []
        assert row["headers"] == headers
        assert begun_ms <= row["timestamp"].timestamp() * 1000 <= time.time() * 1000


def test_each_row_may_say_its_topic_and_a_topic_is_copied_as_it_is(
    spark: SparkSession, tidemark_session: BlockingCluster, client: BlockingClient, topic: str
) -> None:
    client.run(client.admin.create_topic, f"{topic}-2", partitions=3)
    frame = spark.sql(
        f"SELECT IF(id < 10, '{topic}', '{topic}-2') AS topic, CAST(id AS STRING) AS value"
        " FROM RANGE(30)"
    )
    write(frame, tidemark_session)
    first = read_topic(tidemark_session.bootstrap, topic).read_all()
    assert first.num_rows == 10
    source = spark.read.format("tidemark").option("bootstrap", tidemark_session.bootstrap)
    write(source.load(subscribe=topic), tidemark_session, topic=f"{topic}-2")
    second = read_topic(tidemark_session.bootstrap, f"{topic}-2").read_all()
    assert second.num_rows == 30
    values = second["value"].to_pylist()
    assert sorted(map(int, values)) == list(range(30))


@pytest.mark.parametrize(
    ("rows", "options", "mode", "message"),
    [
        ("SELECT 1 AS value", {"topic": "t"}, "append", "column value is int"),
        ("SELECT 'a' AS value", {}, "append", "set the option topic"),
        ("SELECT 'a' AS value", {"topics": "t"}, "append", "did you mean topic"),
        ("SELECT 'a' AS value", {"topic": "t"}, "overwrite", "append"),
    ],
    ids=["type", "topic", "option", "mode"],
)
def test_what_cannot_be_written_is_an_error_before_anything_runs(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    rows: str,
    options: dict[str, str],
    mode: str,
    message: str,
) -> None:
    with pytest.raises(AnalysisException, match=message):
        write(spark.sql(rows), tidemark_session, mode, **options)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("", {"topic": "nowhere"}, "topic nowhere is not there; create it"),
        (", CAST(9 AS INT) AS partition", {}, "has the partitions 0 to 2"),
        (", CAST(NULL AS STRING) AS topic", {}, "a row has no topic"),
    ],
    ids=["topic", "partition", "no topic"],
)
def test_what_cannot_be_stored_is_an_error_that_says_what_to_do(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    topic: str,
    columns: str,
    options: dict[str, str],
    message: str,
) -> None:
    rows = spark.sql(f"SELECT 'a' AS value{columns}")
    if "topic" not in rows.columns and not options:
        options = {"topic": topic}
    with pytest.raises(PySparkException, match=message):
        write(rows, tidemark_session, **options)


def test_a_stream_from_topic_to_topic_goes_on_where_it_was(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    client.run(client.admin.create_topic, f"{topic}-out", partitions=2)
    reader = spark.readStream.format("tidemark").option("bootstrap", tidemark_session.bootstrap)
    frame = reader.option("startingOffsets", "earliest").load(subscribe=topic)
    writer = (
        frame.select("key", "value")
        .writeStream.format("tidemark")
        .option("bootstrap", tidemark_session.bootstrap)
        .option("topic", f"{topic}-out")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
    )
    for begin in (0, 500):
        write_topic(
            tidemark_session.bootstrap,
            topic,
            [pa.record_batch({"key": [f"{n}" for n in range(begin, begin + 500)]})],
        )
        query = writer.start()
        assert query.awaitTermination(120)
        progress = query.lastProgress
        assert progress is not None
        assert progress.sink.numOutputRows == 500
    keys = read_topic(tidemark_session.bootstrap, f"{topic}-out").read_all()["key"].to_pylist()
    assert sorted(map(int, keys)) == list(range(1000))


def test_a_task_that_is_run_again_sends_its_rows_again(
    tidemark_session: BlockingCluster, topic: str
) -> None:
    """At least once: what a failed attempt has stored stays stored."""
    options = read_sink_options({"bootstrap": tidemark_session.bootstrap, "topic": topic})
    writer = pickle.loads(pickle.dumps(BatchWriter(options)))
    rows = pa.record_batch({"value": ["a", "b"]})

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows
        raise RuntimeError("the task before this one failed")

    with pytest.raises(RuntimeError):
        writer.write(failing())
    assert writer.write(iter([rows])) == Written(2)
    writer.commit([Written(2)])
    writer.abort([Written(2), None])
    stored = read_topic(tidemark_session.bootstrap, topic).read_all()["value"].to_pylist()
    assert stored in ([b"a", b"b"], [b"a", b"b"] * 2)
