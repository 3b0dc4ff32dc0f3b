"""How many rows a second go between a topic and Spark, and how many of them is Spark itself?

`local[2]`, the broker in a process of its own on the same two cores. Rows of 100 bytes and of a
kilobyte, into a count over all columns; the same rows as tuples, which is how a source in Python
is usually written; out of Spark's memory into a topic. *Fetch and decode* is one process without
Spark, by the time of its own core. The rows of the first count are ten million, and those of a
kilobyte two million (2 GB): any query of Spark's takes half a second of processor time, which would
be a tenth of a count of three million, and a sixth of one of 600 MB.

On a machine that does other things as well, the clock says little. So each figure of Spark's has a
second one: what two cores could do that have nothing else to do, by the processor time that Spark,
its workers and the broker took together.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType
from rich.console import Console

from benchmarks.harness import Row, median_of, show
from benchmarks.spark_speed import Speed, median_speed, speed_of
from pyspark_tidemark import DefaultSource
from tidemark.client.blocking import open_client
from tidemark.client.columns import open_writer, read_columns
from tidemark.client.spark import session
from tidemark.client.spark.batch import BatchReader
from tidemark.client.spark.options import read_options
from tidemark.client.spark.rows import projection
from tidemark.protocol.types import TopicPartition
from tidemark.testing import open_broker_process

PARTITIONS = 2
RUNS = 3
TUPLE_ROWS = 1_000_000
WRITTEN_ROWS = 2_000_000
START_MS = 1_700_000_000_000
LARGE, SMALL = 1_000_000, 16 << 10


class TupleSource(DefaultSource):
    """The same source, yielding a tuple for each row."""

    @classmethod
    def name(cls) -> str:
        return "tuples"

    def reader(self, schema: StructType) -> TupleReader:
        return TupleReader(read_options(self.options, streaming=False), projection(schema))


class TupleReader(BatchReader):
    """See `TupleSource`."""

    def read(self, partition: InputPartition) -> Iterator[tuple[object, ...]]:
        for batch in super().read(partition):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def measure(directory: Path) -> Iterator[Row]:
    """The rows of this question."""
    # A worker does not find this module by its name.
    import benchmarks.spark as this

    cloudpickle.register_pickle_by_value(this)  # type: ignore[no-untyped-call]  # as it is
    settings = {"log.flush": "os", "log.retention.ms": "-1"}
    with open_broker_process(directory / "spark", settings=settings) as broker:
        bootstrap = broker.bootstrap
        topics = {
            name: fill(bootstrap, name, size, total, batch_bytes=batch_bytes, varying=varying)
            for name, size, total, batch_bytes, varying in (
                ("hundred", 100, 1000 << 20, LARGE, False),
                ("hundred-small", 100, 100 << 20, SMALL, False),
                ("hundred-varying", 100, 200 << 20, LARGE, True),
                ("thousand", 1000, 2000 << 20, LARGE, False),
            )
        }
        for name, count in topics.items():
            yield fetch_and_decode(bootstrap, name, count)
        spark = session("local[2]", config={"spark.ui.enabled": "false"})
        try:
            spark.dataSource.register(TupleSource)
            yield from in_spark(spark, bootstrap, topics)
        finally:
            spark.stop()


def fill(
    bootstrap: str, topic: str, size: int, total: int, *, batch_bytes: int, varying: bool
) -> int:
    """Write a topic of random values; how many rows it has."""
    with open_client(bootstrap) as client:
        client.run(client.admin.create_topic, topic, partitions=PARTITIONS)
    random = np.random.default_rng(7)
    rows, count = 8192, 0
    with open_writer(bootstrap, topic, batch_bytes=batch_bytes) as writer:
        # As many in each partition.
        while count * size < total or count // rows % PARTITIONS:
            batch = rows_of(random, rows, size, START_MS + count // 10, varying=varying)
            partition = pa.array([count // rows % PARTITIONS] * rows, pa.int32())
            writer.write(batch.append_column("partition", partition))
            count += rows
    return count


def rows_of(
    random: np.random.Generator, count: int, size: int, start_ms: int, *, varying: bool
) -> pa.RecordBatch:
    sizes = random.integers(size // 2, size * 3 // 2, count) if varying else np.full(count, size)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    values = pa.Array.from_buffers(
        pa.binary(),
        count,
        [None, pa.py_buffer(offsets), pa.py_buffer(random.bytes(int(offsets[-1])))],
    )
    times = pa.array(start_ms + np.arange(count) // 10).cast(pa.timestamp("ms", tz="UTC"))
    return pa.record_batch({"value": values, "timestamp": times})


def fetch_and_decode(bootstrap: str, topic: str, count: int) -> Row:
    def once() -> float:
        start, rows = time.process_time(), 0
        for partition in range(PARTITIONS):
            at = TopicPartition(topic, partition)
            for batch in read_columns(bootstrap, at, 0, count // PARTITIONS):
                rows += batch.num_rows
        assert rows == count
        return count / (time.process_time() - start) / 1e6

    return Row(
        question="spark",
        case=f"fetch and decode, {topic}",
        value=median_of(RUNS, once),
        unit="M rows/s of a core",
        runs=RUNS,
        aim=3.0 if topic.startswith("hundred") else None,
    )


def in_spark(spark: SparkSession, bootstrap: str, topics: dict[str, int]) -> Iterator[Row]:
    def counting(topic: str, kind: str = "tidemark", count: int | None = None) -> Speed:
        count = topics[topic] if count is None else count
        reader = spark.read.format(kind).option("bootstrap", bootstrap)
        ends = {str(partition): count // PARTITIONS for partition in range(PARTITIONS)}
        frame = reader.option("endingOffsets", json.dumps({topic: ends})).load(subscribe=topic)
        counts = [F.count(name) for name in frame.columns]
        return speed_of(count, lambda: frame.agg(*counts).collect())

    fast = median_speed(RUNS, lambda: counting("hundred"))
    yield from rows("count over all columns, 100 B", fast, aim=1.5)
    tuples = median_speed(1, lambda: counting("hundred", "tuples", TUPLE_ROWS))
    yield from rows("the same, as tuples", tuples, runs=1)
    ratio = fast.by_clock / tuples.by_clock
    yield row(
        "columns beside tuples", fast.by_clock, against="that of tuples", ratio=ratio, aim=3.0
    )
    for topic in ("hundred-small", "hundred-varying"):
        speed = median_speed(RUNS, lambda topic=topic: counting(topic))  # type: ignore[misc] # bound
        yield from rows(f"count over all columns, {topic}", speed)
    speed = median_speed(RUNS, lambda: counting("thousand"))
    megabytes = Speed(speed.by_clock * 1000, speed.by_processor * 1000)
    yield from rows("count over all columns, 1 kB", megabytes, unit="MB/s", aim=400)
    yield from rows("write 100 B", median_speed(RUNS, lambda: writing(spark, bootstrap)), aim=0.7)


def writing(spark: SparkSession, bootstrap: str) -> Speed:
    """From Spark's memory into a topic."""
    frame = spark.range(0, WRITTEN_ROWS, 1, PARTITIONS).select(
        F.expr("RPAD(CAST(id AS STRING), 100, 'x')").cast("binary").alias("value")
    )
    frame = frame.cache()
    frame.count()
    topic = f"written-{time.monotonic_ns()}"
    with open_client(bootstrap) as client:
        client.run(client.admin.create_topic, topic, partitions=PARTITIONS)
    writer = frame.write.format("tidemark").mode("append").option("bootstrap", bootstrap)
    return speed_of(WRITTEN_ROWS, lambda: writer.option("topic", topic).save())


def rows(
    case: str, speed: Speed, *, unit: str = "M rows/s", runs: int = RUNS, aim: float | None = None
) -> Iterator[Row]:
    yield row(case, speed.by_clock, unit=unit, runs=runs, aim=aim)
    yield row(f"{case}, by processor time", speed.by_processor, unit=unit, runs=runs)


def row(
    case: str,
    value: float,
    *,
    unit: str = "M rows/s",
    runs: int = RUNS,
    against: str | None = None,
    ratio: float | None = None,
    aim: float | None = None,
) -> Row:
    return Row(
        question="spark",
        case=case,
        value=value,
        unit=unit,
        runs=runs,
        against=against,
        ratio=ratio,
        aim=aim,
    )


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        show(list(measure(Path(folder))), Console())
