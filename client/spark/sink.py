"""Writing to topics: each task sends its rows, and says so when they are stored.

That is at least once, as Spark's own sink: a task that Spark runs again sends its rows again.
Within a task the producer is idempotent, so what it sends again itself is stored once. Why not
more: `docs/decisions/0011-spark-sink.md`.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tidemark.client.columns import open_writer
from tidemark.client.spark.driver import explaining
from tidemark.client.spark.sink_options import SinkOptions

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task says when all its rows are stored."""

    rows: int


class BatchWriter(DataSourceArrowWriter):
    """Made on the driver, and copied into every task."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return write_rows(self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        log.info("%d rows are stored", _rows(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        log.warning("the write failed; %d rows or more are stored all the same", _rows(messages))


class StreamWriter(DataSourceStreamArrowWriter):
    """The same for each batch of a stream."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        return write_rows(self._options, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        log.info("batch %d: %d rows are stored", batchId, _rows(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        log.warning(
            "batch %d failed; %d rows or more are stored all the same, and will be again",
            batchId,
            _rows(messages),
        )


def write_rows(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    """Send the rows of a task, and wait until they are stored."""
    with (
        explaining(options.client, f"writing to {options.bootstrap}"),
        open_writer(
            options.bootstrap,
            options.topic,
            settings=options.client,
            compression=options.compression,
            batch_bytes=options.batch_bytes,
            acks=options.acks,
            delivery_timeout_seconds=options.delivery_timeout_seconds,
        ) as writer,
    ):
        for batch in batches:
            writer.write(batch)
        writer.flush()
        return Written(writer.rows)


def _rows(messages: Sequence[WriterCommitMessage | None]) -> int:
    return sum(message.rows for message in messages if isinstance(message, Written))
