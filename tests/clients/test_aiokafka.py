"""aiokafka, unmodified, on its own event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from aiokafka.errors import KafkaError, MessageSizeTooLargeError, TopicAlreadyExistsError

from tests.clients import failover, group_failover, moving
from tests.clients.quotas import VALUES, limited, takes_time
from tests.clients.samples import CODECS, COMPRESSIBLE, SAMPLES, TIMESTAMP_MS
from tidemark.testing.process import BrokerProcess
from tidemark.testing.process_cluster import ProcessCluster

# aiokafka ships no types: what it hands out is `Any`.


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    """Run an asyncio scenario to its end, within half a minute."""

    async def bounded() -> None:
        await asyncio.wait_for(scenario(), 30)

    asyncio.run(bounded())


async def until(what: Callable[[], bool]) -> None:
    while not what():  # noqa: ASYNC110  # the client has no event to wait for
        await asyncio.sleep(0.05)


@asynccontextmanager
async def admin(bootstrap: str) -> AsyncIterator[Any]:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def producer(bootstrap: str, **settings: object) -> AsyncIterator[Any]:
    client = AIOKafkaProducer(bootstrap_servers=bootstrap, **settings)
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


@asynccontextmanager
async def consumer(bootstrap: str, *topics: str, **settings: object) -> AsyncIterator[Any]:
    client = AIOKafkaConsumer(
        *topics, bootstrap_servers=bootstrap, auto_offset_reset="earliest", **settings
    )
    await client.start()
    try:
        yield client
    finally:
        await stop(client)


async def stop(client: Any) -> None:
    """Stop a consumer, also one whose fetch just waits to be tried again.

    Of such a fetch its `stop()` takes over the cancellation, and leaves its connections open.
    """
    task = asyncio.current_task()
    assert task is not None
    cancelled = task.cancelling()
    try:
        await client.stop()
    except asyncio.CancelledError:
        if task.cancelling() > cancelled:
            raise
        await client._client.close()


async def create(
    bootstrap: str, topic: str, partitions: int = 1, configs: dict[str, str] | None = None
) -> None:
    async with admin(bootstrap) as client:
        await client.create_topics([NewTopic(topic, partitions, 1, topic_configs=configs or {})])


async def produce(bootstrap: str, topic: str, values: Sequence[bytes], **settings: object) -> None:
    async with producer(bootstrap, **settings) as client:
        for value in values:
            await client.send(topic, value, partition=0)
        await client.flush()


async def read(bootstrap: str, topic: str, count: int) -> list[Any]:
    async with consumer(bootstrap) as client:
        client.assign([TopicPartition(topic, 0)])
        return [await client.getone() for _ in range(count)]


def test_topics(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic, partitions=3)
        async with admin(bootstrap) as client:
            assert topic in await client.list_topics()
            await client.create_partitions({topic: NewPartitions(5)})
            (described,) = await client.describe_topics([topic])
            assert len(described["partitions"]) == 5
            refused = await client.create_topics([NewTopic(topic, 1, 1)])
            assert refused.topic_errors[0][1] == TopicAlreadyExistsError.errno
            await client.delete_topics([topic])
            assert topic not in await client.list_topics()

    run(scenario)


def test_configs(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic, configs={"retention.ms": "1000000"})
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        async with admin(bootstrap) as client:
            change = ConfigResource(
                ConfigResourceType.TOPIC, topic, configs={"segment.bytes": "2000000"}
            )
            await client.alter_configs([change])
            (response,) = await client.describe_configs([resource])
        entries = {entry[0]: entry[1] for entry in response.resources[0][4]}
        assert entries["segment.bytes"] == "2000000"
        assert entries["retention.ms"] == "604800000", "AlterConfigs replaces all that was set"

    run(scenario)


def test_produce_and_consume(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        async with producer(bootstrap) as client:
            for sample in SAMPLES:
                await client.send(
                    topic,
                    sample.value,
                    sample.key,
                    partition=0,
                    headers=list(sample.headers),
                    timestamp_ms=sample.timestamp_ms,
                )
            await client.flush()
        records = await read(bootstrap, topic, len(SAMPLES))
        for offset, (sample, record) in enumerate(zip(SAMPLES, records, strict=True)):
            assert (record.offset, record.key, record.value) == (offset, sample.key, sample.value)
            assert (record.headers, record.timestamp) == (sample.headers, sample.timestamp_ms)

    run(scenario)


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(bootstrap: str, topic: str, acks: int | str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        await produce(bootstrap, topic, [b"a", b"b", b"c"], acks=acks)
        assert [record.value for record in await read(bootstrap, topic, 3)] == [b"a", b"b", b"c"]

    run(scenario)


@pytest.mark.parametrize("codec", CODECS)
def test_compression(bootstrap: str, topic: str, codec: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        await produce(bootstrap, topic, COMPRESSIBLE, compression_type=codec, linger_ms=20)
        records = await read(bootstrap, topic, len(COMPRESSIBLE))
        assert [record.value for record in records] == COMPRESSIBLE

    run(scenario)


def test_idempotent_producer(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        values = [str(number).encode() for number in range(1000)]
        await produce(bootstrap, topic, values, enable_idempotence=True)
        records = await read(bootstrap, topic, len(values))
        assert [(record.offset, record.value) for record in records] == list(enumerate(values))

    run(scenario)


def test_order_within_each_partition(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic, partitions=4)
        async with producer(bootstrap) as client:
            for number in range(500):
                await client.send(topic, b"%d" % number, b"%d" % (number % 17))
            await client.flush()
        last: dict[bytes, int] = {}
        async with consumer(bootstrap, topic) as client:
            for _ in range(500):
                record = await client.getone()
                assert last.get(record.key, -1) < int(record.value)
                last[record.key] = int(record.value)

    run(scenario)


def test_offsets_by_time(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        async with producer(bootstrap, linger_ms=50) as client:
            for number in range(10):
                at = TIMESTAMP_MS + number * 1000
                await client.send(topic, b"v", partition=0, timestamp_ms=at)
            await client.flush()
        partition = TopicPartition(topic, 0)
        async with consumer(bootstrap) as client:
            found = await client.offsets_for_times({partition: TIMESTAMP_MS + 4500})
            assert found[partition] == (5, TIMESTAMP_MS + 5000)
            assert await client.offsets_for_times({partition: TIMESTAMP_MS * 2}) == {
                partition: None
            }
            assert await client.beginning_offsets([partition]) == {partition: 0}
            assert await client.end_offsets([partition]) == {partition: 10}

    run(scenario)


def test_group_shares_partitions(bootstrap: str, topic: str, group: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic, partitions=4)
        settings = {"group_id": group, "heartbeat_interval_ms": 200, "metadata_max_age_ms": 1000}
        async with consumer(bootstrap, topic, **settings) as one:
            async with consumer(bootstrap, topic, **settings) as two:
                await until(lambda: {len(one.assignment()), len(two.assignment())} == {2})
                assert one.assignment().isdisjoint(two.assignment())
            await until(lambda: len(one.assignment()) == 4)

    run(scenario)


def test_commits_survive_a_restart(own_broker: BrokerProcess, topic: str, group: str) -> None:
    async def before() -> None:
        await create(own_broker.bootstrap, topic)
        await produce(own_broker.bootstrap, topic, [b"a", b"b", b"c", b"d"])
        settings = {"group_id": group, "enable_auto_commit": False}
        async with consumer(own_broker.bootstrap, topic, **settings) as client:
            await client.getone()
            await client.getone()
            await client.commit({TopicPartition(topic, 0): (2, "half of it")})

    async def after() -> None:
        async with consumer(own_broker.bootstrap, topic, group_id=group) as client:
            assert [(await client.getone()).value for _ in range(2)] == [b"c", b"d"]

    run(before)
    own_broker.kill()
    own_broker.start()
    run(after)


def test_quotas(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        async with producer(bootstrap, client_id=topic) as client:
            with takes_time():
                for value in [*VALUES, b"last"]:
                    await client.send(topic, value, partition=0)
                await client.flush()
        async with consumer(bootstrap, client_id=topic) as client:
            with takes_time():
                client.assign([TopicPartition(topic, 0)])
                values = [(await client.getone()).value for _ in range(len(VALUES) + 1)]
        assert values == [*VALUES, b"last"]

    with limited(bootstrap, topic):
        run(scenario)


def test_automatic_topic(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await produce(bootstrap, topic, [b"first use"])
        assert [record.value for record in await read(bootstrap, topic, 1)] == [b"first use"]

    run(scenario)


def test_delete_records(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        for value in (b"a", b"b", b"c"):
            await produce(bootstrap, topic, [value], acks="all")  # only then it may be deleted
        partition = TopicPartition(topic, 0)
        async with admin(bootstrap) as client:
            await client.delete_records({partition: RecordsToDelete(before_offset=2)})
        async with consumer(bootstrap) as client:
            assert await client.beginning_offsets([partition]) == {partition: 2}

    run(scenario)


def test_record_too_large(bootstrap: str, topic: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic, configs={"max.message.bytes": "1000"})
        async with producer(bootstrap) as client:
            with pytest.raises(MessageSizeTooLargeError):
                await client.send_and_wait(topic, b"x" * 5000)

    run(scenario)


def test_group_admin(bootstrap: str, topic: str, group: str) -> None:
    async def scenario() -> None:
        await create(bootstrap, topic)
        await produce(bootstrap, topic, [b"a"])
        async with consumer(bootstrap, topic, group_id=group, enable_auto_commit=False) as client:
            await client.getone()
            await client.commit()
            async with admin(bootstrap) as manager:
                assert (group, "consumer") in await manager.list_consumer_groups()
                offsets = await manager.list_consumer_group_offsets(group)
                assert offsets[TopicPartition(topic, 0)].offset == 1
                (described,) = await manager.describe_consumer_groups([group])
                assert described.groups[0][2] == "Stable"

    run(scenario)


def test_failover(cluster: ProcessCluster, topic: str) -> None:
    async def scenario() -> None:
        failover.create(cluster, topic)
        sent = []
        settings = {"enable_idempotence": True, "retry_backoff_ms": 50}
        async with producer(cluster.bootstrap, **settings) as client:
            for number in range(failover.COUNT):
                if number == failover.KILL_AT:
                    await asyncio.to_thread(failover.kill_leader, cluster, topic)
                partition = failover.partition_of(number)
                value = failover.value_of(number)
                sent.append(await client.send(topic, value, partition=partition))
                await asyncio.sleep(0.001)
            await asyncio.gather(*sent)
        async with consumer(cluster.bootstrap) as client:
            client.assign([TopicPartition(topic, n) for n in range(failover.PARTITIONS)])
            records = [await client.getone() for _ in range(failover.COUNT)]
        failover.check_all_there((record.partition, record.value) for record in records)

    run(scenario)


def test_moving(cluster: ProcessCluster, topic: str) -> None:
    async def scenario(moves: moving.Moving) -> int:
        sent = []
        settings = {"enable_idempotence": True, "retry_backoff_ms": 20}
        async with producer(cluster.bootstrap, **settings) as client:
            for number in moves.numbers():
                sent.append(await client.send(topic, moving.value_of(number), partition=0))
                await asyncio.sleep(0.001)
            await asyncio.gather(*sent)
        return len(sent)

    async def read(count: int) -> list[bytes]:
        async with consumer(cluster.bootstrap) as client:
            client.assign([TopicPartition(topic, 0)])
            return [(await client.getone()).value for _ in range(count)]

    with moving.moving(cluster, topic) as moves:
        count = asyncio.run(asyncio.wait_for(scenario(moves), 60))
    moving.check_each_once(count, asyncio.run(asyncio.wait_for(read(count), 30)))


def test_group_failover(cluster: ProcessCluster, topic: str, group: str) -> None:
    witness = group_failover.Witness()

    async def commit(client: Any) -> bool:
        """Whether all that was read is committed now."""
        offsets = {
            TopicPartition(topic, partition): offset
            for partition, offset in witness.positions.items()
        }
        try:
            await client.commit(offsets)
        except KafkaError:
            return False
        witness.acknowledged((at.partition, offset) for at, offset in offsets.items())
        return witness.is_committed

    async def read(client: Any) -> None:
        found = await client.getmany(timeout_ms=200, max_records=group_failover.COMMIT_EVERY)
        for records in found.values():
            for record in records:
                witness.read(record.partition, record.offset, record.value)

    async def scenario() -> None:
        await asyncio.to_thread(group_failover.fill, cluster, topic)
        settings = {"group_id": group, "enable_auto_commit": False, "retry_backoff_ms": 50}
        async with consumer(cluster.bootstrap, topic, **settings) as client:
            while witness.count < group_failover.KILL_AT:
                await read(client)
                await commit(client)
            await asyncio.to_thread(group_failover.kill_coordinator, cluster, group)
            while not witness.is_done:
                await read(client)
                await commit(client)
            while not await commit(client):
                await read(client)
            found = {n: await client.committed(TopicPartition(topic, n)) for n in witness.positions}
            witness.check_commits(found.items())

    run(scenario)
