"""Sending records: see `Producer`.

`send` puts a record into a batch of its partition and returns. One task for each broker
(`sender.py`) takes batches from there and sends them; what happens to a batch is decided by its
partition's queue (`accumulator.py`). The bound on everything that is neither stored nor given up
is `buffer_bytes`, and who wants to send beyond it waits.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

from tidemark.client.accumulator import BatchLimits, PartitionQueue, ProducerIdentity
from tidemark.client.background import Signal, open_background
from tidemark.client.batches import RECORD_OVERHEAD, Batch, Failed
from tidemark.client.codes import check
from tidemark.client.network import Network
from tidemark.client.partitioner import Partitioner, StickyPartitions, murmur2_partition
from tidemark.client.pool import Pool, open_pool
from tidemark.client.records import RecordMetadata
from tidemark.client.sender import BrokerSender, SendSettings
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import check_batch
from tidemark.protocol.records.records import Record
from tidemark.protocol.types import NO_OFFSET, NodeId, Offset, TopicPartition

_FIRST: Final = Offset(0)
_EXPIRY_INTERVAL_SECONDS: Final = 0.5
_NOWHERE: Final = PartitionQueue("", -1, BatchLimits(), None)
"""Never has an open batch, so that it stands for "not chosen yet"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSettings:
    """What `Client.producer` was told; see there."""

    acks: int = -1
    idempotent: bool | None = None
    compression: Compression = Compression.NONE
    linger_seconds: float = 0.0
    batch_bytes: int = 16 * 1024
    request_bytes_max: int = 1024 * 1024
    buffer_bytes: int = 32 * 1024 * 1024
    max_in_flight: int = 5
    delivery_timeout_seconds: float = 120.0
    partitioner: Partitioner = murmur2_partition

    def __post_init__(self) -> None:
        if self.acks not in (-1, 0, 1):
            raise ValueError(f'acks is "all", 1 or 0, not {self.acks!r}')
        if self.max_in_flight < 1:
            raise ValueError("max_in_flight is at least 1")
        if self.idempotent and self.acks != -1:
            raise ValueError('an idempotent producer needs acks="all"')
        if self.idempotent and self.max_in_flight > 5:
            # The broker remembers five batches, so a sixth could not be told from a new one.
            raise ValueError("an idempotent producer has at most 5 requests in flight")

    @property
    def wants_identity(self) -> bool:
        if self.idempotent is None:
            return self.acks == -1 and self.max_in_flight <= 5
        return self.idempotent


