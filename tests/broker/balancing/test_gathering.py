"""What the balancer sees of a cluster, looking only at what has changed."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from tests.broker.balancing.world import World, WrittenLeaders, balancing, open_world
from tidemark.broker.balancing.gathering import Gathering
from tidemark.broker.balancing.rates import SETTLE_MS
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Group, Snapshot
from tidemark.partitions.state_machines.cluster_commands import (
    CreatePartitions,
    DeleteTopic,
    SetObservers,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, TopicPartition

BROKERS = (1, 2, 3, 4)
VOTERS = (1, 2, 3)


def groups_of(snapshot: Snapshot) -> dict[TopicPartition, Group]:
    return {group.partition: group for group in snapshot.groups}


async def seen_at_first_sight(world: World) -> dict[TopicPartition, Group]:
    leaders = WrittenLeaders(world.liveness)
    return groups_of(
        await Gathering(
            lambda: world.state, world.brokers, world.reports, world.history, leaders
        ).gather()
    )


async def something(world: World, rng: Random) -> None:
    """Happens to the cluster."""
    topics = list(world.state.topics.values())
    if not topics or rng.random() < 0.1:
        name = "t" * rng.randint(1, 200)  # no two have the same id
        if name not in world.state.topics:
            await world.add_topic(name, [VOTERS] * rng.randint(1, 5))
        return
    topic = rng.choice(topics)
    key = PartitionKey(topic.id, rng.randrange(topic.partitions))
    match rng.randrange(8):
        case 0:
            world.lead(key, rng.choice(VOTERS), VOTERS)
        case 1:
            epoch = world.liveness.leader_of(key)[1]
            world.liveness.leaders[key] = rng.choice([NodeId(1), NodeId(2), None]), epoch
        case 2:
            world.set_alive(rng.choice(BROKERS), rng.random() < 0.7)
        case 3:
            world.tell_all()
        case 4:
            grown = (*topic.assignments, tuple(map(NodeId, VOTERS)))
            await world.cluster.propose(
                lambda state: CreatePartitions(
                    at_version=state.version, id=topic.id, assignments=grown[topic.partitions :]
                )
            )
        case 5:
            await world.cluster.propose(
                lambda state: SetObservers(
                    at_version=state.version,
                    topic_id=topic.id,
                    partition=key.partition,
                    replicas=(NodeId(4),) if rng.random() < 0.5 else (),
                )
            )
        case 6 if rng.random() < 0.3:
            await world.cluster.propose(
                lambda state: DeleteTopic(at_version=state.version, id=topic.id)
            )
        case _:
            world.balancer.ask(at_once=True)
            await trio.sleep(rng.choice([0.01, 0.2, 3.0]))


@pytest.mark.parametrize("seed", range(20))
async def test_it_sees_what_one_sees_who_looks_at_all(seed: int, autojump_clock: MockClock) -> None:
    rng = Random(seed)
    async with open_world(*BROKERS) as world, balancing(world):
        await trio.sleep(1)
        for _ in range(60):
            await something(world, rng)
            seen = groups_of(await world.gathering.gather())
            assert seen == await seen_at_first_sight(world)


def another_epoch(world: World) -> None:
    """Whoever led the metadata, leads them anew."""
    world.reports._be_in(None)


async def test_who_asks_behind_a_new_leader_of_the_metadata_waits_for_what_all_have_to_tell(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*VOTERS) as world:
        await world.add_topic("t", [VOTERS], leader=2)
        another_epoch(world)
        (topic,) = world.state.topics.values()

        async def tell() -> None:
            for number in VOTERS:
                await trio.sleep(0.5)
                world.fill_disk(number, is_full=False)
                if number == 2:
                    world.tell(PartitionKey(topic.id, 0), VOTERS, size=1000)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tell)
            began = trio.current_time()
            (group,) = (await world.gathering.gather_told()).groups
            assert group.size_bytes == 1000
            assert 1.5 <= trio.current_time() - began < 2
        # One that does not tell is not waited for for ever, and one that is dead not at all.
        another_epoch(world)
        world.set_alive(3, False)
        world.fill_disk(1, is_full=False)
        began = trio.current_time()
        await world.gathering.gather_told()
        assert trio.current_time() - began == pytest.approx(5)
        world.fill_disk(2, is_full=False)
        await world.gathering.gather_told()
        assert trio.current_time() - began == pytest.approx(5)


async def test_a_leader_that_has_just_begun_to_measure_carries_what_the_one_before_it_did(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*BROKERS) as world:
        await world.add_topic("t", [VOTERS])
        (topic,) = world.state.topics.values()
        key = PartitionKey(topic.id, 0)

        async def rate() -> float:
            (group,) = (await world.gathering.gather()).groups
            return group.bytes_in_per_second

        world.tell(key, VOTERS, rate=5_000_000)
        assert await rate() == 5_000_000
        world.liveness.leaders[key] = NodeId(2), Epoch(7)
        assert await rate() == 5_000_000, "the new one has told nothing yet"
        world.tell(key, VOTERS, rate=0)
        assert await rate() == 5_000_000, "nor has it seen anything"
        await trio.sleep(SETTLE_MS / 2000)
        world.tell(key, VOTERS, rate=6_000_000)
        assert await rate() == 6_000_000, "more is seen at once"
        world.tell(key, VOTERS, rate=0)
        assert await rate() == 5_000_000
        await trio.sleep(SETTLE_MS / 1000)
        assert await rate() == 0, "nothing more was told, and it is so"
        world.tell(key, VOTERS, rate=3_000_000)
        assert await rate() == 3_000_000
        world.gathering.stop()
        world.liveness.leaders[key] = NodeId(3), Epoch(8)
        world.tell(key, VOTERS, rate=0)
        assert await rate() == 0, "what was known long ago is known no more"


async def test_nothing_moves_to_and_fro_because_new_leaders_have_not_measured_yet(
    autojump_clock: MockClock,
) -> None:
    """All partitions have the same traffic, and a third of the leaders goes to another broker."""
    async with open_world(1, 2, 3, rules=Settings(cool_down_ms=0)) as world:
        await world.add_topic(
            "t", [VOTERS[number % 2 :] + VOTERS[: number % 2] for number in range(12)]
        )
        (topic,) = world.state.topics.values()
        for number in range(12):
            key = PartitionKey(topic.id, number)
            world.tell(key, topic.assignments[number], rate=4_000_000 + 1_000_000 * (number % 3))
        async with balancing(world):
            await trio.sleep(8)
            assert world.leaders() == {1: 4, 2: 4, 3: 4}
            assert len(world.moved) == 4


async def test_a_look_costs_what_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_world(*BROKERS) as world:
        for number in range(3):
            await world.add_topic(f"t{number}", [VOTERS] * 100)
        await world.gathering.gather()
        looked: list[PartitionKey] = []
        leader_of = world.brokers.leader_of

        def noted(key: PartitionKey) -> tuple[NodeId | None, Epoch]:
            looked.append(key)
            return leader_of(key)

        monkeypatch.setattr(world.brokers, "leader_of", noted)
        await world.gathering.gather()
        assert not looked
        key = PartitionKey(world.state.topics["t1"].id, 7)
        world.lead(key, 2, VOTERS)
        await world.gathering.gather()
        assert looked == [key]
        looked.clear()
        await world.add_topic("other", [VOTERS] * 2)
        await world.gathering.gather()
        assert {each.topic_id for each in looked} == {UUID(int=sum(b"other"))}


async def test_who_is_cut_short_goes_on_the_next_time() -> None:
    async with open_world(*BROKERS) as world:
        await world.add_topic("t", [VOTERS] * 1_000)
        with trio.CancelScope() as scope:
            scope.cancel()
            await world.gathering.gather()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as tasks:
                tasks.start_soon(world.gathering.gather)
                await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
        seen = groups_of(await world.gathering.gather())
        assert len(seen) == 1_000
        assert seen == await seen_at_first_sight(world)


async def test_who_is_cut_short_at_the_last_change_does_not_lose_it() -> None:
    async with open_world(*BROKERS) as world:
        for steps in range(6):
            # As many as are looked at between two rests.
            await world.add_topic(f"t{steps}", [VOTERS] * 200)
            async with trio.open_nursery() as tasks:
                tasks.start_soon(world.gathering.gather)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            assert len(groups_of(await world.gathering.gather())) == 200 * (steps + 1)


async def test_after_a_time_without_watching_all_is_looked_at() -> None:
    async with open_world(*BROKERS) as world:
        await world.add_topic("t", [VOTERS] * 3)
        await world.gathering.gather()
        world.gathering.stop()
        key = PartitionKey(world.state.topics["t"].id, 1)
        world.lead(key, 3, VOTERS)
        seen = groups_of(await world.gathering.gather())
        assert seen[TopicPartition("t", 1)].leader == 3


async def test_what_is_told_of_a_partition_that_is_yet_to_be_heard_of_harms_nothing() -> None:
    async with open_world(*BROKERS) as world:
        await world.add_topic("t", [VOTERS])
        (topic,) = world.state.topics.values()
        await world.gathering.gather()
        early = PartitionKey(topic.id, 1)
        world.lead(early, 2, VOTERS)
        assert len((await world.gathering.gather()).groups) == 1
        await world.cluster.propose(
            lambda state: CreatePartitions(
                at_version=state.version, id=topic.id, assignments=(tuple(map(NodeId, VOTERS)),)
            )
        )
        _, grown = (await world.gathering.gather()).groups
        assert grown.leader == 2
        assert grown.lags
