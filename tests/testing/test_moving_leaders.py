"""Leaders that are moved in a real cluster: what producers see, what is refused, who may die."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trio

from tidemark.broker.moves.outcomes import Wish
from tidemark.client import (
    Client,
    ErrorCode,
    MovedLeader,
    RequestError,
    TopicPartition,
    open_client,
)
from tidemark.partitions.replication.ended_move import Ending
from tidemark.partitions.state_machines.cluster_values import PartitionId
from tidemark.testing import Cluster, open_cluster

SECONDS_MAX: Final = 60
"""For a test as a whole, on a machine that is busy with others."""
QUIET: Final = {"leader.balance.enable": "false"}
"""Nobody moves leaders but the test."""


@asynccontextmanager
async def open_waves() -> AsyncIterator[tuple[Cluster, Client]]:
    """Three brokers, and a topic of one partition."""
    with trio.fail_after(SECONDS_MAX):
        async with (
            open_cluster(brokers=3, settings=QUIET) as cluster,
            open_client(cluster.bootstrap) as client,
        ):
            await client.admin.create_topic("waves", partitions=1, replication_factor=3)
            await cluster.wait_leader("waves")
            yield cluster, client


async def others(cluster: Cluster) -> tuple[int, int, int]:
    """The leader, and the two that are not."""
    leader = await cluster.wait_leader("waves")
    one, other = (node for node in cluster.nodes if node != leader)
    return leader, one, other


async def refusal(client: Client, to: int, **options: float) -> RequestError:
    with pytest.raises(RequestError) as refused:
        await client.admin.move_leader("waves", 0, to=to, **options)  # type: ignore[arg-type]  # a timeout
    return refused.value


def wish(cluster: Cluster, node: int) -> Wish | None:
    """What is wished of the partition's leader, or was last, as that broker knows."""
    broker = cluster.brokers[node].node
    topic = broker.topics.get("waves")
    assert topic is not None
    return broker.moves.outcomes.newest(PartitionId(topic.id, 0))


def is_wished(cluster: Cluster, node: int, target: int) -> bool:
    newest = wish(cluster, node)
    return newest is not None and newest.target == target


async def write(client: Client, stopped: trio.Event) -> int:
    """Send numbers, some at a time, until told to stop; how many were acknowledged: all."""
    count = 0
    async with client.producer(acks="all", idempotent=False, linger_ms=0) as producer:
        while not stopped.is_set():
            sent = [await producer.send("waves", b"%d" % (count + each)) for each in range(5)]
            for delivery in sent:
                await delivery.wait()
            count += len(sent)
    return count


async def read(client: Client) -> list[int]:
    async with client.consumer("waves", until_end=True) as consumer:
        return [int(record.value or b"") async for record in consumer]


async def test_leaders_move_under_load_and_a_plain_producer_sees_no_failure_and_no_duplicate() -> (
    None
):
    async with open_waves() as (cluster, client), open_client(cluster.bootstrap) as writer:
        stopped, written = trio.Event(), list[int]()

        async def load() -> None:
            written.append(await write(writer, stopped))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(load)
            for turn in range(6):
                target = (await others(cluster))[1 + turn % 2]
                moved = await client.admin.move_leader("waves", 0, to=target, reason="to see")
                assert moved.leader == target
                assert moved.attempts >= 1
                assert 0 < moved.pause_seconds < 8
                await trio.sleep(0.05)
            stopped.set()
        assert await read(client) == list(range(written[0]))
        ended = [broker.node.metrics.moves.ended for broker in cluster.brokers.values()]
        assert sum(each[Ending.DONE].value for each in ended) == 6


