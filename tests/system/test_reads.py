"""Reads away from the leader, request by request: what a follower gives, parks and refuses."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import trio

from tests.broker.handlers.asking import wait
from tests.broker.nodes import context
from tidemark.broker.handlers import fetch as fetch_handler
from tidemark.broker.handlers import list_offsets
from tidemark.broker.network.requests import Pending
from tidemark.broker.node import Node
from tidemark.client import Client, TopicPartition, open_client
from tidemark.partitions.storage.room import Room
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from tidemark.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tidemark.testing.cluster import Cluster, open_cluster

TIDES = TopicPartition("tides", 0)
LEADER, FOLLOWER = 1, 2


async def fetch(
    node: Node,
    offset: int,
    *,
    rack: str = "*",
    epoch: int = -1,
    max_wait_ms: int = 50,
) -> PartitionData:
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        rack_id=rack,
        topics=[
            FetchTopic(
                topic=TIDES.topic,
                partitions=[
                    FetchPartition(
                        partition=0,
                        fetch_offset=offset,
                        current_leader_epoch=epoch,
                        partition_max_bytes=1_000_000,
                    )
                ],
            )
        ],
    )
    answer = fetch_handler.handle(node, request, context(12))
    if isinstance(answer, Pending):
        answer = await wait(answer)
    return answer.responses[0].partitions[0]


def code(data: PartitionData) -> ErrorCode:
    return ErrorCode(data.error_code)


async def ready(cluster: Cluster, client: Client) -> None:
    """Five records, on all three; broker 1 leads."""
    await client.admin.create_topic(TIDES.topic, assignments=[[1, 2, 3]])
    await cluster.wait_for(lambda: cluster.leader_of(TIDES.topic) == LEADER, "broker 1 leads")
    async with client.producer() as producer:
        for number in range(5):
            await producer.send(TIDES.topic, b"%d" % number)
        await producer.flush()
    await cluster.wait_for(knows(cluster, FOLLOWER, 5), "the follower knows what is committed")


def knows(cluster: Cluster, node: int, end: int) -> Callable[[], bool]:
    def look() -> bool:
        replica = cluster.brokers[node].node.topics.replica(TIDES.topic, TIDES.partition)
        return replica is not None and replica.high_watermark == end

    return look


async def test_a_follower_serves_readers_who_name_a_rack_and_parks_what_it_has_not_yet() -> None:
    async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
        await ready(cluster, client)
        leader, follower = cluster.brokers[LEADER].node, cluster.brokers[FOLLOWER].node
        replica = follower.topics.replica(TIDES.topic, TIDES.partition)
        assert replica is not None
        epoch = replica.epoch

        found = await fetch(follower, 0)
        assert (code(found), found.high_watermark) == (ErrorCode.NONE, 5)
        assert found.records is not None
        assert len(found.records) > 0
        # Who names none has gone astray: it would stay here and not know.
        assert code(await fetch(follower, 0, rack="")) is ErrorCode.NOT_LEADER_OR_FOLLOWER

        # The leader sends readers on, but not where they are too far for that replica.
        sent = await fetch(leader, 2)
        assert sent.preferred_read_replica in (2, 3)
        assert not sent.records
        leader.settings = attrs.evolve(leader.settings, replica_selector="leader")
        assert (await fetch(leader, 2)).preferred_read_replica == -1

        # A position that was seen elsewhere is waited for; it is never out of range.
        early = await fetch(follower, 9)
        assert (code(early), early.high_watermark) == (ErrorCode.NONE, 5)
        arrived: list[PartitionData] = []

        async def wait_for_it() -> None:
            arrived.append(await fetch(follower, 5, max_wait_ms=10_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_it)
            async with client.producer() as producer:
                await (await producer.send(TIDES.topic, b"5")).wait()
        assert arrived[0].high_watermark == 6

        # Fenced by epoch, as by a leader; but of a newer one it may hear in time.
        assert code(await fetch(follower, 0, epoch=epoch)) is ErrorCode.NONE
        newer = await fetch(follower, 0, epoch=epoch + 1)
        assert code(newer) is ErrorCode.UNKNOWN_LEADER_EPOCH

        # Where offsets are, only the leader says.
        asked = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=TIDES.topic,
                    partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)],
                )
            ],
        )
        answer = await list_offsets.handle(follower, asked, context(7))
        (listed,) = answer.topics[0].partitions
        assert listed.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER

        # Too far behind, it sends readers back.
        follower.settings = attrs.evolve(follower.settings, replica_read_lag_max_ms=0)
        with trio.fail_after(30):
            while (told := code(await fetch(follower, 0, max_wait_ms=0))) is ErrorCode.NONE:  # noqa: ASYNC110
                await trio.sleep(0.03)
        assert told is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert follower.metrics.reads.sent_back.value > 0


async def test_a_leader_that_was_cut_off_calls_no_offset_too_large() -> None:
    """The others may have committed it, and then its reader would begin anew."""
    settings = {"peer.failure.timeout.ms": "20000"}  # it does not notice
    async with (
        open_cluster(brokers=3, settings=settings) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        await ready(cluster, client)
        leader = cluster.brokers[LEADER].node
        assert code(await fetch(leader, 6, rack="")) is ErrorCode.OFFSET_OUT_OF_RANGE
        cluster.isolate(LEADER)
        assert code(await fetch(leader, 5, rack="")) is ErrorCode.NONE
        beyond = await fetch(leader, 6, rack="")
        assert (code(beyond), beyond.high_watermark) == (ErrorCode.NONE, 5)


async def test_a_follower_that_is_cut_off_gives_what_it_has_and_then_sends_readers_away() -> None:
    async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
        await ready(cluster, client)
        follower = cluster.brokers[FOLLOWER].node
        follower.settings = attrs.evolve(follower.settings, replica_read_lag_max_ms=500)
        replica = follower.topics.replica(TIDES.topic, TIDES.partition)
        assert replica is not None

        cluster.isolate(FOLLOWER)
        with trio.fail_after(30):
            while replica.leader is not None:  # noqa: ASYNC110
                await trio.sleep(0.03)
            # Nobody else can give it to a reader who is in the same place.
            behind = await fetch(follower, 0)
            assert code(behind) is ErrorCode.NONE
            assert behind.records
            while (told := code(await fetch(follower, 5))) is ErrorCode.NONE:  # noqa: ASYNC110
                await trio.sleep(0.03)
        assert told is ErrorCode.NOT_LEADER_OR_FOLLOWER

        cluster.heal()
        with trio.fail_after(30):
            while code(await fetch(follower, 5)) is not ErrorCode.NONE:  # noqa: ASYNC110
                await trio.sleep(0.03)


async def test_a_replica_that_was_away_sends_readers_back_until_it_has_caught_up() -> None:
    async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
        await cluster.wait_for(lambda: cluster.controller is not None, "there is a controller")
        controller = cluster.controller
        assert controller is not None
        leader, away = (node for node in (1, 2, 3) if node != controller)
        await client.admin.create_topic(TIDES.topic, assignments=[[leader, controller, away]])
        await cluster.wait_for(lambda: cluster.leader_of(TIDES.topic) == leader, "it is led")
        async with client.producer() as producer:
            await (await producer.send(TIDES.topic, b"0")).wait()
            await cluster.stop(away)
            await (await producer.send(TIDES.topic, b"1")).wait()
        cluster.cut(leader, away)
        await cluster.restart(away)
        node = cluster.brokers[away].node
        await cluster.wait_for(
            lambda: node.topics.replica(TIDES.topic, TIDES.partition) is not None, "it is back"
        )
        replica = node.topics.replica(TIDES.topic, TIDES.partition)
        assert replica is not None
        room = replica.log.room = Room(is_out=True, why="the disk is full")
        cluster.heal()
        await cluster.wait_for(
            lambda: replica.leader == leader and bool(replica.freshness.lag_records),
            "it knows that it is behind",
        )
        assert code(await fetch(node, 0)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        room.is_out = False
        await cluster.wait_for(knows(cluster, away, 2), "it has caught up")
        assert code(await fetch(node, 0)) is ErrorCode.NONE
