"""What a producer takes in: records into batches of their partitions, as far as there is room.

The bound on everything that is neither stored nor given up is `buffer_bytes`, and who wants to send
beyond it waits.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import trio

from tidemark.client.accumulator import PartitionQueue
from tidemark.client.batches import RECORD_OVERHEAD, Batch, failure_of
from tidemark.client.delivery import DeliveryFuture, wait_settled
from tidemark.client.partitioner import StickyPartitions
from tidemark.client.producer_settings import ProducerSettings
from tidemark.client.record_arguments import (
    Headers,
    as_bytes,
    as_headers,
    as_timestamp,
    headers_bytes,
)
from tidemark.client.routes import Routes, TopicRoutes
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import check_batch
from tidemark.protocol.records.records import Record
from tidemark.protocol.types import Offset

_FIRST: Final = Offset(0)
_EXPIRY_INTERVAL_SECONDS: Final = 0.5


class OpenTransaction:
    """What is known of the one that is open."""

    def __init__(self) -> None:
        self.is_empty = True
        self.failure: RequestError | None = None
        """Of the first record that could not be stored: all of it can only be aborted."""
        self.is_prepared = False
        """Somebody else is going to end it."""


class TakingIn:
    """The sending half of a `Producer`."""

    def __init__(
        self,
        routes: Routes,
        settings: ProducerSettings,
        sticky: StickyPartitions,
        *,
        is_idempotent: bool,
        is_transactional: bool,
    ) -> None:
        self._routes = routes
        self._settings = settings
        self._sticky = sticky
        self._unsettled: dict[Batch, None] = {}
        self._buffered_bytes = 0
        self._waiting_for_room = trio.lowlevel.ParkingLot()
        self._is_closed = False
        self._transaction: OpenTransaction | None = None
        self._is_shut = is_transactional
        """Whether no record is taken now."""
        self.is_idempotent = is_idempotent
        """Whether the broker keeps retries from storing a record twice."""

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Headers = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> DeliveryFuture:
        """Take one record in; it is sent in the background with others of its partition.

        `value` and `key` are bytes: encode text, as in `"text".encode()`. None as the value of a
        key is its tombstone, where the topic is compacted.

        Waits while the buffer is full, which is the back-pressure, and for metadata when the topic
        is new to this producer. Otherwise it yields to other tasks only when it has filled a batch,
        so that a loop over many records stays cheap. Cancelled, the record has not been taken.
        Raises `RequestError` when the topic does not exist, or the record is larger than any batch
        may be; `TypeError` for what is no bytes, `ValueError` for what no record can hold.
        """
        # Before anything is waited for. Types are compared, which is quicker than isinstance: this
        # is paid for every record.
        if value.__class__ is not bytes:
            value = as_bytes("value", value)
        if key is not None and key.__class__ is not bytes:
            key = as_bytes("key", key)
        named = as_headers(headers) if headers else ()
        if timestamp_ms is not None:
            timestamp_ms = as_timestamp(timestamp_ms)
        try:
            known = self._routes.topics.get(topic)
        except TypeError:  # a list, for one
            raise TypeError(f"a topic's name is a str, not {topic!r}") from None
        if known is None or (partition is not None and known.lacks(partition)):
            known = await self._learn(topic)
        size = RECORD_OVERHEAD + (len(value) if value else 0) + (len(key) if key else 0)
        if named:
            size += headers_bytes(named)
        if self._buffered_bytes + size > self._settings.buffer_bytes:
            await self._wait_room(size)
        if size > self._settings.request_bytes_max or self._is_shut:
            self._refuse(size)
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        if partition is not None:
            queue = known.queue(partition)
        elif key is not None:
            queue = known.placed(self._settings.partitioner(key, known.count))
        else:
            queue = known.keyless
        record = Record(_FIRST, timestamp_ms, key, value, named)
        batch = queue.try_add(record, size)
        if batch is not None:
            self._buffered_bytes += size
            return DeliveryFuture(batch, batch.count - 1, timestamp_ms)
        if key is None and partition is None:
            queue = known.keyless = known.queues[self._sticky.move_on(topic, known.led)]
        return await self._open_batch(queue, record, size)

    async def send_batch(self, topic: str, partition: int, batch: bytes) -> DeliveryFuture:
        """Take one encoded record batch (magic 2) in, to be sent as it is.

        Producer id, epoch and sequence are stamped into a copy when this producer is idempotent.
        The future's offset is that of the batch's first record. Waits as `send` does; cancelled,
        the batch has not been taken.
        """
        known = self._routes.topics.get(topic)
        if known is None or known.lacks(partition):
            known = await self._learn(topic)
        header = check_batch(batch)
        if header.size_bytes != len(batch):
            raise ValueError(f"{len(batch)} bytes are not one batch of {header.size_bytes}")
        if self._buffered_bytes + len(batch) > self._settings.buffer_bytes:
            await self._wait_room(len(batch))
        if self._is_shut:
            self._refuse(len(batch))
        queue = known.queue(partition)
        await trio.lowlevel.checkpoint_if_cancelled()
        ready = queue.add_ready(batch, header.record_count, trio.current_time())
        self._buffered_bytes += len(batch)
        self._track(ready)
        self._routes.offer(queue)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return DeliveryFuture(ready, 0, header.base_timestamp)

    async def flush(self) -> None:
        """Send what is buffered now, without linger, and wait until all of it is settled.

        Failures show in the futures, not here.
        """
        with self._without_linger():
            for batch in list(self._unsettled):
                await wait_settled(batch)

    @contextmanager
    def _without_linger(self) -> Iterator[None]:
        """Nothing waits for company during the block."""
        self._routes.flushing += 1
        for queue in self._routes.queues():
            self._routes.offer(queue)
        try:
            yield
        finally:
            self._routes.flushing -= 1

    async def _learn(self, topic: str) -> TopicRoutes:
        self._require_open()
        await self._routes.find(topic)
        self._require_open()  # still
        return self._routes.add(topic)

    def _require_open(self) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("the producer is closed")

    async def _open_batch(
        self, queue: PartitionQueue, record: Record, size_bytes: int
    ) -> DeliveryFuture:
        """Begin a batch with a record. The one before it, if there was one, is full and can go."""
        # Cancelled before the record is taken or not at all: a caller that tries again would send
        # it twice. Without a cancellation, this is no checkpoint, and the queue is as it was.
        await trio.lowlevel.checkpoint_if_cancelled()
        batch = queue.open(record, size_bytes, trio.current_time())
        self._buffered_bytes += size_bytes
        self._track(batch)
        self._routes.send_or_offer(queue)
        await trio.lowlevel.cancel_shielded_checkpoint()
        return DeliveryFuture(batch, 0, record.timestamp_ms)

    def _track(self, batch: Batch) -> None:
        self._unsettled[batch] = None
        transaction = self._transaction
        if transaction is not None:
            transaction.is_empty = False

        def release() -> None:
            if transaction is not None:
                transaction.failure = transaction.failure or failure_of(batch.outcome)
            del self._unsettled[batch]
            self._buffered_bytes -= batch.size_bytes
            if self._waiting_for_room:
                self._waiting_for_room.unpark_all()

        batch.when_settled.append(release)

    async def _wait_room(self, size_bytes: int) -> None:
        with self._without_linger():
            while self._unsettled and (
                self._buffered_bytes + size_bytes > self._settings.buffer_bytes
            ):
                await self._waiting_for_room.park()

    def _refuse(self, size_bytes: int) -> None:
        self._require_open()
        if self._is_shut:
            raise ValueError("a transactional producer sends within `async with p.transaction():`")
        raise RequestError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a record of {size_bytes} bytes; this producer's requests have at most"
            f" {self._settings.request_bytes_max}",
        )

    async def expire_until_cancelled(self) -> None:
        """Give up batches whose delivery timeout has run out."""
        timeout_seconds = self._settings.delivery_timeout_seconds
        # A timeout of 0 is no reason to do nothing else.
        interval_seconds = min(_EXPIRY_INTERVAL_SECONDS, max(timeout_seconds, 0.01))
        while True:
            await trio.sleep(interval_seconds)
            created_before = trio.current_time() - timeout_seconds
            for queue in self._routes.queues():
                is_led = self._routes.is_led(queue)
                if queue.expire(created_before, timeout_seconds, is_led=is_led):
                    self._routes.offer(queue)

    def close(self) -> None:
        """Take nothing more in, and give up what is not settled."""
        self._is_closed = self._is_shut = True
        error = RequestError(ErrorCode.REQUEST_TIMED_OUT, "the producer was closed before")
        for queue in self._routes.queues():
            queue.abandon(error)
