"""Load for measuring a cluster: full speed in either direction, and latency at a steady rate.

Works against any broker that speaks the protocol. Latency is measured from the moment a record was
*due*, not from when it was sent, so that a stall counts for all the records it delays.
"""

import gc
import random
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Final, Literal

import trio

from tidemark.client.client import Client
from tidemark.client.delivery import DeliveryFuture
from tidemark.protocol.errors import RequestError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.protocol.values import dataclass

Acks = Literal["all", 0, 1, -1]
Progress = Callable[[int], None]

_DUE: Final = struct.Struct(">d")
_NOT_COUNTED: Final = 0.0  # a due time that no record has
_WARM_RECORDS: Final = 20
# The kernel's timer for a loop counts in milliseconds and rounds up: who sleeps until something is
# due does it up to so late. The rest is watched for, up to a rate at which that costs little.
_TIMER_SECONDS: Final = 0.001
_WATCHED_RATE_MAX: Final = 250.0
_RANDOM_SHARE: Final = 2  # every second byte, so that compression has something to do


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What is written: `records` of `record_bytes` in batches of about `batch_bytes`."""

    topic: str
    partitions: int
    records: int
    record_bytes: int = 100
    batch_bytes: int = 16 * 1024
    acks: Acks = "all"
    compression: Compression = Compression.NONE

    def __post_init__(self) -> None:
        if self.record_bytes < _DUE.size:
            raise ValueError(f"a record of a load has at least {_DUE.size} bytes")

    @property
    def batch_records(self) -> int:
        return max(1, self.batch_bytes // self.record_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """What went through, and how long it took. `size_bytes` counts record values only."""

    records: int
    size_bytes: int
    seconds: float

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds

    @property
    def bytes_per_second(self) -> float:
        return self.size_bytes / self.seconds


async def produce(client: Client, load: Load, progress: Progress = lambda _: None) -> Throughput:
    """Write the load as ready batches, round robin over the partitions, as fast as it is taken.

    One batch goes before it, which connects and warms, and is deleted again.
    """
    records = sample_records(load)
    batch = encode_batch(records, compression=load.compression)
    async with client.producer(
        acks=load.acks, idempotent=False, request_bytes_max=max(1 << 20, len(batch) + 1024)
    ) as producer:
        await (await producer.send_batch(load.topic, 0, batch)).wait()
        await client.admin.delete_records({TopicPartition(load.topic, 0): -1})
        start = time.perf_counter()
        last: dict[int, DeliveryFuture] = {}
        for number, sent in enumerate(range(0, load.records, load.batch_records)):
            left = load.records - sent
            if left < load.batch_records:
                batch = encode_batch(records[:left], compression=load.compression)
            partition = number % load.partitions
            last[partition] = await producer.send_batch(load.topic, partition, batch)
            progress(min(left, load.batch_records) * load.record_bytes)
        for delivery in last.values():
            await delivery.wait()
        seconds = time.perf_counter() - start
    return Throughput(
        records=load.records, size_bytes=load.records * load.record_bytes, seconds=seconds
    )


async def consume(client: Client, load: Load, progress: Progress = lambda _: None) -> Throughput:
    """Read the topic from its beginning to its end, counting records by batch headers."""
    records = 0
    start = time.perf_counter()
    async with client.consumer(load.topic, until_end=True) as consumer:
        while (fetched := await consumer.fetch_batches()) is not None:
            counted = sum(header.record_count for _, header in iter_headers(fetched.data))
            records += counted
            progress(counted * load.record_bytes)
    seconds = time.perf_counter() - start
    return Throughput(records=records, size_bytes=records * load.record_bytes, seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Sorted, in seconds: from when a record was due to its acknowledgement, and to its arrival."""

    acknowledged: Sequence[float]
    delivered: Sequence[float]


