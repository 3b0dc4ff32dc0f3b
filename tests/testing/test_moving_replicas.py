"""Replicas that move between the brokers of a cluster, under load and while brokers die."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import pytest
import trio

from tidemark.client import Client, RequestError, open_client
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition
from tidemark.testing import Cluster, open_cluster

SECONDS_MAX: Final = 60
WAVES: Final = TopicPartition("waves", 0)


class Load:
    """One producer, which is not idempotent, and what it was told is written."""

    def __init__(self) -> None:
        self.acknowledged: list[bytes] = []
        self.refused: list[RequestError] = []
        self.is_over = False

    async def run(self, client: Client) -> None:
        async with client.producer() as producer:
            while not self.is_over:
                value = str(len(self.acknowledged)).encode()
                try:
                    await (await producer.send("waves", value)).wait()
                except RequestError as error:
                    self.refused.append(error)
                else:
                    self.acknowledged.append(value)


@asynccontextmanager
async def under_load(client: Client) -> AsyncIterator[Load]:
    load = Load()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(load.run, client)
        yield load
        load.is_over = True


@asynccontextmanager
async def waves(
    brokers: int, replicas: Sequence[int], **settings: str
) -> AsyncIterator[tuple[Cluster, Client]]:
    """A cluster with a topic of one partition, which these brokers hold."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    with trio.fail_after(SECONDS_MAX):
        async with (
            open_cluster(brokers=brokers, settings=given) as cluster,
            open_client(cluster.bootstrap) as client,
        ):
            await client.admin.create_topic("waves", assignments=[replicas])
            yield cluster, client


async def values(client: Client) -> list[bytes | None]:
    async with client.consumer("waves", until_end=True) as consumer:
        return [record.value async for record in consumer]


async def wait_moved(cluster: Cluster, client: Client, replicas: Sequence[int]) -> None:
    async def has_moved() -> bool:
        return not await client.admin.list_reassignments()

    while not await has_moved():  # noqa: ASYNC110
        await trio.sleep(0.02)
    (topic,) = await client.admin.describe_topics(["waves"])
    assert list(topic.partitions[0].replicas) == list(replicas)
    gone = [node for node in cluster.nodes if node not in replicas]
    await cluster.wait_for(lambda: not any(holds(cluster, node) for node in gone), "files to go")


def holds(cluster: Cluster, node: int) -> bool:
    return (cluster.data_dir_of(node) / "waves-0").exists()


async def test_replicas_move_under_load_and_no_producer_sees_an_error() -> None:
    async with waves(4, (1, 2, 3)) as (cluster, client), under_load(client) as load:
        for wanted in ((1, 2, 4), (2, 3, 4), (1,), (4,), (4, 3, 2)):
            begun = len(load.acknowledged)
            await client.admin.reassign_partitions({WAVES: wanted})
            await wait_moved(cluster, client, wanted)
            assert cluster.leader_of("waves") in wanted
            while len(load.acknowledged) < begun + 20:  # noqa: ASYNC110
                await trio.sleep(0.01)
        load.is_over = True
        await trio.sleep(0.1)
        assert not load.refused
        assert await values(client) == load.acknowledged, "each once, and in order"
        for number in (2, 3):
            await cluster.restart(number)
        await cluster.wait_caught_up()
        assert await values(client) == load.acknowledged


async def test_a_move_is_seen_and_cancelled_while_the_log_is_copied() -> None:
    slow = {"reassignment_bytes_per_second": "20000"}
    async with waves(4, (1, 2), **slow) as (cluster, client):
        async with client.producer() as producer:
            for _ in range(30):
                await (await producer.send("waves", b"x" * 100_000)).wait()
        await client.admin.reassign_partitions({WAVES: (3, 4)})
        with trio.fail_after(20):
            described = (await client.admin.describe_replicas([WAVES]))[WAVES]
            while not (described.reassignment and described.reassignment.bytes_per_second):
                await trio.sleep(0.05)
                described = (await client.admin.describe_replicas([WAVES]))[WAVES]
        assert described.reassignment.stage == "copying"
        assert described.reassignment.copying_to == 3
        assert described.reassignment.remaining_bytes > 2_000_000
        assert (described.reassignment.estimated_seconds or 0) > 1
        (ongoing,) = (await client.admin.list_reassignments([WAVES])).values()
        assert (ongoing.replicas, ongoing.adding, ongoing.removing) == (
            (3, 4, 1, 2),
            (3, 4),
            (1, 2),
        )
        (topic,) = await client.admin.describe_topics(["waves"])
        assert topic.partitions[0].replicas == (3, 4, 1, 2)
        assert topic.partitions[0].in_sync == (1, 2)
        await client.admin.cancel_reassignments([WAVES])
        await wait_moved(cluster, client, (1, 2))
        with pytest.raises(RequestError) as refused:
            await client.admin.cancel_reassignments([WAVES])
        assert refused.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert len(await values(client)) == 30


