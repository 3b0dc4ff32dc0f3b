"""What clients see when brokers of a cluster go, and come back."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trio
from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka import TopicPartition as RdTopicPartition

from tidemark.broker.metadata.topic import NewTopic
from tidemark.client import Client, Consumer, RequestError, open_client
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.testing import NotInTime, open_blocking_cluster, open_cluster

SECONDS_MAX: Final = 30
"""For a test as a whole, on a machine that is busy with others."""
GROUP: Final = "watchers"


async def send(client: Client, value: bytes) -> None:
    async with client.producer() as producer:
        await (await producer.send("waves", value)).wait()


async def send_in_vain(client: Client) -> str:
    """What a producer says in the end of a record that is not taken."""
    async with client.producer(delivery_timeout_seconds=0.7) as producer:
        delivery = await producer.send("waves", b"in vain")
        with pytest.raises(RequestError) as refused:
            await delivery.wait()
    return refused.value.message or ""


async def values(client: Client) -> list[bytes | None]:
    async with client.consumer("waves", until_end=True) as consumer:
        return [record.value async for record in consumer]


@asynccontextmanager
async def open_group(client: Client) -> AsyncIterator[Consumer]:
    """A member that commits when it is told to."""
    async with client.consumer(
        "waves", group=GROUP, start="beginning", auto_commit_seconds=None
    ) as consumer:
        yield consumer


async def committed(client: Client) -> int:
    offsets = await client.admin.list_group_offsets(GROUP)
    return offsets[TopicPartition("waves", 0)].offset


async def test_too_few_replicas_refuse_what_wants_more_until_they_are_back() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            all_three = {"min.insync.replicas": "3"}
            await client.admin.create_topic("waves", partitions=1, configs=all_three)
            leader = await cluster.wait_leader("waves")
            follower = next(node for node in cluster.nodes if node != leader)
            await send(client, b"first")
            await cluster.kill(follower)
            peers = cluster.brokers[leader].peers
            await cluster.wait_for(lambda: follower not in peers.up, "the leader has noticed")
            assert "the last answer was NOT_ENOUGH_REPLICAS" in await send_in_vain(client)
            assert await values(client) == [b"first"]
            await cluster.start(follower)
            await send(client, b"second")
            assert await values(client) == [b"first", b"second"]


async def test_without_a_majority_writes_are_held_until_it_is_back_or_their_time_is_over() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            two = {"min.insync.replicas": "2"}
            await client.admin.create_topic("waves", partitions=1, configs=two)
            leader = await cluster.wait_leader("waves")
            gone = [node for node in cluster.nodes if node != leader]
            async with (
                client.producer() as patient,
                client.producer(delivery_timeout_seconds=0.7) as hasty,
            ):
                await (await patient.send("waves", b"first")).wait()
                await cluster.kill(*gone)
                given_up = await hasty.send("waves", b"given up")
                held = await patient.send("waves", b"held")
                with pytest.raises(RequestError, match=r"no leader|NOT_LEADER|NOT_ENOUGH"):
                    await given_up.wait()
                assert not held.is_done
                await cluster.start(gone[0])
                await held.wait()
            # What was given up may have been appended before the leader missed the others.
            stored = [value for value in await values(client) if value != b"given up"]
            assert stored == [b"first", b"held"]


async def test_a_group_goes_on_from_its_commits_when_its_coordinator_is_killed() -> None:
    sent = [b"%d" % number for number in range(20)]
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            await client.admin.create_topic("waves", partitions=1)
            async with client.producer() as producer:
                for value in sent:
                    await producer.send("waves", value)
            async with open_group(client) as consumer:
                read = [(await anext(consumer)).value for _ in range(10)]
                await consumer.commit()
                await cluster.kill(await cluster.wait_leader(CONSUMER_OFFSETS))
                assert await committed(client) == 10
                read += [(await anext(consumer)).value for _ in range(5)]
                await consumer.commit()
            assert await committed(client) == 15
            async with open_group(client) as consumer:
                read += [(await anext(consumer)).value for _ in range(5)]
            assert read == sent


async def test_a_member_takes_leave_of_a_coordinator_that_it_has_not_met() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            await client.admin.create_topic("waves", partitions=1)
            await send(client, b"first")
            async with open_group(client) as consumer:
                await anext(consumer)
                before = await cluster.wait_leader(CONSUMER_OFFSETS)
                await cluster.kill(before)
                await cluster.wait_leader(CONSUMER_OFFSETS, other_than=before)
            # Its place is free at once, not when its session has timed out.
            described = await client.admin.describe_group(GROUP)
            assert described.members == ()


def test_another_client_of_the_blocking_twin_survives_its_leaders_death() -> None:
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            refused.append(error)

    with open_blocking_cluster(brokers=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
        producer.produce("waves", b"first", on_delivery=delivered)
        assert producer.flush(10) == 0
        leader = cluster.wait_leader("waves")
        cluster.kill(leader)
        for number in range(100):
            producer.produce("waves", b"%d" % number, on_delivery=delivered)
        assert producer.flush(20) == 0
        assert not refused
        assert cluster.wait_leader("waves") != leader


def test_what_waits_while_its_leader_loses_the_majority_is_stored_once_and_fails_nowhere() -> None:
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        del message
        if error is not None:
            refused.append(error)

    with open_blocking_cluster(brokers=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
        for number in range(20):
            producer.produce("waves", b"%d" % number, partition=0, on_delivery=delivered)
        assert producer.flush(10) == 0
        leader = cluster.wait_leader("waves")
        followers = [node for node in cluster.nodes if node != leader]
        for node in followers:
            cluster.delay_disk(node, 60)
        for number in range(20, 60):
            producer.produce("waves", b"%d" % number, partition=0, on_delivery=delivered)
        # They are in the leader's log, and cannot be committed.
        assert producer.flush(0.5) == 40
        cluster.kill(*followers)
        assert producer.flush(0.5) == 40
        cluster.start(followers[0])
        assert producer.flush(20) == 0
        assert not refused
        assert read(cluster.bootstrap, 60) == [b"%d" % number for number in range(60)]


def read(bootstrap: str, count: int) -> list[bytes | None]:
    """So many values of partition 0, and any that come within a moment after them."""
    consumer = RdConsumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    consumer.assign([RdTopicPartition("waves", 0, 0)])
    found = consumer.consume(count, 15)
    found += consumer.consume(1, 0.3)
    consumer.close()
    return [message.value() for message in found]


async def test_the_leaders_of_a_new_topic_are_the_preferred_ones() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            for name in ("waves", "tides", "puddles"):
                await client.admin.create_topic(name, partitions=6)
                described = await client.admin.describe_topic(name)
                for partition in described.partitions:
                    assert partition.leader == partition.replicas[0]


async def test_a_topic_that_can_elect_nobody_holds_up_neither_another_nor_the_stop() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            await cluster.kill(1)
            await cluster.wait_for(lambda: cluster.controller in (2, 3), "2 or 3 is controller")
            topics = cluster.brokers[cluster.controller or 0].node.topics
            # A majority of two is both, and one of them is gone.
            stuck = NewTopic(name="stuck", assignments=((NodeId(1), NodeId(2)),))
            async with trio.open_nursery() as creating:
                creating.start_soon(topics.create, stuck)
                await cluster.wait_for(
                    lambda: cluster.brokers[2].node.topics.replica("stuck", 0), "2 has its replica"
                )
                with trio.fail_after(4.5):  # of the five that it was once
                    await client.admin.create_topic("waves", replication_factor=2)
                creating.cancel_scope.cancel()
            with trio.fail_after(4.5):  # of the five that it was once
                await cluster.stop()


async def test_a_client_of_a_broker_that_is_cut_off_finds_the_others() -> None:
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            await client.admin.create_topic("waves", partitions=1)
            leader = await cluster.wait_leader("waves")
            async with open_client(cluster.bootstrap_of(leader)) as deceived:
                await send(deceived, b"first")
                cluster.isolate(leader)
                await cluster.wait_leader("waves", other_than=leader)
                await send(deceived, b"second")
                assert await values(deceived) == [b"first", b"second"]


async def test_how_long_a_silent_broker_counts_as_alive_is_a_setting() -> None:
    settings = {"peer.failure.timeout.ms": "60000"}
    with trio.fail_after(SECONDS_MAX):
        async with (
            open_cluster(brokers=3, settings=settings) as cluster,
            open_client(cluster.bootstrap) as client,
        ):
            await client.admin.create_topic("waves", partitions=1)
            leader = await cluster.wait_leader("waves")
            cluster.isolate(leader)
            with pytest.raises(NotInTime):
                # It would be after two.
                await cluster.wait_leader("waves", other_than=leader, timeout_seconds=3)
            assert cluster.leader_of("waves") == leader


@pytest.mark.parametrize(("wanted", "replicas"), [("3", 3), ("5", 3), ("2", 2)])
async def test_groups_are_kept_by_as_many_brokers_as_the_setting_says_or_there_are(
    wanted: str, replicas: int
) -> None:
    settings = {"offsets.topic.replication.factor": wanted}
    with trio.fail_after(SECONDS_MAX):
        async with (
            open_cluster(brokers=3, settings=settings) as cluster,
            open_client(cluster.bootstrap) as client,
        ):
            # Whoever asks for a group first has the topic made.
            assert await client.admin.list_group_offsets(GROUP) == {}
            described = await client.admin.describe_topic(CONSUMER_OFFSETS)
            assert {len(each.replicas) for each in described.partitions} == {replicas}
