"""Rows into topics: placed, encoded and sent as columns, by an idempotent producer."""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Final, Literal

import pyarrow as pa

from tidemark.client.blocking import BlockingClient, BlockingProducer, open_patient_client
from tidemark.client.columns.placing import check_schema, place, split_by_partition, split_by_topic
from tidemark.client.delivery import DeliveryFuture
from tidemark.client.settings import ClientSettings
from tidemark.client.transaction_descriptions import PreparedTransaction
from tidemark.protocol.errors import ConfigError, ErrorCode, RequestError
from tidemark.protocol.records.columns import encode_columns
from tidemark.protocol.records.compression import Compression

BATCH_BYTES: Final = 1_000_000
"""Brokers take batches of 1 MiB by default, and large ones cost the least per record."""
_GATHERED_BYTES: Final = 4 << 20
"""Rows are gathered up to here, so that a topic of many partitions gets batches of some size."""


class ColumnsWriter:
    """Made by `open_writer`. Rows of a partition are stored in the order they are written in."""

    def __init__(
        self,
        client: BlockingClient,
        producer: BlockingProducer,
        topic: str | None,
        compression: Compression,
        batch_bytes: int,
    ) -> None:
        self._client = client
        self._producer = producer
        self._topic = topic
        self._compression = compression
        self._batch_bytes = batch_bytes
        self._schema: pa.Schema | None = None
        self._counts: dict[str, int] = {}
        self._gathered: list[pa.RecordBatch] = []
        self._gathered_bytes = 0
        self._futures: list[DeliveryFuture] = []
        self._random = random.Random()
        self.rows = 0
        """How many have been written."""
        self.is_prepared = False
        """Nothing more can be written."""

    @property
    def topics(self) -> frozenset[str]:
        """Those that rows have been sent to."""
        return frozenset(self._counts)

    def write(self, rows: pa.RecordBatch) -> None:
        """Take rows in: the columns `value`, `key`, `headers`, `partition`, `topic`, `timestamp`.

        All are optional, others do not count. Rows without a partition go where their key belongs,
        rows without a key all to one. Waits while too much is on its way. Raises what `flush` does.
        """
        if not rows.num_rows:
            return
        if self._schema is None or not rows.schema.equals(self._schema):
            check_schema(rows.schema)
            self._send_gathered()  # only rows of the same columns are put together
            self._schema = rows.schema
        self.rows += rows.num_rows
        self._gathered.append(rows)
        self._gathered_bytes += rows.nbytes
        if self._gathered_bytes >= _GATHERED_BYTES:
            self._send_gathered()
            self._check_delivered()

    def flush(self) -> None:
        """Send what is left, and wait until all of it is stored.

        Raises `ConfigError` for rows that cannot be stored (no such topic or partition, a header
        without a key), `RequestError` for the first batch that was refused.
        """
        self._send_gathered()
        self._producer.flush()
        for future in self._futures:
            future.result()
        self._futures.clear()

    def prepare(self) -> PreparedTransaction | None:
        """Store all rows, and leave it to somebody else to end their transaction.

        Only with a `transactional_id`. None if there were no rows. Raises what `flush` does; see
        `Producer.prepare_transaction`.
        """
        self.flush()
        self.is_prepared = True
        return self._producer.prepare_transaction()

    def _check_delivered(self) -> None:
        """Raise the first failure there is, and forget what is stored."""
        waiting = []
        for future in self._futures:
            if future.is_done:
                future.result()
            else:
                waiting.append(future)
        self._futures = waiting

    def _send_gathered(self) -> None:
        if not self._gathered:
            return
        rows = pa.concat_batches(self._gathered) if len(self._gathered) > 1 else self._gathered[0]
        self._gathered, self._gathered_bytes = [], 0
        for topic, own in split_by_topic(rows, self._topic):
            self._futures += self._producer.send_batches(self._encode(topic, own))

    def _encode(self, topic: str, rows: pa.RecordBatch) -> Iterator[tuple[str, int, bytes]]:
        count = self._partition_count(topic)
        placed = place(rows, topic, count, keyless=self._random.randrange(count))
        now_ms = time.time_ns() // 1_000_000
        for piece in split_by_partition(rows, topic, placed, self._batch_bytes):
            try:
                batch = encode_columns(
                    piece.rows, compression=self._compression, timestamp_ms=now_ms
                )
            except ValueError as error:
                raise ConfigError(f"rows that cannot be records of {topic}: {error}") from error
            yield topic, piece.partition, batch

    def _partition_count(self, topic: str) -> int:
        if topic not in self._counts:
            try:
                described = self._client.run(self._client.admin.describe_topic, topic)
            except RequestError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                raise ConfigError(
                    f"the topic {topic} is not there; create it (tidemark topic create {topic}),"
                    " or correct the name"
                ) from error
            self._counts[topic] = len(described.partitions)
        return self._counts[topic]


@contextmanager
def open_writer(
    bootstrap: str | Sequence[str],
    topic: str | None = None,
    *,
    settings: ClientSettings | None = None,
    compression: Compression = Compression.NONE,
    batch_bytes: int = BATCH_BYTES,
    acks: Literal["all", 0, 1] = "all",
    delivery_timeout_seconds: float = 120.0,
    transactional_id: str | None = None,
    transaction_timeout_seconds: float = 60.0,
    patience_seconds: float = 0.0,
) -> Iterator[ColumnsWriter]:
    """A writer for as long as the block; leaving the block flushes, an error in it does not.

    Without a `topic`, rows say theirs in the column of that name. With a `transactional_id`, the
    block is one transaction, which is aborted by an error and committed at the end, or left open
    by `prepare`. Brokers that cannot be reached at first are tried again for `patience_seconds`.
    """
    with (
        open_patient_client(
            bootstrap, patience_seconds=patience_seconds, settings=settings
        ) as client,
        client.producer(
            acks=acks,
            delivery_timeout_seconds=delivery_timeout_seconds,
            transactional_id=transactional_id,
            transaction_timeout_seconds=transaction_timeout_seconds,
        ) as producer,
        nullcontext() if transactional_id is None else producer.transaction(),
    ):
        writer = ColumnsWriter(client, producer, topic, compression, batch_bytes)
        yield writer
        if not writer.is_prepared:
            writer.flush()


def write_topic(
    bootstrap: str | Sequence[str],
    topic: str,
    rows: Iterable[pa.RecordBatch],
    *,
    settings: ClientSettings | None = None,
    compression: Compression = Compression.NONE,
) -> int:
    """Write rows to a topic, and return how many, once they are stored; see `ColumnsWriter`.

    Each goes to the partition that its column `partition` says; drop that column to have the keys
    decide.
    """
    with open_writer(bootstrap, topic, settings=settings, compression=compression) as writer:
        for batch in rows:
            writer.write(batch)
    return writer.rows