async def steady(
    client: Client, load: Load, *, rate: float, progress: Progress = lambda _: None
) -> Latencies:
    """Send `load.records` single records, `rate` a second, and read them as they come.

    A few go before them that do not count: the first ones find connections, look up the topic and
    have the codecs compiled, here and at the broker.
    """
    acknowledged: list[float] = []
    delivered: list[float] = []

    async def read(*, task_status: trio.TaskStatus[None]) -> None:
        async with client.consumer(load.topic, start="end") as consumer:
            await consumer.end_offsets()
            task_status.started()
            while len(delivered) < load.records:
                for record in await consumer.fetch():
                    (due,) = _DUE.unpack_from(record.value or bytes(_DUE.size))
                    if due != _NOT_COUNTED:
                        delivered.append(time.perf_counter() - due)

    async def acknowledge(sent: trio.MemoryReceiveChannel[tuple[DeliveryFuture, float]]) -> None:
        async for delivery, due in sent:
            await delivery.wait()
            acknowledged.append(time.perf_counter() - due)

    # A record that is larger than what is sent at once by default is as much a load.
    request_bytes_max = max(1 << 20, load.record_bytes + 1024)
    async with (
        client.producer(acks=load.acks, request_bytes_max=request_bytes_max) as producer,
        trio.open_nursery() as nursery,
        AsyncExitStack() as stack,
    ):
        await nursery.start(read)
        # One task a partition, because a partition's records are acknowledged in their order.
        deliveries = []
        for partition in range(load.partitions):
            send, receive = trio.open_memory_channel[tuple[DeliveryFuture, float]](load.records)
            deliveries.append(await stack.enter_async_context(send))
            nursery.start_soon(acknowledge, receive)
            for _ in range(_WARM_RECORDS):
                value = _DUE.pack(_NOT_COUNTED).ljust(load.record_bytes, b"\0")
                await (await producer.send(load.topic, value, partition=partition)).wait()
        with _short_collections():
            begin = time.perf_counter() + 0.1
            padding = bytes(load.record_bytes - _DUE.size)
            for number in range(load.records):
                due = begin + number / rate
                await _sleep_until(due, watches=rate <= _WATCHED_RATE_MAX)
                partition = number % load.partitions
                value = _DUE.pack(due) + padding
                delivery = await producer.send(load.topic, value, partition=partition)
                deliveries[partition].send_nowait((delivery, due))
                progress(load.record_bytes)
    return Latencies(acknowledged=sorted(acknowledged), delivered=sorted(delivered))


async def _sleep_until(due: float, *, watches: bool) -> None:
    early = _TIMER_SECONDS if watches else 0.0
    await trio.sleep(max(0.0, due - early - time.perf_counter()))
    while watches and time.perf_counter() < due:
        await trio.lowlevel.checkpoint()


@contextmanager
def _short_collections() -> Iterator[None]:
    """Leave what is there by now out of garbage collections: looking through all of it takes 30 ms,
    which would be measured as the broker's."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def sample_records(load: Load) -> list[Record]:
    """One batch's records: values of which every other byte is random, the same in every run."""
    source = random.Random(load.record_bytes)
    value = bytearray(load.record_bytes)
    records = []
    for offset in range(load.batch_records):
        value[::_RANDOM_SHARE] = source.randbytes(len(value[::_RANDOM_SHARE]))
        records.append(
            Record(
                offset=Offset(offset),
                timestamp_ms=time.time_ns() // 1_000_000,
                key=None,
                value=bytes(value),
            )
        )
    return records


def percentile(ordered: Sequence[float], fraction: float) -> float:
    """The nearest-rank percentile of values that are sorted already, and not none."""
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


async def make_topic(client: Client, load: Load, configs: dict[str, str] | None = None) -> None:
    """Create the topic. Raises `RequestError` TOPIC_ALREADY_EXISTS, to spare what is there."""
    await client.admin.create_topic(load.topic, partitions=load.partitions, configs=configs)
    while True:  # another broker may not know it yet
        try:
            await client.admin.describe_topic(load.topic)
            return
        except RequestError as error:
            if not error.retriable:
                raise
            await trio.sleep(0.05)
