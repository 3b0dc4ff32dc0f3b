"""The balancer's loop where disks fill up: leaders leave, and return long after there is room."""

import trio
from trio.testing import MockClock

from tests.broker.balancing.world import balancing, open_world
from tidemark.partitions.balancing.leaders import Cause
from tidemark.partitions.state_machines.cluster_values import BrokerState
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

EVERYWHERE = (1, 2, 3)
SPREAD = [(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 4


async def test_leaders_leave_a_disk_that_stays_full_and_return_long_after_there_is_room(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", SPREAD)
        async with balancing(world):
            await trio.sleep(30)
            world.fill_disk(3)
            await trio.sleep(9)
            assert world.leaders()[3] == 4, "it may be for a moment"
            await trio.sleep(4)
            assert world.leaders() == {1: 6, 2: 6, 3: 0}
            assert world.metrics.moves[Cause.FULL_DISK].value == 4
            world.fill_disk(3, is_full=False)
            await trio.sleep(290)
            assert world.leaders()[3] == 0, "it may be full again soon"
            await trio.sleep(30)
            assert world.leaders() == {1: 4, 2: 4, 3: 4}
        assert len(world.moved) == 8


async def test_a_disk_that_is_full_again_and_again_moves_nobody_or_each_leader_once(
    autojump_clock: MockClock,
) -> None:
    for full_seconds, moved in ((4, 0), (20, 4)):
        async with open_world(*EVERYWHERE) as world:
            await world.add_topic("t", SPREAD)
            async with balancing(world):
                for _ in range(20):
                    world.fill_disk(3)
                    await trio.sleep(full_seconds)
                    world.fill_disk(3, is_full=False)
                    await trio.sleep(60)
            assert len(world.moved) == moved


async def test_where_all_disks_are_full_nobody_moves(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [EVERYWHERE] * 6)
        for number in EVERYWHERE:
            world.fill_disk(number)
        async with balancing(world):
            await trio.sleep(120)
            assert not world.moved
            world.fill_disk(2, is_full=False)
            await trio.sleep(120)
            assert not world.moved, "it may be full again soon"
            world.balancer.ask(at_once=True)
            await trio.sleep(5)
            assert world.leaders() == {1: 0, 2: 6, 3: 0}


async def test_where_it_is_turned_off_leaders_stay_on_a_full_disk_until_somebody_asks(
    autojump_clock: MockClock,
) -> None:
    """Nor does a drain of another broker take them along."""
    async with open_world(*EVERYWHERE, is_enabled=False) as world:
        await world.add_topic("t", SPREAD)
        world.fill_disk(3)
        async with balancing(world):
            await trio.sleep(60)
            assert not world.moved
            await world.states.set(NodeId(2), BrokerState.DRAINING)
            await trio.sleep(10)
            assert world.leaders() == {1: 8, 2: 0, 3: 4}
            world.balancer.ask(at_once=False)
            await trio.sleep(10)
            assert world.leaders() == {1: 12, 2: 0, 3: 0}


async def test_who_has_a_full_disk_gets_no_leaders(autojump_clock: MockClock) -> None:
    """It would refuse the records that another takes."""
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [(1, 2, 3)] * 12)
        world.fill_disk(3)
        async with balancing(world):
            await trio.sleep(120)
            assert world.leaders() == {1: 6, 2: 6, 3: 0}


async def test_who_has_not_told_a_new_leader_of_the_metadata_how_its_disk_is_gets_no_leaders(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [(1, 2, 3)] * 12)
        world.group.is_serving = False
        async with balancing(world):
            await trio.sleep(20)
            world.reports.take_told()  # what was told is forgotten
            world.group.is_serving = True
            for number in (1, 2):
                world.fill_disk(number, is_full=False)
            for topic in world.state.topics.values():
                for partition, replicas in enumerate(topic.assignments):
                    world.lead(PartitionKey(topic.id, partition), 1, replicas)
            await trio.sleep(60)
            assert world.leaders() == {1: 6, 2: 6, 3: 0}
            world.fill_disk(3, is_full=False)
            await trio.sleep(60)
            assert world.leaders() == {1: 4, 2: 4, 3: 4}
