"""A group's offsets in transactions, while the group takes partitions away."""

from functools import partial
from random import Random

import pytest
import trio

from tests.client.groups import QUICK, take, wait_assigned
from tests.client.helpers import numbered, until, write
from tidemark.client import (
    Client,
    ClientSettings,
    ConsumerRecord,
    ErrorCode,
    Producer,
    RequestError,
    TopicPartition,
)
from tidemark.client.addresses import parse_bootstrap
from tidemark.client.connection import Connection
from tidemark.client.coordinator import GroupMembership, on_coordinator
from tidemark.client.descriptions import BrokerDescription
from tidemark.client.group_requests import leave_request
from tidemark.client.network import open_network
from tidemark.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from tidemark.protocol.types import Offset
from tidemark.testing import BlockingCluster

_REFUSALS = {ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}


async def commit_read(
    producer: Producer, record: ConsumerRecord, membership: GroupMembership
) -> None:
    """Commit in a transaction that this record was read."""
    at = TopicPartition(record.topic, record.partition)
    await commit_with(producer, at, record.offset + 1, membership)


async def commit_with(
    producer: Producer, at: TopicPartition, offset: int, membership: GroupMembership
) -> None:
    async with producer.transaction():
        await producer.send_offsets_to_transaction({at: Offset(offset)}, membership)


async def is_committed(client: Client, group: str, partition: TopicPartition, offset: int) -> bool:
    found = await client.admin.list_group_offsets(group, [partition])
    return partition in found and found[partition].offset == offset


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_nothing_is_committed_of_what_was_taken_away(
    client: Client, topic: str, group: str, assignor: str
) -> None:
    """Its next owner has read it, too, and its commit would be set back."""
    await client.admin.create_topic(topic, partitions=2)
    for partition in range(2):
        await write(client, topic, numbered(3), partition=partition)
    settings = {**QUICK, "assignors": [assignor], "auto_commit_seconds": None}
    join = partial(client.consumer, topic, group=group, **settings)
    async with join() as one, client.producer(transactional_id=topic) as producer:
        first = {record.partition: record for record in reversed(await take(one, 6))}
        async with join() as two:
            await wait_assigned(two, 1)
            await wait_assigned(one, 1)
            (moved,) = two.assignment
            with pytest.raises(RequestError) as refused:
                await commit_read(producer, first[moved.partition], one.group_membership)
            assert refused.value.code in _REFUSALS
            await commit_read(producer, await anext(two), two.group_membership)
            await until(partial(is_committed, client, group, moved, 1))


async def test_what_is_handed_out_after_partitions_went_is_committed(
    client: Client, topic: str, group: str
) -> None:
    await client.admin.create_topic(topic, partitions=2)
    await write(client, topic, numbered(3))
    settings = {**QUICK, "assignors": ["cooperative-sticky"], "auto_commit_seconds": None}
    join = partial(client.consumer, topic, group=group, **settings)
    async with join() as one, client.producer(transactional_id=topic) as producer:
        await anext(one)
        async with join() as two:
            await wait_assigned(two, 1)
            assert one.assignment == {TopicPartition(topic, 0)}
            (record,) = await take(one, 1)
            assert record.value == b"1"
            await commit_read(producer, record, one.group_membership)


async def test_a_rebalance_that_takes_nothing_away_refuses_no_transaction(
    client: Client, topic: str, group: str
) -> None:
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(3))
    settings = {**QUICK, "assignors": ["cooperative-sticky"], "auto_commit_seconds": None}
    join = partial(client.consumer, topic, group=group, **settings)

    async def has_joined_again() -> bool:
        return one.group_membership.membership.generation > first

    async with join() as one, client.producer(transactional_id=topic) as producer:
        record = await anext(one)
        first = one.group_membership.membership.generation
        async with join():
            await until(has_joined_again)
            await commit_read(producer, record, one.group_membership)


async def test_who_has_lost_its_place_commits_nothing(
    tidemark_session: BlockingCluster, client: Client, topic: str, group: str
) -> None:
    """While it is in no generation, and in the next one."""
    await client.admin.create_topic(topic, partitions=1)
    await write(client, topic, numbered(3))
    refusals: list[ErrorCode] = []
    is_lost = trio.Event()

    async def try_to_commit(_: frozenset[TopicPartition] = frozenset()) -> None:
        try:
            await commit_read(producer, record, consumer.group_membership)
        except RequestError as error:
            refusals.append(error.code)
        is_lost.set()

    settings = {**QUICK, "auto_commit_seconds": None, "on_revoked": try_to_commit}
    async with (
        client.producer(transactional_id=topic) as producer,
        client.consumer(topic, group=group, **settings) as consumer,
    ):
        record = await anext(consumer)
        await leave(tidemark_session.bootstrap, consumer.group_membership)
        with trio.fail_after(10):
            await is_lost.wait()
        await wait_assigned(consumer, 1)
        await try_to_commit()
    assert len(refusals) == 2
    assert set(refusals) <= _REFUSALS


async def test_who_is_no_member_yet_commits_nothing(client: Client, topic: str, group: str) -> None:
    await client.admin.create_topic(topic, partitions=1)
    async with (
        client.producer(transactional_id=topic) as producer,
        client.consumer(topic, group=group) as consumer,
    ):
        membership = consumer.group_membership
        assert not consumer.assignment
        with pytest.raises(RequestError) as refused:
            await commit_with(producer, TopicPartition(topic, 0), 1, membership)
        assert refused.value.code in _REFUSALS


async def leave(bootstrap: str, membership: GroupMembership) -> None:
    """Have the group forget a member that does not know it."""
    async with open_network(parse_bootstrap(bootstrap), ClientSettings(), Random(1)) as network:

        async def ask(_: BrokerDescription, connection: Connection) -> None:
            version = connection.version(LeaveGroupRequest)
            request = leave_request(membership.group, membership.membership, version)
            await connection.request(request, LeaveGroupResponse)

        await on_coordinator(network, membership.group, ask)
