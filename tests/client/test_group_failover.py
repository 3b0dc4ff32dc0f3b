"""A group whose coordinator is killed goes on in the same generation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
import trio

from tests.client.groups import wait_assigned
from tests.client.helpers import numbered, write
from tidemark.client import Client, Consumer, TopicPartition, open_client
from tidemark.protocol.types import Offset
from tidemark.testing import Cluster, open_cluster

SECONDS_MAX: Final = 60
"""For a test as a whole, on a machine that is busy with others."""
QUICK: Final[dict[str, Any]] = {  # Any: keyword arguments of several types
    "heartbeat_seconds": 0.05,
    "auto_commit_seconds": None,
}
_COMMITS: Final = "__consumer_offsets"


class Heard:
    """What a member's callbacks have been told."""

    def __init__(self) -> None:
        self.assigned: list[int] = []
        self.revoked: list[int] = []
        self.may_give_up = trio.Event()
        self.may_give_up.set()

    async def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.assigned.append(len(partitions))

    async def on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.revoked.append(len(partitions))
        await self.may_give_up.wait()

    @asynccontextmanager
    async def reading(self, client: Client, assignor: str) -> AsyncIterator[Consumer]:
        async with client.consumer(
            "waves",
            group="g",
            assignors=[assignor],
            on_assigned=self.on_assigned,
            on_revoked=self.on_revoked,
            **QUICK,
        ) as consumer:
            yield consumer


@asynccontextmanager
async def open_waves() -> AsyncIterator[tuple[Cluster, Client]]:
    """Three brokers, and four partitions of `waves`."""
    with trio.fail_after(SECONDS_MAX):
        async with open_cluster(brokers=3) as cluster, open_client(cluster.bootstrap) as client:
            await client.admin.create_topic("waves", partitions=4)
            yield cluster, client


async def kill_coordinator(cluster: Cluster) -> None:
    """There is another one when this returns."""
    coordinator = await cluster.wait_leader(_COMMITS)
    await cluster.kill(coordinator)
    await cluster.wait_leader(_COMMITS, other_than=coordinator)


def generation(consumer: Consumer) -> int:
    """That of the member, whatever was handed out in which."""
    committer = consumer._committer
    assert committer is not None
    return committer.group_membership.membership.generation


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_members_keep_what_they_read_when_the_coordinator_moves(assignor: str) -> None:
    one, two = Heard(), Heard()
    async with open_waves() as (cluster, client), one.reading(client, assignor) as first:
        await wait_assigned(first, 4)
        async with two.reading(client, assignor) as second:
            await wait_assigned(second, 2)
            await wait_assigned(first, 2)
            # A cooperative member joins once more after it has given something up.
            await cluster.wait_for(lambda: generation(first) == generation(second), "all are in")
            before = generation(first), first.assignment, second.assignment
            told = [list(each) for each in (one.assigned, one.revoked, two.assigned, two.revoked)]
            await kill_coordinator(cluster)
            # A commit is taken only of the generation that the new coordinator has.
            await first.commit(dict.fromkeys(first.assignment, Offset(0)))
            await second.commit(dict.fromkeys(second.assignment, Offset(0)))
            await trio.sleep(1)  # twenty heartbeats
            assert (generation(first), first.assignment, second.assignment) == before
            assert generation(second) == generation(first)
            assert told == [one.assigned, one.revoked, two.assigned, two.revoked]
            for partition in range(4):
                await write(client, "waves", numbered(3), partition=partition)
            for consumer in (first, second):
                values = [(await anext(consumer)).value for _ in range(6)]
                assert sorted(filter(None, values)) == sorted(numbered(3) * 2)
        # Its heartbeats are answered still: it hears that the other one has left.
        await wait_assigned(first, 4)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_a_rebalance_goes_on_when_its_coordinator_is_killed(assignor: str) -> None:
    """The new member waits in its join for the old one, which is not done giving up."""
    one, two = Heard(), Heard()
    async with open_waves() as (cluster, client), one.reading(client, assignor) as first:
        await wait_assigned(first, 4)
        one.may_give_up = trio.Event()
        async with two.reading(client, assignor) as second:
            await cluster.wait_for(lambda: one.revoked, "the rebalance has reached the member")
            await kill_coordinator(cluster)
            one.may_give_up.set()
            await wait_assigned(second, 2)
            await wait_assigned(first, 2)
            assert first.assignment.isdisjoint(second.assignment)
