"""Our own client library, against a broker in a process of its own."""

from collections.abc import Sequence

import pytest
import trio

from tests.clients import failover, group_failover, moving
from tests.clients.samples import CODECS, COMPRESSIBLE, SAMPLES, TIMESTAMP_MS
from tidemark.client import (
    AtTime,
    Client,
    Compression,
    Consumer,
    ConsumerRecord,
    ErrorCode,
    MaxTime,
    RequestError,
    TopicPartition,
    open_client,
)
from tidemark.client.load import Acks
from tidemark.protocol.types import Offset
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster


async def write(client: Client, topic: str, values: Sequence[bytes], acks: Acks = "all") -> None:
    async with client.producer(acks=acks) as producer:
        for value in values:
            await producer.send(topic, value, partition=0)


async def values_of(client: Client, topic: str) -> list[bytes | None]:
    async with client.consumer(topic, until_end=True) as consumer:
        return [record.value async for record in consumer]


async def take(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    return [await anext(consumer) for _ in range(count)]


async def test_topics(bootstrap: str, topic: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=3)
        assert len((await client.admin.describe_topic(topic)).partitions) == 3
        await client.admin.create_partitions(topic, 5)
        assert len((await client.admin.describe_topic(topic)).partitions) == 5
        with pytest.raises(RequestError) as refused:
            await client.admin.create_topic(topic)
        assert refused.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        await client.admin.delete_topic(topic)
        assert topic not in [found.name for found in await client.admin.list_topics()]


async def test_configs(bootstrap: str, topic: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, configs={"retention.ms": "1000000"})
        await client.admin.alter_configs(
            topic, {"flush": "os"}, append={"cleanup.policy": "compact"}
        )
        entries = {entry.name: entry for entry in await client.admin.describe_configs(topic)}
        assert entries["retention.ms"].value == "1000000"
        assert entries["flush"].value == "os"
        assert entries["cleanup.policy"].value == "delete,compact"
        assert entries["segment.bytes"].is_default


async def test_produce_and_consume(bootstrap: str, topic: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        async with client.producer() as producer:
            for sample in SAMPLES:
                await producer.send(
                    topic,
                    sample.value,
                    sample.key,
                    headers=sample.headers,
                    timestamp_ms=sample.timestamp_ms,
                )
        async with client.consumer(topic, until_end=True) as consumer:
            records = [record async for record in consumer]
    for offset, (sample, record) in enumerate(zip(SAMPLES, records, strict=True)):
        assert (record.offset, record.key, record.value) == (offset, sample.key, sample.value)
        assert (record.headers, record.timestamp_ms) == (sample.headers, sample.timestamp_ms)


@pytest.mark.parametrize("acks", [0, 1, "all"])
async def test_acks(bootstrap: str, topic: str, acks: Acks) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        await write(client, topic, [b"a", b"b", b"c"], acks)
        with trio.fail_after(10):
            async with client.consumer(topic) as consumer:  # acks=0 may arrive after the flush
                assert [record.value for record in await take(consumer, 3)] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("codec", CODECS)
async def test_compression(bootstrap: str, topic: str, codec: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        async with client.producer(compression=Compression[codec.upper()]) as producer:
            for value in COMPRESSIBLE:
                await producer.send(topic, value)
        assert await values_of(client, topic) == COMPRESSIBLE


async def test_idempotent_producer(bootstrap: str, topic: str) -> None:
    values = [str(number).encode() for number in range(2000)]
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        async with client.producer(idempotent=True, batch_bytes=500) as producer:
            deliveries = [await producer.send(topic, value) for value in values]
            assert [(await delivery.wait()).offset for delivery in deliveries] == list(range(2000))
        assert await values_of(client, topic) == values


async def test_order_within_each_partition(bootstrap: str, topic: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=4)
        async with client.producer() as producer:
            for number in range(1000):
                await producer.send(topic, b"%d" % number, b"%d" % (number % 17))
        last: dict[bytes | None, int] = {}
        async with client.consumer(topic, until_end=True) as consumer:
            async for record in consumer:
                assert record.value is not None
                assert last.get(record.key, -1) < int(record.value)
                last[record.key] = int(record.value)
        assert len(last) == 17


async def test_offsets_by_time(bootstrap: str, topic: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        async with client.producer(linger_ms=50) as producer:
            for number in range(10):
                await producer.send(topic, b"v", timestamp_ms=TIMESTAMP_MS + number * 1000)
        partition = TopicPartition(topic, 0)
        found = await client.admin.list_offsets({partition: AtTime(TIMESTAMP_MS + 4500)})
        assert (found[partition].offset, found[partition].timestamp_ms) == (5, TIMESTAMP_MS + 5000)
        assert (await client.admin.list_offsets({partition: MaxTime()}))[partition].offset == 9
        assert await client.admin.end_offsets([partition]) == {partition: 10}
        start = AtTime(TIMESTAMP_MS + 6500)
        async with client.consumer(topic, start=start, until_end=True) as consumer:
            assert [record.offset async for record in consumer] == [7, 8, 9]


async def test_group_shares_partitions(bootstrap: str, topic: str, group: str) -> None:
    async with open_client(bootstrap) as one_client, open_client(bootstrap) as two_client:
        await one_client.admin.create_topic(topic, partitions=4)
        with trio.fail_after(20):
            async with one_client.consumer(topic, group=group, heartbeat_seconds=0.2) as one:
                async with two_client.consumer(topic, group=group, heartbeat_seconds=0.2) as two:
                    await _until_assigned(one, 2)
                    await _until_assigned(two, 2)
                    assert one.assignment.isdisjoint(two.assignment)
                await _until_assigned(one, 4)


async def _until_assigned(consumer: Consumer, count: int) -> None:
    while len(consumer.assignment) != count:  # noqa: ASYNC110  # there is nothing to be told by
        await trio.sleep(0.02)


async def test_commits_survive_a_restart(own_broker: BrokerProcess, topic: str, group: str) -> None:
    async with open_client(own_broker.bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        await write(client, topic, [b"a", b"b", b"c", b"d"])
        async with client.consumer(topic, group=group, auto_commit_seconds=None) as consumer:
            await take(consumer, 2)
            await consumer.commit()
    await trio.to_thread.run_sync(own_broker.kill)
    await trio.to_thread.run_sync(own_broker.start)
    async with (
        open_client(own_broker.bootstrap) as client,
        client.consumer(topic, group=group) as consumer,
    ):
        assert [record.value for record in await take(consumer, 2)] == [b"c", b"d"]


async def test_static_member(bootstrap: str, topic: str, group: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=2)
        async with client.consumer(topic, group=group, instance_id="static") as consumer:
            await _until_assigned(consumer, 2)
            before = await client.admin.describe_group(group)
        # A static member does not leave, and coming back it is the same one.
        assert [member.instance_id for member in before.members] == ["static"]
        async with client.consumer(topic, group=group, instance_id="static") as consumer:
            await _until_assigned(consumer, 2)
            after = await client.admin.describe_group(group)
        assert [member.instance_id for member in after.members] == ["static"]


async def test_automatic_topic(bootstrap: str, topic: str) -> None:
    async with open_client(bootstrap) as client:
        await write(client, topic, [b"first use"])
        assert await values_of(client, topic) == [b"first use"]


async def test_delete_records(bootstrap: str, topic: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        for value in (b"a", b"b", b"c"):
            await write(client, topic, [value])
        partition = TopicPartition(topic, 0)
        assert await client.admin.delete_records({partition: Offset(2)}) == {partition: 2}
        assert await values_of(client, topic) == [b"c"]


async def test_record_too_large(bootstrap: str, topic: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, configs={"max.message.bytes": "1000"})
        async with client.producer() as producer:
            delivery = await producer.send(topic, b"x" * 5000)
            with pytest.raises(RequestError) as refused:
                await delivery.wait()
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


async def test_group_admin(bootstrap: str, topic: str, group: str) -> None:
    async with open_client(bootstrap) as client:
        await client.admin.create_topic(topic, partitions=1)
        await write(client, topic, [b"a", b"b"])
        async with client.consumer(topic, group=group) as consumer:
            await take(consumer, 2)
            await consumer.commit()
            assert group in [found.group for found in await client.admin.list_groups()]
            described = await client.admin.describe_group(group)
            assert (described.state, len(described.members)) == ("Stable", 1)
            with pytest.raises(RequestError) as refused:
                await client.admin.delete_group(group)
            assert refused.value.code is ErrorCode.NON_EMPTY_GROUP
        offsets = await client.admin.list_group_offsets(group)
        assert offsets[TopicPartition(topic, 0)].offset == 2
        await client.admin.delete_group(group)


async def test_failover(cluster: ProcessCluster, topic: str) -> None:
    failover.create(cluster, topic)
    with trio.fail_after(40):
        async with open_client(cluster.bootstrap) as client:
            sent = []
            async with client.producer() as producer:
                for number in range(failover.COUNT):
                    if number == failover.KILL_AT:
                        await trio.to_thread.run_sync(failover.kill_leader, cluster, topic)
                    partition, value = failover.partition_of(number), failover.value_of(number)
                    sent.append(await producer.send(topic, value, partition=partition))
                    await trio.sleep(0.001)
                for delivery in sent:
                    await delivery.wait()
            async with client.consumer(topic, until_end=True) as consumer:
                records = [record async for record in consumer]
    failover.check_all_there((record.partition, record.value or b"") for record in records)


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_moving(cluster: ProcessCluster, topic: str, *, is_idempotent: bool) -> None:
    with trio.fail_after(60), moving.moving(cluster, topic) as moves:
        async with open_client(cluster.bootstrap) as client:
            sent = []
            async with client.producer(acks="all", idempotent=is_idempotent) as producer:
                for number in moves.numbers():
                    sent.append(await producer.send(topic, moving.value_of(number), partition=0))
                    await trio.sleep(0.001)
                for delivery in sent:
                    await delivery.wait()
            moving.check_each_once(len(sent), await values_of(client, topic))


async def test_group_failover(cluster: ProcessCluster, topic: str, group: str) -> None:
    group_failover.fill(cluster, topic)
    witness = group_failover.Witness()

    async def commit(consumer: Consumer) -> None:
        offsets = witness.positions
        await consumer.commit(
            {TopicPartition(topic, number): Offset(offset) for number, offset in offsets.items()}
        )
        witness.acknowledged(offsets.items())

    async def read(consumer: Consumer, count: int) -> None:
        while witness.count < count:
            record = await anext(consumer)
            witness.read(record.partition, record.offset, record.value)
            if witness.count % group_failover.COMMIT_EVERY == 0:
                await commit(consumer)

    with trio.fail_after(group_failover.SECONDS_MAX):
        async with open_client(cluster.bootstrap) as client:
            async with client.consumer(
                topic, group=group, start="beginning", auto_commit_seconds=None
            ) as consumer:
                await read(consumer, group_failover.KILL_AT)
                await trio.to_thread.run_sync(group_failover.kill_coordinator, cluster, group)
                await read(consumer, group_failover.COUNT)
                await commit(consumer)
            found = await client.admin.list_group_offsets(group)
    witness.check_commits((at.partition, each.offset) for at, each in found.items())
