"""What who uses Spark is shown: errors in its words, progress, and what its API leaves out."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidemark.client.blocking import BlockingClient
from tidemark.client.columns import write_topic
from tidemark.client.spark import GroupCommits
from tidemark.protocol.types import TopicPartition
from tidemark.testing import BlockingCluster

# The first test waits for the session.
pytestmark = pytest.mark.timeout(400)


def fill(cluster: BlockingCluster, topic: str, count: int) -> None:
    """Rows in partition 0."""
    rows = {"value": [f"{n}" for n in range(count)], "partition": pa.array([0] * count, pa.int32())}
    write_topic(cluster.bootstrap, topic, [pa.record_batch(rows)])


def run(
    spark: SparkSession, cluster: BlockingCluster, topic: str, checkpoint: Path, **options: str
) -> StreamingQuery:
    """A query over what is there, to its end; what it reads goes nowhere."""
    reader = spark.readStream.format("tidemark").option("bootstrap", cluster.bootstrap)
    frame = reader.option("startingOffsets", "earliest").options(**options).load(subscribe=topic)
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query = writer.queryName("copy").trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return query


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nowhere"}, "subscribe names a topic that is not there .*; create it, or"),
        ({"assign": '{"%s": [7]}'}, "assign names .*-7, .*; see tidemark topic describe"),
        (
            {"subscribe": "%s", "startingOffsets": '{"%s": {"0": 1}}'},
            r"option startingOffsets names every partition .*; missing: .*-1, .*-2",
        ),
        (
            {"subscribe": "%s", "startingOffsets": '{"%s": {"0": 9, "1": 0, "2": 0}}'},
            "-0 ends at 5, before the offset 9 .* set the option failOnDataLoss to false",
        ),
        (
            {"subscribe": "%s", "startingTimestamp": "4102444800000"},
            "startingTimestamp is after the last record .*; choose an earlier",
        ),
    ],
    ids=["topic", "partition", "partitions", "offset", "time"],
)
def test_bad_input_is_an_error_that_names_the_option_and_says_what_to_do(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    topic: str,
    options: dict[str, str],
    message: str,
) -> None:
    fill(tidemark_session, topic, 5)
    reader = spark.read.format("tidemark").option("bootstrap", tidemark_session.bootstrap)
    given = {name: value.replace("%s", topic) for name, value in options.items()}
    with pytest.raises(PySparkException, match=message):
        reader.options(**given).load().count()


def test_a_stream_with_an_end_is_refused_in_words(
    spark: SparkSession, tidemark_session: BlockingCluster, topic: str, tmp_path: Path
) -> None:
    """PySpark fails once more where a source refuses a stream; the first error must be there."""
    with pytest.raises(PySparkException, match="endingOffsets is for batches; a stream has no end"):
        run(spark, tidemark_session, topic, tmp_path, endingOffsets="latest")


def test_a_topic_that_was_made_anew_is_an_error_that_says_what_to_do(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    fill(tidemark_session, topic, 5)
    run(spark, tidemark_session, topic, tmp_path)
    client.run(client.admin.delete_topic, topic)
    deadline = time.monotonic() + 60
    while any(each.name == topic for each in client.run(client.admin.list_topics)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    client.run(client.admin.create_topic, topic, partitions=2)
    with pytest.raises(StreamingQueryException, match=r"-2, which was .* begin with a new checkpo"):
        run(spark, tidemark_session, topic, tmp_path)


def test_each_batch_that_is_done_is_committed_for_a_group_and_so_is_the_last(
    spark: SparkSession,
    tidemark_session: BlockingCluster,
    client: BlockingClient,
    topic: str,
    tmp_path: Path,
) -> None:
    """Spark tells the source of a batch when it plans the next one, and of the last never."""
    fill(tidemark_session, topic, 20)
    listener = GroupCommits(tidemark_session.bootstrap, f"{topic}-group", query="copy")
    spark.streams.addListener(listener)
    try:
        query = run(spark, tidemark_session, topic, tmp_path, maxOffsetsPerTrigger="15")
        (done,) = query.lastProgress.sources if query.lastProgress else []
        assert json.loads(done.endOffset)[topic]["0"] == 20
        assert json.loads(done.latestOffset)[topic]["0"] == 20, "the lag is their difference"
        deadline = time.monotonic() + 60
        committed: dict[TopicPartition, int] = {}
        while committed.get(TopicPartition(topic, 0)) != 20:
            assert time.monotonic() < deadline, committed
            time.sleep(0.05)
            found = client.run(client.admin.list_group_offsets, f"{topic}-group")
            committed = {tp: int(each.offset) for tp, each in found.items()}
    finally:
        spark.streams.removeListener(listener)


def test_a_view_keeps_its_options_and_a_reader_that_is_left_early_does_no_harm(
    spark: SparkSession, tidemark_session: BlockingCluster, topic: str
) -> None:
    fill(tidemark_session, topic, 1000)
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW words USING tidemark OPTIONS"
        f" (bootstrap '{tidemark_session.bootstrap}', subscribe '{topic}', batchBytes '1000')"
    )
    assert len(spark.sql("SELECT value FROM words LIMIT 3").collect()) == 3
    assert spark.table("words").count() == 1000


def test_a_setting_that_makes_spark_slow_makes_nothing_wrong(
    spark: SparkSession, tidemark_session: BlockingCluster, topic: str
) -> None:
    fill(tidemark_session, topic, 100)
    session = spark.newSession()
    session.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    reader = session.read.format("tidemark").option("bootstrap", tidemark_session.bootstrap)
    rows = reader.load(subscribe=topic).selectExpr("CAST(value AS STRING)", "topic").collect()
    assert sorted(map(tuple, rows)) == sorted((f"{number}", topic) for number in range(100))


def test_continuous_processing_is_refused_in_words(
    spark: SparkSession, tidemark_session: BlockingCluster, topic: str, tmp_path: Path
) -> None:
    reader = spark.readStream.format("tidemark").option("bootstrap", tidemark_session.bootstrap)
    writer = reader.load(subscribe=topic).writeStream.format("noop").trigger(continuous="1 second")
    with pytest.raises(PySparkException, match="does not support continuous processing"):
        writer.option("checkpointLocation", str(tmp_path)).start()


def test_a_stream_reader_that_nobody_stops_ends_with_its_process(
    tidemark_session: BlockingCluster, topic: str
) -> None:
    """Spark calls stop() only after an error."""
    program = (
        "from tidemark.client.spark.options import read_options\n"
        "from tidemark.client.spark.stream import StreamReader\n"
        f"given = {{'bootstrap': {tidemark_session.bootstrap!r}, 'subscribe': {topic!r}}}\n"
        "StreamReader(read_options(given, streaming=True), ('value',)).initialOffset()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=120, check=False)
    assert done.returncode == 0
