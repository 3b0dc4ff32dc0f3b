"""The producer against a real broker."""

from contextlib import suppress
from typing import Any, Literal

import pytest
import trio

from tests.client.helpers import numbered, read, read_values
from tidemark.client import (
    Client,
    Compression,
    DeliveryFuture,
    ErrorCode,
    Producer,
    RequestError,
    TopicPartition,
    open_client,
)
from tidemark.client.background import Signal
from tidemark.client.partitioner import murmur2_partition
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset
from tidemark.testing import BlockingCluster, open_cluster


async def test_records_are_where_their_futures_say(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=3)
    async with client.producer(batch_bytes=200) as producer:
        futures = [
            await producer.send(topic, value, headers=[("n", value)], timestamp_ms=1000 + index)
            for index, value in enumerate(numbered(100))
        ]
    found = {(record.partition, record.offset): record for record in await read(client, topic)}
    for index, future in enumerate(futures):
        stored = future.result()
        record = found[stored.partition, stored.offset]
        assert record.value == b"%d" % index
        assert record.timestamp_ms == stored.timestamp_ms == 1000 + index
        assert record.headers == (("n", b"%d" % index),)
    assert len(found) == 100


async def test_a_key_decides_the_partition_and_its_order_is_kept(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=4)
    async with client.producer(batch_bytes=100) as producer:
        for index in range(200):
            await producer.send(topic, b"%d" % index, b"key-%d" % (index % 7))
    by_key: dict[bytes | None, list[int]] = {}
    for record in await read(client, topic):
        assert record.key is not None
        assert record.partition == murmur2_partition(record.key, 4)
        by_key.setdefault(record.key, []).append(int(record.value or b""))
    for values in by_key.values():
        assert values == sorted(values)


@pytest.mark.parametrize("chosen", [-1, 3, 1.0, None])
async def test_a_partitioner_that_names_no_partition_is_told_so(
    client: Client, topic: str, chosen: object
) -> None:
    await client.admin.create_topic(topic, partitions=3)
    place: Any = lambda _key, _count: chosen  # noqa: E731  # Any: it breaks its own contract
    async with client.producer(partitioner=place) as producer:
        with pytest.raises(ValueError, match=f"gave {chosen} for topic {topic}, which has 3 "):
            await producer.send(topic, b"value", b"key")
    assert await read(client, topic) == []


async def test_keyless_records_use_all_partitions_in_full_batches(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=3)
    async with client.producer(batch_bytes=500) as producer:
        for value in numbered(1000):
            await producer.send(topic, value)
    ends = await client.admin.end_offsets([TopicPartition(topic, p) for p in range(3)])
    assert all(end > 100 for end in ends.values())


