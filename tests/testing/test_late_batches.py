"""A producer's requests that are on the way while leaders change: what follows a refused one is not
out of order. librdkafka would begin a new epoch for all its partitions, and double what it has
not been told of in others (librdkafka#4953)."""

from __future__ import annotations

from typing import Final

import trio

from tests.testing.raw import RawClient, batch, open_raw
from tidemark.client import Client, open_client
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.testing import Cluster, open_cluster

_SECONDS_MAX: Final = 60
_QUIET: Final = {"leader.balance.enable": "false", "peer.failure.timeout.ms": "1000"}
_NOT_LED: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


async def send(raw: RawClient, sequence: int) -> tuple[ErrorCode, int]:
    """What is answered, and the offset."""
    response = await raw.produce("waves", batch(b"x", sequence=sequence))
    (answer,) = response.responses[0].partition_responses
    return ErrorCode(answer.error_code), answer.base_offset


def followers(cluster: Cluster, leader: int) -> list[int]:
    return [node for node in cluster.nodes if node != leader]


async def give_back(client: Client, leader: int) -> None:
    """Once the others have heard that it is there again."""
    while True:
        try:
            await client.admin.move_leader("waves", 0, to=leader)
        except RequestError as error:
            if error.code is not ErrorCode.BROKER_NOT_AVAILABLE:
                raise
            await trio.sleep(0.05)
        else:
            return


async def test_what_follows_a_batch_that_came_before_the_lead_did_is_not_out_of_order() -> None:
    with trio.fail_after(_SECONDS_MAX):
        async with (
            open_cluster(brokers=3, settings=_QUIET) as cluster,
            open_client(cluster.bootstrap) as client,
        ):
            await client.admin.create_topic("waves")
            leader = await cluster.wait_leader("waves")
            other = followers(cluster, leader)[0]
            async with (
                open_raw(cluster.bootstrap_of(leader)) as old,
                open_raw(cluster.bootstrap_of(other)) as new,
            ):
                assert await send(old, 0) == (ErrorCode.NONE, 0)
                assert await send(new, 1) == _NOT_LED
                await client.admin.move_leader("waves", 0, to=other)
                await cluster.wait_leader("waves", other_than=leader)
                assert await send(new, 2) == _NOT_LED
                for sequence in (1, 2, 3):
                    assert await send(new, sequence) == (ErrorCode.NONE, sequence)


async def test_what_follows_a_batch_that_went_with_the_lead_is_not_out_of_order() -> None:
    with trio.fail_after(_SECONDS_MAX):
        async with (
            open_cluster(brokers=3, settings=_QUIET) as cluster,
            open_client(cluster.bootstrap) as client,
        ):
            await client.admin.create_topic("waves")
            leader = await cluster.wait_leader("waves")
            async with open_raw(cluster.bootstrap_of(leader)) as raw:
                assert await send(raw, 0) == (ErrorCode.NONE, 0)
                cluster.isolate(leader)
                assert await send(raw, 1) == _NOT_LED, "it was appended, and is not committed"
                assert await send(raw, 2) == _NOT_LED, "it came when the lead was lost"
                new = await cluster.wait_leader("waves", other_than=leader)
                async with open_raw(cluster.bootstrap_of(new)) as other:
                    await other.produce("waves", batch(b"y"))
                cluster.heal()
                await cluster.wait_caught_up()
                await give_back(client, leader)
                await cluster.wait_leader("waves", other_than=new)
                for sequence in (3, 2):
                    assert await send(raw, sequence) == _NOT_LED
                for sequence in (1, 2, 3):
                    assert await send(raw, sequence) == (ErrorCode.NONE, sequence + 1)


async def test_nor_is_it_where_the_lead_goes_while_its_broker_stands_still() -> None:
    """It may take what has come meanwhile, and hear of the other leader and cut that in one go."""
    with trio.fail_after(_SECONDS_MAX):
        async with (
            open_cluster(brokers=3, settings=_QUIET) as cluster,
            open_client(cluster.bootstrap) as client,
            trio.open_nursery() as nursery,
        ):
            await client.admin.create_topic("waves")
            leader = await cluster.wait_leader("waves")
            async with open_raw(cluster.bootstrap_of(leader)) as raw:
                assert await send(raw, 0) == (ErrorCode.NONE, 0)
                async with open_raw(cluster.bootstrap_of(leader)) as early:

                    async def be_refused() -> None:
                        assert await send(early, 1) == _NOT_LED

                    cluster.pause(leader)
                    nursery.start_soon(be_refused)
                    new = await cluster.wait_leader("waves", other_than=leader)
                    async with open_raw(cluster.bootstrap_of(new)) as other:
                        await other.produce("waves", batch(b"y"))
                    cluster.resume(leader)
                    await cluster.wait_caught_up()
                    await give_back(client, leader)
                    await cluster.wait_leader("waves", other_than=new)
                    assert await send(raw, 2) == _NOT_LED
                for sequence in (1, 2):
                    assert await send(raw, sequence) == (ErrorCode.NONE, sequence + 1)
