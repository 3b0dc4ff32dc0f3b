"""Against brokers that are not ours: librdkafka's mock cluster, with three of them."""

from collections.abc import AsyncIterator

import pytest
from confluent_kafka import Producer as RdProducer

from tests.client.helpers import numbered
from tidemark.client import Client, ClientSettings, TopicPartition, open_client

# It lists versions of the group APIs that it cannot read.
SETTINGS = ClientSettings(version_max={8: 7, 9: 5, 11: 5, 12: 3, 13: 1, 14: 3})
QUICK_SESSION_SECONDS = 6.0


@pytest.fixture
async def three() -> AsyncIterator[Client]:
    mock = RdProducer({"test.mock.num.brokers": 3, "bootstrap.servers": "", "log_level": 0})
    brokers = mock.list_topics(timeout=5).brokers.values()
    bootstrap = [f"{broker.host}:{broker.port}" for broker in brokers]
    async with open_client(bootstrap, settings=SETTINGS) as client:
        yield client


async def test_all_brokers_are_written_to_and_read_from(three: Client, topic: str) -> None:
    # The mock draws each partition's leader: of three topics one will have several.
    topics = [f"{topic}-{name}" for name in ("a", "b", "c")]
    async with three.producer() as producer:
        futures = [
            await producer.send(name, value, partition=int(value) % 4)
            for name in topics
            for value in numbered(200)
        ]
    assert {future.result().partition for future in futures} == {0, 1, 2, 3}
    described = [await three.admin.describe_topic(name) for name in topics]
    assert len({part.leader for each in described for part in each.partitions}) > 1
    for name in topics:
        async with three.consumer(name, until_end=True) as consumer:
            values = [record.value async for record in consumer]
        assert sorted(values, key=lambda value: int(value or b"")) == numbered(200)


async def test_a_group_reads_and_commits(three: Client, topic: str, group: str) -> None:
    async with three.producer() as producer:
        for value in numbered(20):
            await producer.send(topic, value)
    async with three.consumer(
        topic, group=group, until_end=True, session_timeout_seconds=QUICK_SESSION_SECONDS
    ) as consumer:
        assert len([record async for record in consumer]) == 20
    everything = [TopicPartition(topic, partition) for partition in range(4)]
    commits = await three.admin.list_group_offsets(group, everything)
    assert sum(committed.offset for committed in commits.values()) == 20


async def test_the_cluster_is_described_without_the_call_for_it(three: Client) -> None:
    assert len((await three.admin.describe_cluster()).brokers) == 3