@pytest.mark.parametrize("compression", list(Compression))
async def test_every_compression_comes_back(
    client: Client, topic: str, compression: Compression
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(compression=compression) as producer:
        for value in numbered(100):
            await producer.send(topic, value)
    assert await read_values(client, topic) == numbered(100)


@pytest.mark.parametrize("acks", ["all", 1, 0])
async def test_every_kind_of_acknowledgement(
    client: Client, topic: str, acks: Literal["all", 0, 1]
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(acks=acks) as producer:
        assert producer.is_idempotent == (acks == "all")
        stored = await (await producer.send(topic, b"x")).wait()
        assert stored.offset == (-1 if acks == 0 else 0)
    async with client.consumer(topic) as consumer:
        assert (await anext(consumer)).value == b"x"


async def test_a_ready_batch_is_stored_as_it_is(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    batch = encode_batch([Record(timestamp_ms=5, value=value) for value in numbered(3)])
    async with client.producer() as producer:
        futures = [await producer.send_batch(topic, 0, batch) for _ in range(10)]
    assert [future.result().offset for future in futures] == list(range(0, 30, 3))
    assert await read_values(client, topic) == numbered(3) * 10


async def test_a_batch_that_is_none_is_refused_before_it_is_taken(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    batch = encode_batch([Record()])
    async with client.producer() as producer:
        with pytest.raises(ValueError, match="are not one batch"):
            await producer.send_batch(topic, 0, batch + batch)


async def test_a_full_buffer_does_not_linger(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(buffer_bytes=2000, linger_ms=60_000) as producer:
        with trio.fail_after(10):
            for _ in range(100):
                await producer.send(topic, bytes(100))


async def test_linger_waits_for_company_and_flush_does_not(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(linger_ms=60_000) as producer:
        futures = [await producer.send(topic, value) for value in numbered(3)]
        await trio.sleep(0.05)
        assert not futures[0].is_done
        with trio.fail_after(20):
            await producer.flush()
        assert [future.result().offset for future in futures] == [0, 1, 2]


async def test_the_first_of_a_burst_is_sent_at_once_and_the_others_together(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as producer:
        await (await producer.send(topic, b"connects")).wait()
        async with trio.open_nursery() as nursery:
            for value in numbered(10):
                nursery.start_soon(producer.send, topic, value)
    async with client.consumer(topic, until_end=True) as consumer:
        counts = list[int]()
        while (fetched := await consumer.fetch_batches()) is not None:
            counts += [header.record_count for _, header in iter_headers(fetched.data)]
    assert counts == [1, 1, 9]


async def test_what_cannot_be_sent_is_refused_at_once(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer(request_bytes_max=1000) as producer:
        with pytest.raises(RequestError, match=r"MESSAGE_TOO_LARGE.* 1000"):
            await producer.send(topic, bytes(2000))
        with pytest.raises(RequestError, match="has 1 partitions, no partition 1"):
            await producer.send(topic, b"", partition=1)


async def test_a_record_that_is_too_large_fails_alone(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1, configs={"max.message.bytes": "500"})
    async with client.producer(linger_ms=10) as producer:
        futures = [
            await producer.send(topic, bytes(1000) if index == 50 else b"%d" % index)
            for index in range(100)
        ]
    for index, future in enumerate(futures):
        if index == 50:
            with pytest.raises(RequestError) as caught:
                future.result()
            assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        else:
            future.result()
    assert await read_values(client, topic) == [*numbered(50), *numbered(51, 100)]


async def test_an_error_in_the_block_goes_out_as_itself_and_sends_nothing_more(
    client: Client, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)

    taken: list[tuple[Producer, DeliveryFuture]] = []

    async def fail() -> None:
        async with client.producer(linger_ms=60_000) as producer:
            taken.append((producer, await producer.send(topic, b"x")))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    ((producer, future),) = taken
    with pytest.raises(RequestError, match="the producer was closed before"):
        future.result()
    with pytest.raises(trio.ClosedResourceError):
        await producer.send(topic, b"x")
    assert await read_values(client, topic) == []


async def test_who_is_cancelled_has_sent_nothing(client: Client, topic: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    ready = encode_batch([Record(Offset(0), 0, None, b"batch", ())])
    async with client.producer() as producer:
        await (await producer.send(topic, b"before")).wait()
        with trio.CancelScope() as cancelled:
            cancelled.cancel()
            await producer.send(topic, b"never")
        with trio.CancelScope() as cancelled_too:
            cancelled_too.cancel()
            await producer.send_batch(topic, 0, ready)
    assert cancelled.cancelled_caught
    assert cancelled_too.cancelled_caught
    assert await read_values(client, topic) == [b"before"]


async def test_settings_that_contradict_each_other_are_refused(client: Client) -> None:
    with pytest.raises(ValueError, match="acks"):
        client.producer(acks=1, idempotent=True)
    with pytest.raises(ValueError, match="at most 5"):
        client.producer(idempotent=True, max_in_flight=6)


async def test_a_restart_in_the_middle_loses_and_doubles_nothing(topic: str) -> None:
    async with open_cluster() as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic(topic, partitions=2)
        futures = []
        async with client.producer(batch_bytes=200) as producer, trio.open_nursery() as nursery:
            for index in range(2000):
                if index == 500:
                    nursery.start_soon(cluster.restart)
                futures.append(await producer.send(topic, b"%d" % index, partition=index % 2))
                if index % 100 == 0:
                    await trio.sleep(0.002)
        for future in futures:
            future.result()
        values = [record.value for record in await read(client, topic) if record.partition == 0]
        assert values == numbered(0, 2000, 2)


async def test_the_delivery_timeout_bounds_the_wait_for_a_broker_that_is_gone(topic: str) -> None:
    async with open_cluster() as cluster, open_client(cluster.bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        async with client.producer(delivery_timeout_seconds=0.3) as producer:
            await (await producer.send(topic, b"x")).wait()
            await cluster.stop()
            with (
                trio.fail_after(20),
                pytest.raises(RequestError, match=r"REQUEST_TIMED_OUT.*0\.3 s"),
            ):
                await (await producer.send(topic, b"y")).wait()
        await cluster.start()


async def test_a_topic_that_is_made_anew_with_fewer_partitions_is_sent_to(
    client: Client, topic: str
) -> None:
    """Records are placed by how many it has now."""
    await client.admin.create_topic(topic, partitions=8)
    keys = numbered(20)
    async with client.producer(delivery_timeout_seconds=1) as producer:

        async def send_all() -> bool:
            futures = [await producer.send(topic, key, key) for key in keys]
            futures += [await producer.send(topic, b"keyless") for _ in keys]
            await producer.flush()
            # Those that were taken in before it was known find no partition.
            with suppress(RequestError):
                return all(future.result().partition == 0 for future in futures)
            return False

        assert not await send_all()
        await client.admin.delete_topic(topic)
        await client.admin.create_topic(topic, partitions=1)
        with trio.fail_after(30):
            while not await send_all():
                pass
        with pytest.raises(RequestError, match="has 1 partitions, no partition 1"):
            await producer.send(topic, b"x", partition=1)


async def test_what_has_become_of_a_deleted_topic_is_not_asked_while_nothing_is_sent_to_it(
    client: Client, topic: str
) -> None:
    """It was, ten times a second, for as long as the producer was open."""
    await client.admin.create_topic(topic, partitions=2)
    async with client.producer(delivery_timeout_seconds=1) as producer:
        routes = producer._routes
        await (await producer.send(topic, b"x")).wait()
        await client.admin.delete_topic(topic)
        await client._network.refresh()
        routes._stale = Signal()
        routes.update()
        assert not routes._stale._event.is_set()
        await producer.send(topic, b"y")
        assert routes._stale._event.is_set()


async def test_a_partition_that_was_added_is_sent_to(
    client: Client, tidemark_session: BlockingCluster, topic: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with client.producer() as producer, open_client(tidemark_session.bootstrap) as other:
        await producer.send(topic, b"x", partition=0)
        await other.admin.create_partitions(topic, 3)
        assert (await (await producer.send(topic, b"x", partition=2)).wait()).offset == 0
        await other.admin.create_partitions(topic, 4)
        batch = encode_batch([Record(Offset(0), 0, None, b"x", ())])
        assert (await (await producer.send_batch(topic, 3, batch)).wait()).offset == 0
        with pytest.raises(RequestError, match="has 4 partitions, no partition 4"):
            await producer.send(topic, b"x", partition=4)
