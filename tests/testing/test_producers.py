"""What a cluster knows of idempotent producers, wherever their partition goes. By wire requests of
our own, so that each is just the one that is meant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from tests.testing.raw import batch, open_raw
from tidemark.client import Client, open_client
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidemark.protocol.types import TopicPartition
from tidemark.testing import Cluster, open_cluster

SECONDS_MAX: Final = 60
"""For a test as a whole, on a machine that is busy with others."""
WAVES: Final = TopicPartition("waves", 0)
QUIET: Final = {
    "leader.balance.enable": "false",
    "offsets.topic.num.partitions": "1",
    "log.segment.bytes": "1024",
}


@asynccontextmanager
async def open_waves() -> AsyncIterator[tuple[Cluster, Client]]:
    """A partition on three of four brokers."""
    with trio.fail_after(SECONDS_MAX):
        async with (
            open_cluster(brokers=4, settings=QUIET) as cluster,
            open_client(cluster.bootstrap) as client,
        ):
            await client.admin.create_topic("waves", assignments=[[1, 2, 3]])
            yield cluster, client


async def new_producer(cluster: Cluster, node: int) -> int:
    async with open_raw(cluster.bootstrap_of(node)) as raw:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        answer = await raw.ask(request, 4, InitProducerIdResponse)
    assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
    return answer.producer_id


class Sender:
    """An idempotent producer of single records."""

    def __init__(self, cluster: Cluster, producer_id: int) -> None:
        self._cluster = cluster
        self._producer_id = producer_id
        self.offsets: list[int] = []
        """By sequence."""

    async def send(self, sequence: int, *, epoch: int = 0) -> tuple[ErrorCode, int]:
        """What the leader answers, once there is one."""
        records = batch(
            b"x" * 100, sequence=sequence, producer_id=self._producer_id, producer_epoch=epoch
        )
        while True:
            leader = await self._cluster.wait_leader("waves")
            async with open_raw(self._cluster.bootstrap_of(leader)) as raw:
                response = await raw.produce("waves", records)
            (answer,) = response.responses[0].partition_responses
            code = ErrorCode(answer.error_code)
            if code is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
                return code, answer.base_offset

    async def send_next(self) -> None:
        code, offset = await self.send(len(self.offsets))
        assert code is ErrorCode.NONE
        self.offsets.append(offset)

    async def check_remembered(self) -> None:
        """The last five are duplicates, and what else it may say is answered as by Kafka."""
        count = len(self.offsets)
        for sequence in range(count - 5, count):
            expected = (ErrorCode.NONE, self.offsets[sequence])
            assert await self.send(sequence) == expected, sequence
        older = await self.send(count - 6)
        assert older[0] is ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        assert (await self.send(count + 1))[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert (await self.send(1, epoch=1))[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        await self.send_next()
        assert self.offsets[-1] == self.offsets[-2] + 1, "nothing of all that was stored"


async def has_moved(cluster: Cluster, client: Client, replicas: list[int]) -> None:
    await client.admin.reassign_partitions({WAVES: replicas})
    while await client.admin.list_reassignments([WAVES]):  # noqa: ASYNC110 # nobody says when
        await trio.sleep(0.02)
    await cluster.wait_caught_up()
    assert await cluster.wait_leader("waves") in replicas


async def test_a_producer_is_known_wherever_its_partition_goes() -> None:
    async with open_waves() as (cluster, client):
        sender = Sender(cluster, await new_producer(cluster, 4))
        for _ in range(7):
            await sender.send_next()
        await sender.check_remembered()

        dead = await cluster.wait_leader("waves")
        await cluster.kill(dead)
        await sender.check_remembered()
        await cluster.start(dead)
        await cluster.wait_caught_up()
        await client.admin.move_leader("waves", 0, to=dead)
        await sender.check_remembered()

        await has_moved(cluster, client, [4])
        await sender.check_remembered()
        await client.admin.delete_records({WAVES: sender.offsets[-1] + 1})
        await has_moved(cluster, client, [2, 3])
        await sender.check_remembered()

        await cluster.restart(*cluster.nodes)
        await sender.check_remembered()
        await cluster.kill(*cluster.nodes)
        await cluster.start(*cluster.nodes)
        await sender.check_remembered()
        old = await sender.send(0, epoch=1)
        assert old[0] is ErrorCode.NONE, "a new epoch begins at 0"
        fenced = await sender.send(len(sender.offsets))
        assert fenced[0] is ErrorCode.INVALID_PRODUCER_EPOCH


async def test_no_producer_id_is_given_twice_and_an_unknown_one_may_begin_anywhere() -> None:
    async with open_waves() as (cluster, _):
        ids = [await new_producer(cluster, node) for node in (*cluster.nodes, *cluster.nodes)]
        await cluster.kill(1)
        ids += [await new_producer(cluster, node) for node in (2, 3, 4)]
        await cluster.start(1)
        await cluster.restart(2)
        ids += [await new_producer(cluster, node) for node in cluster.nodes]
        assert len(set(ids)) == len(ids)
        for producer_id, sequence in zip(ids, (0, 1, 41, 2**31 - 1), strict=False):
            sender = Sender(cluster, producer_id)
            assert (await sender.send(sequence))[0] is ErrorCode.NONE
            following = (sequence + 1) % 2**31
            assert (await sender.send(following))[0] is ErrorCode.NONE


async def test_who_has_gone_quiet_is_forgotten_and_who_sends_is_not() -> None:
    quiet = {**QUIET, "producer.id.expiration.ms": "2000", "log.retention.check.interval.ms": "50"}
    with trio.fail_after(SECONDS_MAX):
        async with (
            open_cluster(settings=quiet) as cluster,
            open_client(cluster.bootstrap) as client,
        ):
            await client.admin.create_topic("waves", partitions=1)
            busy, idle = [Sender(cluster, await new_producer(cluster, 1)) for _ in range(2)]
            await idle.send_next()
            assert (await idle.send(7))[0] is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
            until = trio.current_time() + 3.0
            while trio.current_time() < until:
                await busy.send_next()
                await trio.sleep(0.05)
            await busy.check_remembered()
            assert (await idle.send(7))[0] is ErrorCode.NONE, "as that of any unknown producer"
