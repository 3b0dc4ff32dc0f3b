"""Members of a group against a real broker. Sessions are short, so that tests are."""

from collections.abc import Sequence
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
    RequestError,
    TopicPartition,
    open_client,
)
from tidemark.client.addresses import parse_bootstrap
from tidemark.client.consumer import Consumer
from tidemark.client.group import GroupMember
from tidemark.client.group_settings import GroupSettings
from tidemark.client.network import open_network
from tidemark.client.pool import open_pool
from tidemark.protocol.types import Offset
from tidemark.testing import BlockingCluster


async def read_until(consumer: Consumer, value: bytes) -> None:
    with trio.fail_after(10):
        while (await anext(consumer)).value != value:
            pass


@pytest.fixture
async def topics(client: Client, topic: str) -> Sequence[TopicPartition]:
    """Four partitions of five records each."""
    await client.admin.create_topic(topic, partitions=4)
    for partition in range(4):
        await write(client, topic, numbered(5), partition=partition)
    return [TopicPartition(topic, partition) for partition in range(4)]


async def test_a_group_goes_on_where_it_has_stopped(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(topic, group=group, **QUICK) as consumer:
        first = await take(consumer, 8)
    async with client.consumer(topic, group=group, **QUICK) as consumer:
        second = await take(consumer, 12)
    seen = [(record.partition, record.offset) for record in first + second]
    assert sorted(seen) == [(p, offset) for p in range(4) for offset in range(5)]


async def test_two_members_share_and_one_takes_over(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(topic, group=group, **QUICK) as one:
        await wait_assigned(one, 4)
        async with client.consumer(topic, group=group, **QUICK) as two:
            await wait_assigned(two, 2)
            await wait_assigned(one, 2)
            assert one.assignment | two.assignment == set(topics)
        await wait_assigned(one, 4)


async def test_the_record_in_hand_is_read_again_after_an_error(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async def fail_at_the_third() -> None:
        async with client.consumer(topic, group=group, **QUICK) as consumer:
            records.extend(await take(consumer, 3))
            raise KeyError

    records: list[ConsumerRecord] = []
    with pytest.raises(KeyError):
        await fail_at_the_third()
    async with client.consumer(topic, group=group, **QUICK) as consumer:
        again = await take(consumer, 18)
    assert records[2] in again
    assert records[0] not in again
    assert records[1] not in again


async def test_without_automatic_commits_only_what_is_committed_counts(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(
        topics[0], group=group, auto_commit_seconds=None, **QUICK
    ) as consumer:
        await take(consumer, 2)
        await consumer.commit()
        await take(consumer, 2)
        assert (await consumer.committed())[topics[0]].offset == 2
    offsets = await client.admin.list_group_offsets(group)
    assert {tp: committed.offset for tp, committed in offsets.items()} == {topics[0]: 2}
    async with client.consumer(topics[0], group=group, **QUICK) as consumer:
        assert [record.offset for record in await take(consumer, 3)] == [2, 3, 4]


async def test_offsets_can_be_committed_by_name(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(topic, group=group, auto_commit_seconds=None, **QUICK) as consumer:
        await wait_assigned(consumer, 4)
        await consumer.commit({topics[1]: Offset(3)})
        with pytest.raises(RequestError) as caught:
            await consumer.commit({TopicPartition("other", 0): Offset(3)})
        assert caught.value.code is ErrorCode.ILLEGAL_GENERATION
    assert (await client.admin.list_group_offsets(group))[topics[1]].offset == 3


async def test_commits_are_made_in_the_background(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(
        topics[0], group=group, auto_commit_seconds=0.02, **QUICK
    ) as consumer:
        await take(consumer, 3)

        async def is_committed() -> bool:
            commits = await client.admin.list_group_offsets(group)
            return topics[0] in commits and commits[topics[0]].offset == 2

        await until(is_committed)  # the third is still in hand


async def test_the_listener_hears_of_every_change(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    heard: list[tuple[str, int]] = []

    async def assigned(partitions: frozenset[TopicPartition]) -> None:
        heard.append(("assigned", len(partitions)))

    async def revoked(partitions: frozenset[TopicPartition]) -> None:
        heard.append(("revoked", len(partitions)))

    async with client.consumer(
        topic, group=group, on_assigned=assigned, on_revoked=revoked, **QUICK
    ) as one:
        await wait_assigned(one, 4)
        async with client.consumer(topic, group=group, **QUICK):
            await wait_assigned(one, 2)
    # That the other one has left may be heard of, too.
    assert heard[:3] == [("assigned", 4), ("revoked", 4), ("assigned", 2)]


async def test_cooperative_members_keep_what_they_keep(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    heard: list[tuple[str, int]] = []

    async def assigned(partitions: frozenset[TopicPartition]) -> None:
        heard.append(("assigned", len(partitions)))

    async def revoked(partitions: frozenset[TopicPartition]) -> None:
        heard.append(("revoked", len(partitions)))

    settings = {**QUICK, "assignors": ["cooperative-sticky"]}
    async with client.consumer(
        topic, group=group, on_assigned=assigned, on_revoked=revoked, **settings
    ) as one:
        await wait_assigned(one, 4)
        async with client.consumer(topic, group=group, **settings) as two:
            await wait_assigned(two, 2)
            assert len(one.assignment) == 2
    lost = [count for what, count in heard if what == "revoked"]
    got = [count for what, count in heard if what == "assigned" and count]
    assert (lost, got[0]) == ([2], 4)


async def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    rebalances = 0

    async def assigned(partitions: frozenset[TopicPartition]) -> None:
        nonlocal rebalances
        rebalances += 1

    async with client.consumer(
        topic, group=group, instance_id="a", on_assigned=assigned, **QUICK
    ) as one:
        await wait_assigned(one, 4)
        async with client.consumer(topic, group=group, instance_id="b", **QUICK) as two:
            await wait_assigned(two, 2)
            await wait_assigned(one, 2)
            before, kept = rebalances, two.assignment
        async with client.consumer(topic, group=group, instance_id="b", **QUICK) as two:
            await wait_assigned(two, 2)
            assert two.assignment == kept
        assert rebalances == before


async def test_a_second_holder_of_an_instance_id_fences_the_first(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(topic, group=group, instance_id="a", **QUICK) as one:
        await wait_assigned(one, 4)
        await take(one, 20)
        async with client.consumer(topic, group=group, instance_id="a", **QUICK) as two:
            await wait_assigned(two, 4)
            for _ in range(2):
                with trio.fail_after(20), pytest.raises(RequestError, match="FENCED_INSTANCE_ID"):
                    await anext(one)


async def test_members_notice_that_a_topic_has_grown(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(topic, group=group, **QUICK) as consumer:
        await wait_assigned(consumer, 4)
        await client.admin.create_partitions(topic, 6)
        await wait_assigned(consumer, 6)


async def test_a_group_reads_on_when_one_of_its_topics_is_deleted(
    client: Client,
    tidemark_session: BlockingCluster,
    topic: str,
    group: str,
    topics: Sequence[TopicPartition],
) -> None:
    gone = f"{topic}-gone"
    await client.admin.create_topic(gone, partitions=2)
    brief = ClientSettings(
        metadata_max_age_seconds=0.1, retry_timeout_seconds=1, unknown_topic_seconds=0.2
    )
    async with (
        open_client(tidemark_session.bootstrap, settings=brief) as reader,
        reader.consumer([topic, gone], group=group, **QUICK) as consumer,
    ):
        await wait_assigned(consumer, 6)
        await take(consumer, 20)
        await client.admin.delete_topic(gone)
        await wait_assigned(consumer, 4)
        await trio.sleep(2)
        await write(client, topic, [b"later"], partition=3)
        await read_until(consumer, b"later")
        assert len(consumer.assignment) == 4
        # And it is read again once it is there again.
        await client.admin.create_topic(gone, partitions=2)
        await write(client, gone, [b"anew"])
        await read_until(consumer, b"anew")


async def test_a_group_reads_to_the_end_and_is_done(
    client: Client, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(topic, group=group, until_end=True, **QUICK) as consumer:
        assert len([record async for record in consumer]) == 20
    async with client.consumer(topic, group=group, until_end=True, **QUICK) as consumer:
        assert [record async for record in consumer] == []


async def test_without_a_group_there_is_nothing_to_commit_to(
    client: Client, topics: Sequence[TopicPartition]
) -> None:
    async with client.consumer(topics[0]) as consumer:
        with pytest.raises(ValueError, match="no group"):
            await consumer.commit()


async def test_an_unknown_assignor_is_refused(client: Client, topic: str, group: str) -> None:
    with pytest.raises(ValueError, match="range, roundrobin, cooperative-sticky, not"):
        client.consumer(topic, group=group, assignors=["fair"])


async def test_a_member_is_given_topics_that_the_leader_does_not_read(
    tidemark_session: BlockingCluster, topic: str, group: str, topics: Sequence[TopicPartition]
) -> None:
    """Each has a client of its own: the leader's knows nothing of the other's topic."""
    other = f"{topic}-other"
    bootstrap = tidemark_session.bootstrap
    async with (
        open_client(bootstrap) as client,
        client.consumer(topic, group=group, **QUICK) as leader,
    ):
        await wait_assigned(leader, 4)
        async with open_client(bootstrap) as second:
            await second.admin.create_topic(other, partitions=2)
            async with second.consumer(other, group=group, **QUICK) as follower:
                await wait_assigned(follower, 2)
                assert len(leader.assignment) == 4


class FailsOnce:
    """A listener that cannot take what it is given the first time."""

    def __init__(self) -> None:
        self.given: list[frozenset[TopicPartition]] = []
        self.taken = trio.Event()

    async def assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self.given.append(partitions)
        if len(self.given) == 1:
            raise ConnectionError("the partitions' leader cannot be reached")
        self.taken.set()

    async def revoked(self, partitions: frozenset[TopicPartition]) -> None:
        raise AssertionError("it was never read")

    async def lost(self, partitions: frozenset[TopicPartition]) -> None:
        raise AssertionError("it was never read")

    def failed(self, error: OSError | RequestError) -> None:
        raise AssertionError(error)

    def is_callers(self, _error: Exception) -> bool:
        return False


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_what_could_not_be_taken_is_given_again(
    tidemark_session: BlockingCluster,
    topic: str,
    group: str,
    topics: Sequence[TopicPartition],
    assignor: str,
) -> None:
    listener = FailsOnce()
    settings = GroupSettings(group=group, assignors=(assignor,), heartbeat_seconds=0.05)
    bootstrap = parse_bootstrap(tidemark_session.bootstrap)
    async with (
        open_network(bootstrap, ClientSettings(), Random(1)) as network,
        open_pool(network.settings) as pool,
        trio.open_nursery() as nursery,
    ):
        member = GroupMember(network, pool, settings, (topic,), listener)
        nursery.start_soon(member.take_part_until_cancelled)
        with trio.fail_after(10):
            await listener.taken.wait()
        nursery.cancel_scope.cancel()
    assert listener.given == [frozenset(topics), frozenset(topics)]
