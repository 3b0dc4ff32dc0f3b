"""A broker that does not hear the others, and that its clients still reach."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import trio

from tidemark.broker.handlers import metadata
from tidemark.broker.metrics import ConnectionEnd
from tidemark.client import Client, ClientSettings, open_client
from tidemark.client.addresses import parse_bootstrap
from tidemark.client.connection import Connection
from tidemark.client.pool import Pool, open_pool
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidemark.testing.cluster import Cluster, open_cluster

LEADER, ALONE = 1, 2


@asynccontextmanager
async def open_three() -> AsyncIterator[tuple[Cluster, Client, Pool]]:
    async with (
        open_cluster(brokers=3) as cluster,
        open_client(cluster.bootstrap) as client,
        open_pool(ClientSettings()) as pool,
    ):
        yield cluster, client, pool


async def leaders(connection: Connection, *topics: str) -> set[int]:
    """Of all partitions of these topics; -1 stands for nobody. Raises `OSError`."""
    asked = MetadataRequest(topics=[MetadataRequestTopic(name=topic) for topic in topics])
    answer = await connection.request(asked, MetadataResponse)
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


async def test_who_does_not_hear_the_leader_alone_sends_those_away_who_keep_asking_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metadata, "_UNHEARD_SECONDS", 0.5)
    async with open_three() as (cluster, client, pool):
        await client.admin.create_topic("there", assignments=[[LEADER, 3, ALONE]])
        await client.admin.create_topic("here", assignments=[[ALONE]])
        (address,) = parse_bootstrap(cluster.bootstrap_of(ALONE))
        with trio.fail_after(30):
            cluster.cut(LEADER, ALONE)
            connection = await pool.connection(address)
            while not connection.is_closed:
                with suppress(OSError):
                    assert await leaders(connection, "there") <= {LEADER, -1}
                await trio.sleep(0.03)
            assert cluster.leader_of("there") == LEADER
            connection = await pool.connection(address)
            for _ in range(2):
                assert await leaders(connection, "here") == {ALONE}
                await trio.sleep(0.6)
