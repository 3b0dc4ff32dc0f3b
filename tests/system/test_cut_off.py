"""A broker that does not hear the others, and that its clients still reach."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count

import pytest
import trio

from tidemark.broker import stopping
from tidemark.broker.handlers import find_coordinator, metadata
from tidemark.broker.metrics import ConnectionEnd
from tidemark.client import Client, ClientSettings, open_client
from tidemark.client.addresses import parse_bootstrap
from tidemark.client.connection import Connection
from tidemark.client.pool import Pool, open_pool
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidemark.protocol.types import NodeId
from tidemark.testing.cluster import Cluster, open_cluster

LEADER, ALONE = 1, 2
GROUP = "watchers"


@asynccontextmanager
async def open_three(
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[tuple[Cluster, Client, Pool]]:
    async with (
        open_cluster(brokers=3, settings=settings) as cluster,
        open_client(cluster.bootstrap) as client,
        open_pool(ClientSettings()) as pool,
    ):
        yield cluster, client, pool


async def described(connection: Connection, *topics: str) -> MetadataResponse:
    """Raises `OSError`."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic) for topic in topics])
    return await connection.request(asked, MetadataResponse)


async def leaders(connection: Connection, *topics: str) -> set[int]:
    """Of all partitions of these topics; -1 stands for nobody. Raises `OSError`."""
    return led_by(await described(connection, *topics))


async def coordinator(connection: Connection, group: str) -> Coordinator:
    """Raises `OSError`."""
    asked = FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    (found,) = (await connection.request(asked, FindCoordinatorResponse)).coordinators
    return found


async def producer_id(connection: Connection) -> int:
    """-1 stands for none. Raises `OSError`."""
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    return (await connection.request(asked, InitProducerIdResponse)).producer_id


def led_by(answer: MetadataResponse) -> set[int]:
    return {partition.leader_id for topic in answer.topics for partition in topic.partitions}


async def test_a_broker_that_may_be_cut_off_sends_those_away_who_keep_asking_it_for_leaders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata, "_LEADERLESS_SECONDS", 0.5)
    async with open_three() as (cluster, client, pool):
        await client.admin.create_topic("everywhere", replication_factor=3)
        await client.admin.create_topic("here", assignments=[[ALONE]])
        (address,) = parse_bootstrap(cluster.bootstrap_of(ALONE))
        connection = await pool.connection(address)
        await leaders(connection, "here")
        with trio.fail_after(30):
            cluster.isolate(ALONE)
            while await leaders(connection, "everywhere") != {-1}:  # noqa: ASYNC110
                await trio.sleep(0.03)
            while not connection.is_closed:
                with suppress(OSError):
                    assert await leaders(connection, "everywhere") == {-1}
                await trio.sleep(0.03)
            closed = cluster.brokers[ALONE].node.metrics.connections_closed
            assert closed[ConnectionEnd.CUT_OFF].value == 1

            # Who comes again is told what is known, and who asks for nothing else may stay.
            connection = await pool.connection(address)
            assert await leaders(connection, "everywhere") == {-1}
            await trio.sleep(0.6)
            assert await leaders(connection, "here") == {ALONE}
            assert await leaders(connection, "everywhere") == {-1}

            cluster.heal()
            while await leaders(connection, "everywhere") == {-1}:  # noqa: ASYNC110
                await trio.sleep(0.03)


async def cut_from_leader(cluster: Cluster) -> None:
    """Until the one takes the other for dead."""
    alone = cluster.brokers[ALONE].node.brokers
    cluster.cut(LEADER, ALONE)
    await cluster.wait_for(lambda: not alone.is_alive(NodeId(LEADER)), "the leader is not heard")


async def test_who_does_not_hear_the_leader_alone_learns_of_it_from_another() -> None:
    async with open_three() as (cluster, client, pool):
        await client.admin.create_topic("there", assignments=[[LEADER, 3, ALONE]])
        assert await cluster.wait_leader("there") == LEADER
        (address,) = parse_bootstrap(cluster.bootstrap_of(ALONE))
        connection = await pool.connection(address)
        await cut_from_leader(cluster)
        with trio.fail_after(30):
            while await leaders(connection, "there") != {LEADER}:  # noqa: ASYNC110
                await trio.sleep(0.1)
        answer = await described(connection, "there")
        ((partition,),) = [topic.partitions for topic in answer.topics]
        leader = cluster.brokers[LEADER].node
        assert partition.error_code == ErrorCode.NONE
        assert partition.leader_epoch == leader.topics.replica_here("there", 0).epoch
        assert LEADER in partition.isr_nodes
        assert LEADER not in partition.offline_replicas
        assert LEADER in {broker.node_id for broker in answer.brokers}
        assert answer.controller_id == cluster.controller
        # Clients are told of it, and nothing else is done by it.
        assert not cluster.brokers[ALONE].node.brokers.is_alive(NodeId(LEADER))


