"""Writing to topics: each task sends its rows, and says so when they are stored.

That is at least once, as Spark's own sink: a task that Spark runs again sends its rows again.
Within a task the producer is idempotent, so what it sends again itself is stored once. With the
option exactlyOnce, tasks leave their rows in transactions that the driver ends: `prepared.py`.
"""

import logging
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from tidemark.client.blocking import BlockingClient, open_patient_client
from tidemark.client.columns import ColumnsWriter, open_writer
from tidemark.client.spark import prepared as transactions
from tidemark.client.spark.driver import explaining
from tidemark.client.spark.prepared import Decided, Prepared
from tidemark.client.spark.sink_options import SinkOptions
from tidemark.protocol.values import dataclass

log = logging.getLogger(__name__)

_QUERY: Final = "sql.streaming.queryId"  # the same after a restart
_BATCH: Final = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task says when all its rows are stored."""

    rows: int


class BatchWriter(DataSourceArrowWriter):
    """Made on the driver, and copied into every task."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._name = f"{options.transactional_id}-{uuid.uuid4().hex}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if not self._options.exactly_once:
            return write_rows(self._options, iterator)
        return prepare_rows(self._options, self._name, _task().partitionId(), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if prepared := [each for each in messages if isinstance(each, Prepared)]:
            with _asking(self._options) as client:
                transactions.commit_once(client, prepared)
        log.info("%d rows are stored", _rows(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        if self._options.exactly_once:
            _abort(self._options, None, messages)
        else:
            rows = _rows(messages)
            log.warning("the write failed; %d rows or more are stored all the same", rows)


class StreamWriter(DataSourceStreamArrowWriter):
    """The same for each batch of a stream. Spark makes a new one to commit each."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        if not self._options.exactly_once:
            return write_rows(self._options, iterator)
        task = _task()
        query, batch = task.getLocalProperty(_QUERY), task.getLocalProperty(_BATCH)
        assert query is not None
        assert batch is not None
        name = f"{self._options.transactional_id}-{query}"
        return prepare_batch(self._options, name, int(batch), task.partitionId(), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        waiting = [each for each in messages if isinstance(each, Prepared | Decided)]
        if waiting:
            with _asking(self._options) as client:
                transactions.commit_batch(client, batchId, waiting)
                transactions.abort_left(client, waiting[0].name, len(messages))
        log.info("batch %d: %d rows are stored", batchId, _rows(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        if self._options.exactly_once:
            _abort(self._options, batchId, messages)
        else:
            log.warning(
                "batch %d failed; %d rows or more are stored all the same, and will be again",
                batchId,
                _rows(messages),
            )


def write_rows(options: SinkOptions, batches: Iterator[pa.RecordBatch]) -> Written:
    """Send the rows of a task, and wait until they are stored."""
    with explaining(options.client, _what(options)), _writer(options) as writer:
        for batch in batches:
            writer.write(batch)
        writer.flush()
        return Written(writer.rows)


def prepare_batch(
    options: SinkOptions, name: str, batch: int, number: int, batches: Iterator[pa.RecordBatch]
) -> Prepared | Decided | Written:
    """What the task `number` of a batch does: prepare its rows, unless the batch is decided."""
    with _asking(options) as client:
        decision = transactions.find_decision(client, name, batch)
    if decision is None:
        return prepare_rows(options, name, number, batches)
    for _ in batches:
        pass  # Spark hands them over all the same.
    return Decided(name)


def prepare_rows(
    options: SinkOptions, name: str, number: int, batches: Iterator[pa.RecordBatch]
) -> Prepared | Written:
    """Store the rows of a task in a transaction that is left open."""
    with (
        explaining(options.client, _what(options)),
        _writer(options, f"{name}-{number}") as writer,
    ):
        for batch in batches:
            writer.write(batch)
        transaction = writer.prepare()
        if transaction is None:
            return Written(0)
        return Prepared(name, writer.rows, min(writer.topics), transaction)


def _writer(
    options: SinkOptions, transactional_id: str | None = None
) -> AbstractContextManager[ColumnsWriter]:
    return open_writer(
        options.bootstrap,
        options.topic,
        settings=options.client,
        compression=options.compression,
        batch_bytes=options.batch_bytes,
        acks=options.acks,
        delivery_timeout_seconds=options.delivery_timeout_seconds,
        transactional_id=transactional_id,
        transaction_timeout_seconds=options.transaction_timeout_seconds,
        patience_seconds=options.client.retry_timeout_seconds,
    )


def _asking(options: SinkOptions) -> AbstractContextManager[BlockingClient]:
    return open_patient_client(
        options.bootstrap,
        patience_seconds=options.client.retry_timeout_seconds,
        settings=options.client,
    )


def _abort(
    options: SinkOptions, batch: int | None, messages: Sequence[WriterCommitMessage | None]
) -> None:
    if prepared := [each for each in messages if isinstance(each, Prepared)]:
        with _asking(options) as client:
            transactions.abort(client, batch, prepared)


def _what(options: SinkOptions) -> str:
    return f"writing to {options.bootstrap}"


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None
    return task


def _rows(messages: Sequence[WriterCommitMessage | None]) -> int:
    return sum(message.rows for message in messages if isinstance(message, Written | Prepared))