class DeliveryFuture:
    """What will become of one record (or one ready batch)."""

    __slots__ = ("_batch", "_index", "_timestamp_ms")

    def __init__(self, batch: Batch, index: int, timestamp_ms: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp_ms = timestamp_ms

    @property
    def is_done(self) -> bool:
        return self._batch.outcome is not None

    def result(self) -> RecordMetadata:
        """As `wait`, when it is known; only when `is_done`."""
        outcome = self._batch.outcome
        assert outcome is not None, "the delivery is not settled yet"
        if isinstance(outcome, Failed):
            raise RequestError(outcome.error.code, outcome.error.message)
        offset = NO_OFFSET if outcome.base_offset < 0 else outcome.base_offset + self._index
        stamped = outcome.append_time_ms >= 0
        return RecordMetadata(
            self._batch.topic,
            self._batch.partition,
            Offset(offset),
            outcome.append_time_ms if stamped else self._timestamp_ms,
        )

    async def wait(self) -> RecordMetadata:
        """Where it was stored, once the broker has acknowledged it as `acks` asks.

        Raises `RequestError` with the broker's code, or with REQUEST_TIMED_OUT when the delivery
        timeout ran out; then it may be stored nevertheless. Cancelling the wait changes nothing
        about the delivery.
        """
        if self._batch.outcome is None:
            await _wait_settled(self._batch)
        return self.result()


async def _wait_settled(batch: Batch) -> None:
    if batch.outcome is None:
        settled = trio.Event()
        batch.when_settled.append(settled.set)
        await settled.wait()


@dataclass(slots=True)
class _Topic:
    """A topic that is sent to: the queues of its partitions, and who sends for each."""

    queues: list[PartitionQueue] = field(default_factory=list)
    senders: list[BrokerSender | None] = field(default_factory=list)
    led: Sequence[int] = ()
    """The partitions that have a leader, or all if none has: where keyless records may go."""
    keyless: PartitionQueue = _NOWHERE
    """The partition that keyless records go to now."""


class Producer:
    """Sends records; made by `Client.producer`."""

    def __init__(
        self,
        network: Network,
        pool: Pool,
        nursery: trio.Nursery,
        settings: ProducerSettings,
        identity: ProducerIdentity | None,
    ) -> None:
        self._network = network
        self._pool = pool
        self._nursery = nursery
        self._settings = settings
        self._identity = identity
        self._limits = BatchLimits(
            batch_bytes=settings.batch_bytes,
            in_flight_max=settings.max_in_flight,
            compression=settings.compression,
        )
        self._send_settings = SendSettings(
            acks=settings.acks,
            linger_seconds=settings.linger_seconds,
            request_bytes_max=settings.request_bytes_max,
            in_flight_max=settings.max_in_flight,
            request_timeout_ms=int(network.settings.request_timeout_seconds * 1000),
        )
        self._sticky = StickyPartitions(network.random)
        self._topics: dict[str, _Topic] = {}
        self._senders: dict[NodeId, BrokerSender] = {}
        self._unsettled: dict[Batch, None] = {}
        self._buffered_bytes = 0
        self._room = trio.Event()
        self._flushing = 0
        self._stale = Signal()
        self._is_closed = False

    @property
    def is_idempotent(self) -> bool:
        """Whether the broker keeps retries from storing a record twice."""
        return self._identity is not None

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> DeliveryFuture:
        """Take one record in; it is sent in the background with others of its partition.

        Waits while the buffer is full, which is the back-pressure, and for metadata when the topic
        is new to this producer. Otherwise it yields to other tasks only when it has filled a batch,
        so that a loop over many records stays cheap. Cancelled while it waits, the record has not
        been taken. Raises `RequestError` when the topic does not exist, or the record is larger
        than any batch may be.
        """
        known = self._topics.get(topic)
        if known is None:
            known = await self._learn(topic)
        size = RECORD_OVERHEAD + (len(value) if value else 0) + (len(key) if key else 0)
        if headers:
            size += _headers_bytes(headers)
        if self._buffered_bytes + size > self._settings.buffer_bytes:
            await self._wait_room(size)
        if size > self._settings.request_bytes_max or self._is_closed:
            self._refuse(size)
        if timestamp_ms is None:
            timestamp_ms = time.time_ns() // 1_000_000
        if partition is not None:
            queue = self._queue(topic, known, partition)
        elif key is not None:
            queue = known.queues[self._settings.partitioner(key, len(known.queues))]
        else:
            queue = known.keyless
        record = Record(_FIRST, timestamp_ms, key, value, tuple(headers))
        batch = queue.try_add(record, size)
        if batch is not None:
            self._buffered_bytes += size
            return DeliveryFuture(batch, batch.count - 1, timestamp_ms)
        if key is None and partition is None:
            queue = known.keyless = known.queues[self._sticky.move_on(topic, known.led)]
        return await self._open_batch(known, queue, record, size)

    async def send_batch(self, topic: str, partition: int, batch: bytes) -> DeliveryFuture:
        """Take one encoded record batch (magic 2) in, to be sent as it is.

        Producer id, epoch and sequence are stamped into a copy when this producer is idempotent.
        The future's offset is that of the batch's first record.
        """
        known = self._topics.get(topic)
        if known is None:
            known = await self._learn(topic)
        header = check_batch(batch)
        if header.size_bytes != len(batch):
            raise ValueError(f"{len(batch)} bytes are not one batch of {header.size_bytes}")
        if self._buffered_bytes + len(batch) > self._settings.buffer_bytes:
            await self._wait_room(len(batch))
        if self._is_closed:
            self._refuse(len(batch))
        queue = self._queue(topic, known, partition)
        ready = queue.add_ready(batch, header.record_count, trio.current_time())
        self._buffered_bytes += len(batch)
        self._track(ready)
        self._offer(known, partition)
        await trio.lowlevel.checkpoint()
        return DeliveryFuture(ready, 0, header.base_timestamp)

    async def flush(self) -> None:
        """Send what is buffered now, without linger, and wait until all of it is settled.

        Failures show in the futures, not here.
        """
        self._flushing += 1
        try:
            for topic in self._topics.values():
                for partition in range(len(topic.queues)):
                    self._offer(topic, partition)
            for batch in list(self._unsettled):
                await _wait_settled(batch)
        finally:
            self._flushing -= 1

    # Taking in

    def _queue(self, topic: str, known: _Topic, partition: int) -> PartitionQueue:
        if not 0 <= partition < len(known.queues):
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{topic} has {len(known.queues)} partitions, no partition {partition}",
            )
        return known.queues[partition]

    async def _open_batch(
        self, known: "_Topic", queue: PartitionQueue, record: Record, size_bytes: int
    ) -> DeliveryFuture:
        """Begin a batch with a record. The one before it, if there was one, is full and can go."""
        batch = queue.open(record, size_bytes, trio.current_time())
        self._buffered_bytes += size_bytes
        self._track(batch)
        self._offer(known, queue.partition)
        await trio.lowlevel.checkpoint()
        return DeliveryFuture(batch, 0, record.timestamp_ms)

    def _track(self, batch: Batch) -> None:
        self._unsettled[batch] = None

        def release() -> None:
            del self._unsettled[batch]
            self._buffered_bytes -= batch.size_bytes
            self._room.set()

        batch.when_settled.append(release)

    async def _wait_room(self, size_bytes: int) -> None:
        while self._buffered_bytes + size_bytes > self._settings.buffer_bytes and self._unsettled:
            self._room = trio.Event()
            await self._room.wait()

    def _refuse(self, size_bytes: int) -> None:
        if self._is_closed:
            raise trio.ClosedResourceError("the producer is closed")
        raise RequestError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a record of {size_bytes} bytes; request_bytes_max is"
            f" {self._settings.request_bytes_max}",
        )

    # Who leads what

    async def _learn(self, topic: str) -> _Topic:
        await self._network.topic(topic, may_create=True)
        known = self._topics.setdefault(topic, _Topic())
        self.route()
        return known

    def route(self) -> None:
        """Give every partition to the sender of the broker that leads it now."""
        view = self._network.view
        has_leaderless = False
        for name, topic in self._topics.items():
            described = view.topics.get(name)
            for partition in range(
                len(topic.queues), len(described.partitions) if described else 0
            ):
                topic.queues.append(PartitionQueue(name, partition, self._limits, self._identity))
                topic.senders.append(None)
            led: list[int] = []
            for partition in range(len(topic.queues)):
                leader = view.leader(TopicPartition(name, partition))
                if leader is not None:
                    led.append(partition)
                self._assign(topic, partition, leader.node_id if leader else None)
            has_leaderless |= len(led) < len(topic.queues)
            topic.led = led or range(len(topic.queues))
        if has_leaderless:
            self._stale.set()

    def _assign(self, topic: _Topic, partition: int, node_id: NodeId | None) -> None:
        sender, old = None, topic.senders[partition]
        if node_id is not None:
            sender = self._senders.get(node_id) or self._start_sender(node_id)
        if sender is not old:
            if old is not None:
                old.withdraw(topic.queues[partition])
            topic.senders[partition] = sender
            self._offer(topic, partition)

    def _start_sender(self, node_id: NodeId) -> BrokerSender:
        sender = self._senders[node_id] = BrokerSender(
            node_id,
            self._network,
            self._pool,
            self._send_settings,
            is_flushing=lambda: self._flushing > 0,
            offer_to_leader=self._offer_queue,
            metadata_is_stale=self._stale.set,
        )
        self._nursery.start_soon(sender.send_until_cancelled)
        return sender

    def _offer(self, topic: _Topic, partition: int) -> None:
        sender = topic.senders[partition]
        if sender is not None:
            sender.offer(topic.queues[partition])

    def _offer_queue(self, queue: PartitionQueue) -> None:
        self._offer(self._topics[queue.topic], queue.partition)

    # Background

    async def refresh_when_stale(self) -> None:
        """Ask for metadata when an answer, or a partition without leader, calls for it."""
        backoff, random = self._network.settings.backoff, self._network.random
        while True:
            await self._stale.wait()
            await self._network.try_refresh(self._topics)
            await trio.sleep(backoff.delay(1, random))

    async def expire_until_cancelled(self) -> None:
        """Give up batches whose delivery timeout has run out."""
        timeout_seconds = self._settings.delivery_timeout_seconds
        while True:
            await trio.sleep(min(_EXPIRY_INTERVAL_SECONDS, timeout_seconds))
            created_before = trio.current_time() - timeout_seconds
            for topic in self._topics.values():
                for partition, queue in enumerate(topic.queues):
                    if queue.expire(created_before, timeout_seconds):
                        self._offer(topic, partition)

    def close(self) -> None:
        """Take nothing more in, and give up what is not settled."""
        self._is_closed = True
        error = RequestError(ErrorCode.REQUEST_TIMED_OUT, "the producer was closed before")
        for topic in self._topics.values():
            for queue in topic.queues:
                queue.abandon(error)