async def test_who_does_not_hear_a_coordinator_learns_of_it_from_another() -> None:
    async with open_three({"offsets.topic.num.partitions": "8"}) as (cluster, _, pool):
        (address,) = parse_bootstrap(cluster.bootstrap_of(ALONE))
        connection = await pool.connection(address)
        names = map("group-{}".format, count())
        with trio.fail_after(30):
            while (found := await coordinator(connection, next(names))).node_id != LEADER:  # noqa: ASYNC110
                await trio.sleep(0.01)
            await cut_from_leader(cluster)
            while await coordinator(connection, found.key) != found:  # noqa: ASYNC110
                await trio.sleep(0.1)


async def test_a_broker_that_may_be_cut_off_sends_those_away_who_keep_asking_for_a_coordinator(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """librdkafka's transactional producers ask three times, and then wait for a connection to come
    or go."""
    monkeypatch.setattr(find_coordinator, "_WAIT_SECONDS", 0.2)
    monkeypatch.setattr(find_coordinator, "_IN_VAIN_SECONDS", 0.5)
    async with open_three() as (cluster, _, pool):
        (address,) = parse_bootstrap(cluster.bootstrap_of(ALONE))
        connection = await pool.connection(address)
        with trio.fail_after(30):
            await coordinator(connection, GROUP)
            cluster.isolate(ALONE)
            while (await coordinator(connection, GROUP)).error_code == ErrorCode.NONE:  # noqa: ASYNC110
                await trio.sleep(0.03)
            told = ErrorCode.COORDINATOR_NOT_AVAILABLE
            while not connection.is_closed:
                with suppress(OSError):
                    assert (await coordinator(connection, GROUP)).error_code == told
            closed = cluster.brokers[ALONE].node.metrics.connections_closed
            assert closed[ConnectionEnd.CUT_OFF].value == 1

            # Who comes again is told what is known.
            connection = await pool.connection(address)
            assert (await coordinator(connection, GROUP)).error_code == told
            cluster.heal()
            while (await coordinator(connection, GROUP)).error_code == told:  # noqa: ASYNC110
                await trio.sleep(0.03)


async def test_who_asks_for_a_coordinator_while_one_is_elected_is_told_of_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(find_coordinator, "_WAIT_SECONDS", 60)
    async with open_three() as (cluster, _, pool):
        (address,) = parse_bootstrap(cluster.bootstrap_of(ALONE))
        connection = await pool.connection(address)
        with trio.fail_after(30):
            await coordinator(connection, GROUP)
            await cluster.kill(LEADER, 3)
            await cluster.wait_for(lambda: not knows_coordinator(cluster), "nobody coordinates")
            async with trio.open_nursery() as asking:

                async def find() -> None:
                    found = await coordinator(connection, GROUP)
                    assert found.error_code == ErrorCode.NONE
                    assert found.node_id in cluster.nodes

                asking.start_soon(find)
                await cluster.start(LEADER, 3)


async def test_who_waits_for_a_coordinator_does_not_keep_a_broker_from_stopping(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(find_coordinator, "_WAIT_SECONDS", 60)
    async with open_three() as (cluster, _, pool):
        (address,) = parse_bootstrap(cluster.bootstrap_of(ALONE))
        connection = await pool.connection(address)
        with trio.fail_after(30):
            await coordinator(connection, GROUP)
            await cluster.kill(LEADER, 3)
            await cluster.wait_for(lambda: not knows_coordinator(cluster), "nobody coordinates")
            async with trio.open_nursery() as asking:

                async def find() -> None:
                    found = await coordinator(connection, GROUP)
                    assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

                asking.start_soon(find)
                await trio.sleep(0.2)
                stopping.release_waiting(cluster.brokers[ALONE].node)


def knows_coordinator(cluster: Cluster) -> bool:
    try:
        cluster.brokers[ALONE].node.coordinator.find(GROUP)
    except RequestError:
        return False
    return True


async def test_who_does_not_hear_the_controller_has_producer_ids_from_another() -> None:
    async with open_three() as (cluster, _, pool):
        assert cluster.controller == LEADER
        (address,) = parse_bootstrap(cluster.bootstrap_of(ALONE))
        connection = await pool.connection(address)
        await cut_from_leader(cluster)
        ids = [await producer_id(connection) for _ in range(3)]
        assert len({*ids}) == 3
        assert min(ids) >= 0
        assert not cluster.brokers[ALONE].node.producer_ids.has_some
