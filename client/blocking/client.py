"""The trio client from a thread; see the package for what it is for."""

import queue
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from itertools import islice
from typing import ParamSpec, TypeVar, Unpack

import trio

from tidemark.client.admin import Admin
from tidemark.client.client import Client
from tidemark.client.client import open_client as open_trio_client
from tidemark.client.consumer import Consumer
from tidemark.client.coordinator import GroupMembership
from tidemark.client.delivery import DeliveryFuture
from tidemark.client.descriptions import CommittedOffset
from tidemark.client.offsets import Start
from tidemark.client.options import ConsumerOptions, ProducerOptions
from tidemark.client.producer import Producer
from tidemark.client.records import ConsumerRecord, FetchedBatches, RecordMetadata
from tidemark.client.settings import ClientSettings
from tidemark.protocol.types import Offset, TopicPartition

P = ParamSpec("P")
T = TypeVar("T")

_CHUNK = 1000
"""How many records cross to the thread at a time."""
_BATCH_CHUNK = 8


class _Portal:
    """Runs things in the client's thread, one after the other as they are asked for."""

    def __init__(self, token: trio.lowlevel.TrioToken, nursery: trio.Nursery) -> None:
        self._token = token
        self._nursery = nursery

    def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        return trio.from_thread.run(partial(function, *args, **kwargs), trio_token=self._token)

    def run_sync(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return trio.from_thread.run_sync(partial(function, *args, **kwargs), trio_token=self._token)

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
        """The block of an asynchronous context manager, which lives in a task of its own there."""
        closing, closed = trio.Event(), trio.Event()
        failures: list[Exception] = []
        is_failing = False

        async def hold(task_status: trio.TaskStatus[T]) -> None:
            is_entered = False
            try:
                async with manager as value:
                    is_entered = True
                    task_status.started(value)
                    await closing.wait()
                    if is_failing:
                        raise _BlockFailed
            except _BlockFailed:
                pass
            except Exception as error:
                if not is_entered:
                    raise  # to the one who called start
                failures.append(error)
            finally:
                closed.set()

        value: T = self.run(self._nursery.start, hold)
        try:
            yield value
        except BaseException:
            is_failing = True
            raise
        finally:
            self.run_sync(closing.set)
            self.run(closed.wait)
        if failures:
            raise failures[0]


class _BlockFailed(Exception):
    """Tells the asynchronous side that the block did not end well."""


class BlockingClient:
    """Made by `open_client`. `admin` is the trio client's, for `run`:

    `client.run(client.admin.create_topic, "greetings", partitions=3)`
    """

    def __init__(self, client: Client, portal: _Portal) -> None:
        self._client = client
        self._portal = portal

    @property
    def admin(self) -> Admin:
        return self._client.admin

    def run(self, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something of the trio client, and wait for what it returns or raises."""
        return self._portal.run(function, *args, **kwargs)

    @contextmanager
    def producer(self, **settings: Unpack[ProducerOptions]) -> Iterator["BlockingProducer"]:
        """As `Client.producer`."""
        with self._portal.entered(self._client.producer(**settings)) as producer:
            yield BlockingProducer(producer, self._portal)

    @contextmanager
    def consumer(
        self,
        what: str | TopicPartition | Iterable[str | TopicPartition],
        **settings: Unpack[ConsumerOptions],
    ) -> Iterator["BlockingConsumer"]:
        """As `Client.consumer`."""
        with self._portal.entered(self._client.consumer(what, **settings)) as consumer:
            yield BlockingConsumer(consumer, self._portal)


class BlockingDelivery:
    """What will become of one record; see `DeliveryFuture`."""

    def __init__(self, future: DeliveryFuture, portal: _Portal) -> None:
        self._future = future
        self._portal = portal

    @property
    def is_done(self) -> bool:
        return self._future.is_done

    def wait(self) -> RecordMetadata:
        return self._portal.run(self._future.wait)


class BlockingProducer:
    """Made by `BlockingClient.producer`; see `Producer`."""

    def __init__(self, producer: Producer, portal: _Portal) -> None:
        self._producer = producer
        self._portal = portal

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> BlockingDelivery:
        """As `Producer.send`. For many records, `send_all` is ten times as fast."""
        future = self._portal.run(
            self._producer.send,
            topic,
            value,
            key,
            headers=headers,
            partition=partition,
            timestamp_ms=timestamp_ms,
        )
        return BlockingDelivery(future, self._portal)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """As `Producer.transaction`."""
        with self._portal.entered(self._producer.transaction()):
            yield

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, Offset | CommittedOffset],
        group: GroupMembership,
    ) -> None:
        """As `Producer.send_offsets_to_transaction`."""
        self._portal.run(self._producer.send_offsets_to_transaction, offsets, group)

    def send_batch(self, topic: str, partition: int, batch: bytes) -> BlockingDelivery:
        """As `Producer.send_batch`."""
        future = self._portal.run(self._producer.send_batch, topic, partition, batch)
        return BlockingDelivery(future, self._portal)

    def send_batches(self, batches: Iterable[tuple[str, int, bytes]]) -> list[DeliveryFuture]:
        """`Producer.send_batch` of many, as (topic, partition, batch).

        What becomes of them is known after `flush`, from the futures' `result`.
        """
        futures: list[DeliveryFuture] = []
        remaining = iter(batches)
        # A few at a time, so that they are on their way while the next are made.
        while chunk := list(islice(remaining, _BATCH_CHUNK)):
            futures += self._portal.run(self._send_batches, chunk)
        return futures

    async def _send_batches(self, chunk: list[tuple[str, int, bytes]]) -> list[DeliveryFuture]:
        return [await self._producer.send_batch(*batch) for batch in chunk]

    def send_all(
        self, topic: str, records: Iterable[tuple[bytes | None, bytes | None]]
    ) -> list[RecordMetadata]:
        """Send records, as (key, value), and wait until they are stored; where, in that order.

        Raises the first failure.
        """
        futures: list[DeliveryFuture] = []
        chunks = iter(records)
        while chunk := list(islice(chunks, _CHUNK)):
            futures += self._portal.run(self._send_chunk, topic, chunk)
        self.flush()
        return [future.result() for future in futures]

    async def _send_chunk(
        self, topic: str, chunk: list[tuple[bytes | None, bytes | None]]
    ) -> list[DeliveryFuture]:
        return [await self._producer.send(topic, value, key) for key, value in chunk]

    def flush(self) -> None:
        """As `Producer.flush`."""
        self._portal.run(self._producer.flush)


class BlockingConsumer:
    """Made by `BlockingClient.consumer`; see `Consumer`. An iterator of records.

    All records that crossed to the caller at once count as in its hands: they are committed
    automatically when it asks for the one after them.
    """

    def __init__(self, consumer: Consumer, portal: _Portal) -> None:
        self._consumer = consumer
        self._portal = portal

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while records := self.fetch():
            yield from records

    def fetch(self) -> list[ConsumerRecord]:
        """As `Consumer.fetch`."""
        return self._portal.run(self._consumer.fetch)

    def fetch_batches(self) -> FetchedBatches | None:
        """As `Consumer.fetch_batches`."""
        return self._portal.run(self._consumer.fetch_batches)

    @property
    def group_membership(self) -> GroupMembership:
        return self._consumer.group_membership

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._portal.run_sync(lambda: self._consumer.assignment)

    def position(self, topic_partition: TopicPartition) -> Offset:
        """The offset after the last record that crossed; see `Consumer.position`."""
        return self._portal.run_sync(self._consumer.position, topic_partition)

    def seek(self, topic_partition: TopicPartition, start: Start | str | int) -> None:
        """As `Consumer.seek`. An iteration under way hands out what has crossed already first."""
        self._portal.run(self._consumer.seek, topic_partition, start)

    def commit(
        self, offsets: Mapping[TopicPartition, Offset | CommittedOffset] | None = None
    ) -> None:
        """As `Consumer.commit`."""
        self._portal.run(self._consumer.commit, offsets)

    def committed(self) -> dict[TopicPartition, CommittedOffset]:
        """As `Consumer.committed`."""
        return self._portal.run(self._consumer.committed)

    def end_offsets(self) -> dict[TopicPartition, Offset]:
        """As `Consumer.end_offsets`."""
        return self._portal.run(self._consumer.end_offsets)


@contextmanager
def open_client(
    bootstrap: str | Sequence[str],
    *,
    settings: ClientSettings | None = None,
    client_id: str | None = None,
) -> Iterator[BlockingClient]:
    """As `tidemark.client.open_client`, run in a thread of its own for as long as the block."""
    opened: queue.SimpleQueue[tuple[Client, _Portal] | BaseException] = queue.SimpleQueue()
    stop = trio.Event()

    async def main() -> None:
        async with (
            open_trio_client(bootstrap, settings=settings, client_id=client_id) as client,
            trio.open_nursery() as nursery,
        ):
            portal = _Portal(trio.lowlevel.current_trio_token(), nursery)
            opened.put((client, portal))
            await stop.wait()

    def run() -> None:
        try:
            trio.run(main)
        except BaseException as error:
            opened.put(error)

    thread = threading.Thread(target=run, name="tidemark-client", daemon=True)
    thread.start()
    result = opened.get()
    if isinstance(result, BaseException):
        thread.join()
        raise result
    client, portal = result
    try:
        yield BlockingClient(client, portal)
    finally:
        portal.run_sync(stop.set)
        thread.join()