async def test_what_cannot_be_is_refused_with_a_sentence() -> None:
    async with open_waves() as (cluster, client):
        leader, follower, other = await others(cluster)
        await client.admin.create_topic("pairs", partitions=1, replication_factor=2)
        (pair,) = (await client.admin.describe_topic("pairs")).partitions
        (stranger,) = {*cluster.nodes} - {*pair.replicas}
        with pytest.raises(RequestError) as refused:
            await client.admin.move_leader("pairs", 0, to=stranger)
        assert refused.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assert f"pairs-0: broker {stranger} is none of its voters" in str(refused.value)

        assert (await client.admin.move_leader("waves", 0, to=leader)).was_needless
        dry = await client.admin.move_leader("waves", 0, to=follower, dry_run=True)
        assert dry.leader == leader
        assert await cluster.wait_leader("waves") == leader

        await client.admin.drain_broker(other, force=True)
        assert f"broker {other} is draining" in str(await refusal(client, other))
        await client.admin.resume_broker(other)

        await cluster.kill(follower)
        alive = [cluster.brokers[node].peers for node in (leader, other)]
        await cluster.wait_for(lambda: all(follower not in p.up for p in alive), "it is missed")
        for dry_run in (True, False):
            with pytest.raises(RequestError, match=f"broker {follower} is not alive"):
                await client.admin.move_leader("waves", 0, to=follower, dry_run=dry_run)


async def test_preferred_leaders_are_elected_and_the_rest_is_said() -> None:
    async with open_waves() as (cluster, client):
        leader, follower, _ = await others(cluster)
        home = TopicPartition("waves", 0)
        assert await client.admin.elect_leaders() == []
        await client.admin.move_leader("waves", 0, to=follower)
        (elected,) = await client.admin.elect_leaders()
        assert (elected.partition, elected.error) == (home, None)
        assert await cluster.wait_leader("waves") == leader
        again, unknown = await client.admin.elect_leaders([home, TopicPartition("waves", 7)])
        assert again.was_needless
        assert unknown.error is not None
        assert unknown.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

        await client.admin.move_leader("waves", 0, to=follower)
        await cluster.kill(leader)
        alive = [cluster.brokers[node].peers for node in cluster.nodes if node != leader]
        await cluster.wait_for(lambda: all(leader not in p.up for p in alive), "it is missed")
        (elected,) = await client.admin.elect_leaders([home])
        assert elected.error is not None
        assert elected.error.code is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        assert f"broker {leader} is not alive" in str(elected.error)


async def test_a_wish_outlives_the_controller_and_is_one_of_its_partition() -> None:
    async with open_waves() as (cluster, client):
        await cluster.wait_leader("waves")
        controller = next(n for n, b in cluster.brokers.items() if b.node.controller.is_here)
        leader = await cluster.wait_leader("waves")
        if leader == controller:
            leader = next(node for node in cluster.nodes if node != controller)
            await client.admin.move_leader("waves", 0, to=leader)
        target = next(node for node in cluster.nodes if node not in (leader, controller))
        outcomes = list[MovedLeader]()

        async def move() -> None:
            async with open_client(cluster.bootstrap_of(leader)) as mover:
                outcomes.append(await mover.admin.move_leader("waves", 0, to=target))

        async with trio.open_nursery() as nursery:
            cluster.pause(target)  # it does not catch up
            async with (
                open_client(cluster.bootstrap_of(leader)) as writer,
                writer.producer(acks=1, idempotent=False) as producer,
            ):
                await (await producer.send("waves", b"0")).wait()
            nursery.start_soon(move)
            await cluster.wait_for(lambda: is_wished(cluster, leader, target), "it is wished")
            with pytest.raises(RequestError) as refused:
                async with open_client(cluster.bootstrap_of(leader)) as other:
                    await other.admin.move_leader("waves", 0, to=controller)
            assert refused.value.code is ErrorCode.REASSIGNMENT_IN_PROGRESS
            assert f"its leader is on its way to broker {target}" in str(refused.value)
            await cluster.kill(controller)
            cluster.resume(target)
        (outcome,) = outcomes
        assert outcome.error is None
        # Not that it leads still: of two brokers on a busy machine either may be elected since.
        waves = cluster.brokers[target].node.topics.get("waves")
        assert waves is not None
        assert waves.replicas[0].member.led_epoch is not None


async def test_who_was_told_of_another_leader_is_told_what_the_one_now_knows() -> None:
    async with open_waves() as (cluster, client), open_client(cluster.bootstrap) as other:
        waves = TopicPartition("waves", 0)
        await client.admin.describe_replicas([waves])
        _, to, _ = await others(cluster)
        await other.admin.move_leader("waves", 0, to=to)
        with trio.fail_after(20):
            while True:
                described = (await client.admin.describe_replicas([waves]))[waves]
                if all(each.end_offset is not None for each in described.replicas):
                    break
                await trio.sleep(0.05)
        assert described.leader == to