def _headers_bytes(headers: Sequence[tuple[str, bytes | None]]) -> int:
    # Four bytes a character and two lengths: an upper bound.
    return sum(10 + 4 * len(name) + (len(value) if value else 0) for name, value in headers)


@asynccontextmanager
async def open_producer(network: Network, settings: ProducerSettings) -> AsyncIterator[Producer]:
    """See `Client.producer`."""
    identity = await _identify(network, settings)
    async with open_pool(network.settings) as pool, open_background() as nursery:
        producer = Producer(network, pool, nursery, settings, identity)
        nursery.start_soon(producer.refresh_when_stale)
        nursery.start_soon(producer.expire_until_cancelled)
        with network.listening(producer.route):
            try:
                yield producer
                await producer.flush()
            finally:
                producer.close()


async def _identify(network: Network, settings: ProducerSettings) -> ProducerIdentity | None:
    """Ask for a producer id, if this producer is to be idempotent."""
    if not settings.wants_identity:
        return None

    async def ask() -> ProducerIdentity:
        connection = await network.any_connection()
        # The transaction timeout means nothing without a transactional id, but must be positive.
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer = await connection.request(request, InitProducerIdResponse)
        check(answer.error_code, "InitProducerId")
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    try:
        return await network.retrying(ask)
    except RequestError as error:
        if settings.idempotent is None and error.code is ErrorCode.UNSUPPORTED_VERSION:
            return None
        raise
