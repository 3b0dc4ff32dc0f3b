"""Observers in a real cluster: pulled along a chain, read by clients that are near, outlived."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import islice

import pytest
import trio
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer as LibrdkafkaConsumer
from confluent_kafka import TopicPartition as LibrdkafkaPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition

from tidemark.broker.node_figures import NodeFigures
from tidemark.client import Client, ClientSettings, RequestError, TopicPartition, open_client
from tidemark.client.blocking import read_batches
from tidemark.client.consumer import Consumer
from tidemark.client.replica_descriptions import (
    ReplicaRole,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NodeId
from tidemark.testing.cluster import Cluster, open_cluster

TOPIC = "tides"
TIDES = TopicPartition(TOPIC, 0)


async def create(client: Client, voters: Sequence[int], observers: Sequence[int]) -> None:
    await client.admin.create_topic(TOPIC, assignments=[voters])
    await client.admin.set_observers({TIDES: observers})


async def produce(client: Client, first: int, end: int) -> None:
    async with client.producer() as producer:
        for number in range(first, end):
            await producer.send(TOPIC, b"%d" % number, partition=0)
        await producer.flush()


def bytes_out(cluster: Cluster, node: int) -> int:
    replica = cluster.brokers[node].node.topics.replica(TOPIC, 0)
    assert replica is not None
    return replica.bytes_out


def holds(cluster: Cluster, node: int, end: int) -> Callable[[], bool]:
    def look() -> bool:
        replica = cluster.brokers[node].node.topics.replica(TOPIC, 0)
        return replica is not None and replica.is_available and replica.high_watermark == end

    return look


def is_told(cluster: Cluster, observers: Sequence[int], end: int) -> Callable[[], bool]:
    """Whether the leader knows that these observers are so far."""

    def look() -> bool:
        leader = cluster.leader_of(TOPIC)
        if leader is None:
            return False
        replica = cluster.brokers[leader].node.topics.replica(TOPIC, 0)
        assert replica is not None
        told = replica.observer_standings()
        return all(
            node in told and told[NodeId(node)].committed.offset == end for node in observers
        )

    return look


async def take(consumer: Consumer, first: int, end: int) -> None:
    """Exactly these, in order: nothing twice, nothing left out."""
    with trio.fail_after(15):
        for number in range(first, end):
            record = await anext(consumer)
            assert (record.offset, record.value) == (number, b"%d" % number)


async def test_a_chain_of_observers_serves_readers_whatever_becomes_of_the_others() -> None:
    racks = ("a", "b", "c", "d", "d")
    async with (
        open_cluster(brokers=5, racks=racks) as cluster,
        open_client(cluster.bootstrap) as client,
        open_client(cluster.bootstrap, rack="d") as near,
    ):
        await create(client, [1, 2, 3], [4, 5])
        await produce(client, 0, 50)
        for node in (4, 5):
            await cluster.wait_for(holds(cluster, node, 50), f"broker {node} has pulled all")
        await cluster.wait_for(is_told(cluster, (4, 5), 50), "the leader knows of them")

        # Kafka's metadata: replicas that are never in sync.
        topic = await client.admin.describe_topic(TOPIC)
        assert topic.partitions[0].replicas == (1, 2, 3, 4, 5)
        assert set(topic.partitions[0].in_sync) <= {1, 2, 3}
        quorum = await client.admin.describe_replicas([TIDES])
        roles = {each.node_id: each.role for each in quorum[TIDES].replicas}
        assert roles == dict.fromkeys((1, 2, 3), ReplicaRole.VOTER) | dict.fromkeys(
            (4, 5), ReplicaRole.OBSERVER
        )

        # One of the rack pulls from afar, the other one from it.
        def parents() -> tuple[int | None, int | None]:
            found = []
            for node in (4, 5):
                replica = cluster.brokers[node].node.topics.replica(TOPIC, 0)
                assert replica is not None
                found.append(replica.freshness.parent)
            return found[0], found[1]

        # On a busy machine one of them may not have answered soon enough at the start, and is asked
        # again half a minute later (`Timing.pull_shun_seconds`).
        await cluster.wait_for(
            lambda: parents() == (2, 4), "the chain 2 <- 4 <- 5 is there", timeout_seconds=45
        )

        # A scrape, which has a thread of its own, sees what each replica lacks.
        for node, is_behind_somebody in ((1, False), (2, True), (5, True)):
            figures = NodeFigures(cluster.brokers[node].node, "")
            scraped = await trio.to_thread.run_sync(figures.partitions)
            (tides,) = [each for each in scraped if each.topic == TOPIC]
            assert tides.lag_records == (0 if is_behind_somebody else None)
            assert (tides.staleness_seconds is not None) is is_behind_somebody

        async with near.consumer(TIDES) as consumer:
            await take(consumer, 0, 50)
            assert bytes_out(cluster, 4) + bytes_out(cluster, 5) > 0
            assert bytes_out(cluster, 1) == 0, "the leader has sent the reader away"

            # The parent dies: its child goes to a voter, the reader goes on elsewhere.
            await cluster.kill(4)
            await produce(client, 50, 60)
            await cluster.wait_for(holds(cluster, 5, 60), "broker 5 pulls from a voter")
            await take(consumer, 50, 60)

            # So does the leader.
            leader = await cluster.wait_leader(TOPIC)
            await cluster.kill(leader)
            await cluster.wait_leader(TOPIC, other_than=leader)
            await produce(client, 60, 70)
            await take(consumer, 60, 70)
            await cluster.wait_for(holds(cluster, 5, 70), "broker 5 follows the next leader")

            # What comes back pulls what it has missed. What is given up goes.
            await cluster.start(4)
            await cluster.wait_for(
                holds(cluster, 4, 70), "broker 4 has caught up", timeout_seconds=20
            )
            await client.admin.set_observers({TIDES: [4]})
            await cluster.wait_for(
                lambda: cluster.brokers[5].node.topics.replica(TOPIC, 0) is None,
                "broker 5 has given its copy up",
            )
            await produce(client, 70, 75)
            await take(consumer, 70, 75)


def _librdkafka(bootstrap: str) -> list[int]:
    consumer = LibrdkafkaConsumer(
        {"bootstrap.servers": bootstrap, "group.id": "unused", "client.rack": "c"}
    )
    consumer.assign([LibrdkafkaPartition(TOPIC, 0, 0)])
    offsets: list[int] = []
    while len(offsets) < 50:
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        offsets.append(message.offset() or 0)
    consumer.close()
    return offsets


def _aiokafka(bootstrap: str) -> list[int]:
    async def read() -> list[int]:
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, client_rack="c") as consumer:
            tides = AioPartition(TOPIC, 0)
            consumer.assign([tides])
            consumer.seek(tides, 0)
            return [(await consumer.getone()).offset for _ in range(50)]

    return asyncio.run(asyncio.wait_for(read(), 20))


def _kafka_python(bootstrap: str) -> list[int]:
    with closing(
        KafkaConsumer(bootstrap_servers=bootstrap, client_rack="c", consumer_timeout_ms=20_000)
    ) as consumer:
        tides = KafkaPartition(TOPIC, 0)
        consumer.assign([tides])
        consumer.seek(tides, 0)
        return [record.offset for record in islice(consumer, 50)]


async def test_a_config_asks_for_observers_and_other_clients_read_from_the_one_near_them() -> None:
    async with (
        open_cluster(brokers=3, racks=("a", "b", "c")) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        await client.admin.create_topic(TOPIC, assignments=[[1]], configs={"observers": "2"})
        await produce(client, 0, 50)
        for node in (2, 3):
            await cluster.wait_for(holds(cluster, node, 50), f"broker {node} observes")
        await cluster.wait_for(is_told(cluster, (2, 3), 50), "the leader knows of them")
        with pytest.raises(RequestError, match="2 observers") as caught:
            await client.admin.set_observers({TIDES: [2]})
        assert caught.value.code is ErrorCode.INVALID_REQUEST

        assert await trio.to_thread.run_sync(_librdkafka, cluster.bootstrap) == list(range(50))
        assert bytes_out(cluster, 3) > 0
        assert bytes_out(cluster, 1) == bytes_out(cluster, 2) == 0

        read_before = bytes_out(cluster, 3)
        assert await trio.to_thread.run_sync(_aiokafka, cluster.bootstrap) == list(range(50))
        assert bytes_out(cluster, 3) > read_before
        read_before = bytes_out(cluster, 3)
        assert await trio.to_thread.run_sync(_kafka_python, cluster.bootstrap) == list(range(50))
        assert bytes_out(cluster, 3) > read_before
        assert bytes_out(cluster, 1) == 0

        # So do the tasks of Spark, and whoever else reads a range on a blocking socket.
        def read_range() -> int:
            rack = ClientSettings(rack="b")
            found = read_batches(cluster.bootstrap, TIDES, 0, 50, settings=rack)
            return sum(each.next_offset - each.fetch_offset for each in found)

        assert await trio.to_thread.run_sync(read_range) == 50
        assert bytes_out(cluster, 2) > 0
        assert bytes_out(cluster, 1) == 0

        await client.admin.alter_configs(TOPIC, {"observers": "0"})
        await cluster.wait_for(
            lambda: cluster.brokers[3].node.topics.replica(TOPIC, 0) is None,
            "broker 3 observes no more",
        )
        # Nor is anybody sent there any more, though nothing new has come since.
        assert await trio.to_thread.run_sync(_librdkafka, cluster.bootstrap) == list(range(50))
        assert bytes_out(cluster, 1) > 0


async def test_a_strict_read_refuses_where_a_leader_that_was_cut_off_would_answer() -> None:
    quick = ClientSettings(retry_timeout_seconds=0.2, confirm_timeout_seconds=0.2)
    settings = {"peer.failure.timeout.ms": "20000"}  # it does not notice
    async with (
        open_cluster(brokers=3, settings=settings) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        await client.admin.create_topic(TOPIC, assignments=[[1, 2, 3]])
        await produce(client, 0, 5)
        for level in ("committed", "strict", "two-step", "replica"):
            async with client.consumer(TIDES, read_level=level, until_end=True) as consumer:
                await take(consumer, 0, 5)
                with pytest.raises(StopAsyncIteration):
                    await anext(consumer)
        leader = await cluster.wait_leader(TOPIC)
        cluster.isolate(leader)
        async with open_client(cluster.bootstrap_of(leader), settings=quick) as there:
            async with there.consumer(TIDES, read_level="committed") as consumer:
                await take(consumer, 0, 5)
            async with there.consumer(TIDES, read_level="strict") as consumer:
                with pytest.raises(RequestError, match="cannot confirm") as caught:
                    await anext(consumer)
            assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
            with pytest.raises(RequestError, match="cannot confirm"):
                await there.admin.confirmed_ends([TIDES])
        cluster.heal()
        ends = await client.admin.confirmed_ends([TIDES])
        assert ends[TIDES].high_watermark == 5