async def test_a_throttle_holds_a_move_back_until_it_is_removed() -> None:
    rate, replicas = (f"follower.replication.throttled.{each}" for each in ("rate", "replicas"))
    async with waves(3, (1, 2)) as (cluster, client):
        async with client.producer() as producer:
            await (await producer.send("waves", b"a")).wait()
        await client.admin.alter_broker_configs(3, {rate: "0"})
        await client.admin.alter_configs("waves", {replicas: "0:3"})
        await client.admin.reassign_partitions({WAVES: (1, 3)})
        await cluster.wait_for(lambda: holds(cluster, 3), "the new replica")
        await trio.sleep(0.3)
        progress = (await client.admin.describe_replicas([WAVES]))[WAVES].reassignment
        assert progress is not None
        assert (progress.stage, progress.copied_bytes) == ("copying", 0)
        await client.admin.alter_broker_configs(3, unset=[rate])
        await wait_moved(cluster, client, (1, 3))
        assert await values(client) == [b"a"]


@pytest.mark.parametrize("victim", ["target", "leader", "controller"])
async def test_a_move_goes_on_whoever_is_killed_while_the_log_is_copied(victim: str) -> None:
    slow = {"reassignment_bytes_per_second": "1000000"}
    async with waves(5, (1, 2, 3), **slow) as (cluster, client):
        async with client.producer() as producer:
            for _ in range(20):
                await (await producer.send("waves", b"x" * 100_000)).wait()
        await client.admin.reassign_partitions({WAVES: (4, 2, 5)})
        await cluster.wait_for(lambda: holds(cluster, 4), "the new replica")
        find: dict[str, Callable[[], int | None]] = {
            "target": lambda: 4,
            "leader": lambda: cluster.leader_of("waves"),
            "controller": lambda: cluster.controller,
        }
        node = find[victim]()
        assert node is not None
        assert await client.admin.list_reassignments()
        await cluster.kill(node)
        await cluster.start(node)
        await wait_moved(cluster, client, (4, 2, 5))
        assert len(await values(client)) == 20


async def test_who_was_away_when_its_replica_was_given_up_gives_it_up_when_it_is_back() -> None:
    async with waves(4, (1, 2, 3)) as (cluster, client):
        async with client.producer() as producer:
            await (await producer.send("waves", b"a")).wait()
        await cluster.stop(3)
        await client.admin.reassign_partitions({WAVES: (1, 2, 4)})
        while await client.admin.list_reassignments():  # noqa: ASYNC110
            await trio.sleep(0.02)
        assert holds(cluster, 3)
        await cluster.start(3)
        await wait_moved(cluster, client, (1, 2, 4))
        await client.admin.reassign_partitions({WAVES: (3, 2, 4)})
        await wait_moved(cluster, client, (3, 2, 4))
        assert await values(client) == [b"a"]


async def test_a_partition_that_begins_within_a_batch_gets_another_replica() -> None:
    """DeleteRecords takes any offset; whoever comes later gets the batch whole."""
    async with waves(3, (1, 2)) as (cluster, client):
        async with client.producer(linger_ms=1000) as producer:
            for number in range(10):
                await producer.send("waves", str(number).encode())
            await producer.flush()
        assert await client.admin.delete_records({WAVES: 3}) == {WAVES: 3}
        await client.admin.reassign_partitions({WAVES: (3,)})
        await wait_moved(cluster, client, (3,))
        assert await values(client) == [b"%d" % number for number in range(3, 10)]
        async with client.consumer("waves", until_end=True) as consumer:
            assert [record.offset async for record in consumer] == list(range(3, 10))
