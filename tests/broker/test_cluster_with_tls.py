"""Brokers that speak TLS among themselves are a cluster as any other."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tests.client.security.tls_proxy import CERTIFICATES
from tidemark.broker.metrics.peer_counts import PeerEnd
from tidemark.client import Client, open_client
from tidemark.testing import Cluster, open_cluster

TLS: Final = {
    "peer.ssl.certificate.location": str(CERTIFICATES / "localhost.pem"),
    "peer.ssl.ca.location": str(CERTIFICATES / "ca.pem"),
}
VALUES: Final = [os.urandom(size) for size in (10, 1_000, 100_000, 900_000) * 5]
"""Small ones go by a copy in memory, large ones from the log's file."""


@asynccontextmanager
async def open_three(settings: dict[str, str]) -> AsyncIterator[tuple[Cluster, Client]]:
    async with (
        open_cluster(brokers=3, settings=settings) as cluster,
        open_client(cluster.bootstrap) as client,
    ):
        await client.admin.create_topic("t", partitions=1, configs={"flush": "commit"})
        yield cluster, client


async def write(client: Client, values: Sequence[bytes]) -> None:
    async with client.producer(acks="all") as producer:
        for value in values:
            await (await producer.send("t", value)).wait()


async def read(client: Client) -> list[bytes | None]:
    async with client.consumer("t", until_end=True) as consumer:
        return [record.value async for record in consumer]


async def test_what_is_written_outlives_its_leader() -> None:
    async with open_three(TLS) as (cluster, client):
        await write(client, VALUES)
        leader = await cluster.wait_leader("t")
        await cluster.kill(leader)
        await write(client, VALUES)
        await cluster.start(leader)
        await cluster.wait_caught_up()
        (other,) = set(cluster.nodes) - {leader, await cluster.wait_leader("t", other_than=leader)}
        await cluster.kill(other)
        assert await read(client) == [*VALUES, *VALUES]


async def test_a_cluster_that_is_there_turns_it_on_and_always_has_all_its_replicas() -> None:
    async with open_three({}) as (cluster, client):
        written = 0
        for settings in ({**TLS, "peer.ssl.required": "false"}, {"peer.ssl.required": "true"}):
            for node in cluster.nodes:
                cluster._hosted[node]._settings.update(settings)
                await cluster.restart(node)
                await write(client, [b"%d" % written])
                written += 1
                await cluster.wait_caught_up()
        assert await read(client) == [b"%d" % number for number in range(written)]
        failed = [
            broker.node.metrics.peers.ended[PeerEnd.FAILED_TLS]
            for broker in cluster.brokers.values()
        ]
        # Since their last start, each of them by others that had TLS already.
        assert [count.value for count in failed] == [0, 0, 0]
