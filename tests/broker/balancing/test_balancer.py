"""The balancer's loop, from what it sees to what it wishes for."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

import pytest
import trio
from trio.testing import MockClock

from tests.broker.balancing.world import World, balancing, open_world
from tidemark.broker.balancing.gathering import now
from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.partitions.balancing.leaders import Cause
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import Command
from tidemark.partitions.state_machines.cluster_values import BrokerState, PartitionId
from tidemark.protocol.types import NodeId

EVERYWHERE = (1, 2, 3)
T = TypeVar("T")


async def uneven(world: World, partitions: int = 12) -> None:
    await world.add_topic("t", [EVERYWHERE] * partitions)


async def test_uneven_leaders_become_even_a_few_at_a_time(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    caplog.set_level(logging.INFO, "tidemark.broker.balancing")
    rules = Settings(moves_in_flight_max=4, broker_moves_in_flight_max=3)
    async with open_world(*EVERYWHERE, rules=rules) as world:
        await uneven(world)
        async with balancing(world):
            await trio.sleep(10)
        assert world.leaders() == {1: 4, 2: 4, 3: 4}
        assert len(world.moved) == 8
        assert world.most_in_flight == 3
        assert sum(count.value for count in world.metrics.moves.values()) == 8
    said = [record.getMessage() for record in caplog.records]
    assert "moving the leader of t-" in said[0]
    assert "broker 1 leads 12, broker " in said[0]
    assert len(said) == 8


async def test_nothing_moves_where_it_is_turned_off_but_a_drained_broker_is_emptied(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE, is_enabled=False) as world:
        await uneven(world)
        async with balancing(world):
            await trio.sleep(60)
            assert world.leaders() == {1: 12, 2: 0, 3: 0}
            await world.states.set(NodeId(1), BrokerState.DRAINING)
            await trio.sleep(5)
            assert world.leaders() == {1: 0, 2: 6, 3: 6}
            await world.states.set(NodeId(1), BrokerState.ACTIVE)
            await trio.sleep(120)
            assert world.leaders() == {1: 0, 2: 6, 3: 6}


async def test_by_hand_it_evens_out_once_though_it_is_turned_off(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE, is_enabled=False) as world:
        await uneven(world)
        async with balancing(world):
            world.balancer.ask(at_once=False)
            await trio.sleep(10)
            assert world.leaders() == {1: 4, 2: 4, 3: 4}
            await world.add_topic("u", [EVERYWHERE] * 3)
            await trio.sleep(60)
            assert world.leaders() == {1: 7, 2: 4, 3: 4}


async def test_who_asks_while_a_plan_is_made_is_heard(autojump_clock: MockClock) -> None:
    """That plan has nothing to move, and is not what was asked for."""
    async with open_world(*EVERYWHERE) as world:
        await uneven(world)
        for topic in world.state.topics.values():
            for partition in range(topic.partitions):
                world.history.move_ended(PartitionId(topic.id, partition), now())
        in_thread = world.balancer._in_thread

        async def ask_meanwhile(work: Callable[[], T], /) -> T:
            made = await in_thread(work)
            if world.plans == 1:
                world.balancer.ask(at_once=True)
            return made

        world.balancer._in_thread = ask_meanwhile
        async with balancing(world):
            await trio.sleep(15)
        assert world.leaders() == {1: 4, 2: 4, 3: 4}


async def test_a_cluster_in_which_nothing_happens_is_not_planned_for_again_and_again(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [(1, 2, 3), (2, 3, 1), (3, 1, 2)])
        async with balancing(world):
            await trio.sleep(29)
            assert world.plans == 1
            world.set_alive(3, False)
            await trio.sleep(11)
            assert world.plans == 2


async def test_it_does_nothing_while_another_broker_leads_the_metadata(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await uneven(world)
        world.group.is_serving = False
        async with balancing(world):
            await trio.sleep(60)
            assert not world.moved
            assert not world.metrics.brokers
            world.group.is_serving = True
            world.tell_all()
            await trio.sleep(10)
            assert world.leaders() == {1: 4, 2: 4, 3: 4}
            assert world.metrics.brokers[NodeId(2)].leaders == 4


async def test_moves_of_deleted_topics_are_forgotten_where_nobody_plans(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await uneven(world)
        (kept,) = world.state.topics.values()
        at = [PartitionId(kept.id, 0), *(PartitionId(UUID(int=n), 0) for n in range(1_000, 2_000))]
        world.group.is_serving = False
        async with balancing(world):
            for partition in at:
                world.history.move_ended(partition, now())
            await trio.sleep(60)
        assert [each for each in at if world.history.moved_ms(each) is not None] == at[:1]


async def test_what_no_leader_has_told_of_stays_where_it_is(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        await uneven(world)
        world.group.is_serving = False
        world.reports.take_told()  # it does not lead: what was told is forgotten
        world.group.is_serving = True
        async with balancing(world):
            await trio.sleep(60)
            assert not world.moved
            world.tell_all()
            await trio.sleep(10)
            assert world.leaders() == {1: 4, 2: 4, 3: 4}


async def test_who_has_not_said_how_far_it_is_gets_no_leaders(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        await uneven(world)
        world.liveness.alive.discard(3)
        world.tell_all()  # as the leader sees it
        world.liveness.alive.add(3)
        async with balancing(world):
            await trio.sleep(10)
        assert world.leaders() == {1: 6, 2: 6, 3: 0}


async def test_a_broker_that_comes_and_goes_gets_no_leaders_and_nothing_moves_to_and_fro(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [(1, 2, 3), (2, 1, 3)] * 6)
        async with balancing(world):
            for _ in range(10):
                world.set_alive(3, False)
                await trio.sleep(5)
                world.set_alive(3, True)
                world.tell_all()
                await trio.sleep(15)
            assert not world.moved
            await trio.sleep(60)
            assert world.leaders() == {1: 4, 2: 4, 3: 4}


async def test_what_has_left_a_drained_broker_before_that_is_known_comes_home_at_once(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move can be over before the task that has wished for it goes on."""
    async with open_world(1, 2) as world:
        await world.add_topic("t", [(1, 2)] * 2, leader=1)
        propose = world.cluster.propose

        async def slowly(decide: Callable[[ClusterState], Command]) -> Applied:
            applied = await propose(decide)
            await trio.sleep(0.2)
            return applied

        monkeypatch.setattr(world.balancer._beginning, "_cluster", _Slow(world.cluster, slowly))
        async with balancing(world):
            await world.states.set(NodeId(1), BrokerState.DRAINING, force=True)
            await trio.sleep(5)
            assert world.leaders() == {1: 0, 2: 2}
            await world.states.set(NodeId(1), BrokerState.ACTIVE)
            await trio.sleep(15)
            assert world.leaders() == {1: 1, 2: 1}


@dataclass
class _Slow:
    """The metadata, whose answers take a while to be read."""

    log: ClusterLog
    propose: Callable[[Callable[[ClusterState], Command]], Awaitable[Applied]]

    @property
    def state(self) -> ClusterState:
        return self.log.state

    @property
    def leads(self) -> bool:
        return self.log.leads


async def test_a_move_that_fails_is_not_tried_again_at_once(autojump_clock: MockClock) -> None:
    async with open_world(1, 2) as world:
        world.failing_targets = {2}
        await world.add_topic("t", [(1, 2)] * 2)
        async with balancing(world):
            await trio.sleep(50)
            tried = world.failed
            assert tried == 2, "each group once"
            await trio.sleep(30)
            assert world.failed == 4, "after the cool-down"
            assert world.leaders() == {1: 2, 2: 0}


async def test_a_group_that_just_moved_is_let_be_unless_nobody_is_to_wait(
    autojump_clock: MockClock,
) -> None:
    async with open_world(1, 2) as world:
        await world.add_topic("t", [(1, 2)] * 2)
        world.set_alive(2, False)
        world.set_alive(2, True)
        async with balancing(world):
            await trio.sleep(6)
            # It has just started; somebody else has moved them.
            for key in world.liveness.leaders:
                world.lead(key, 2, (1, 2))
            await trio.sleep(40)
            assert world.leaders() == {1: 0, 2: 2}
            world.balancer.ask(at_once=True)
            await trio.sleep(5)
            assert world.leaders() == {1: 1, 2: 1}


async def test_what_was_moved_by_a_drain_comes_home_after_it_and_nothing_else_moves(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [(1, 2, 3), (2, 3, 1), (3, 1, 2)] * 4)
        async with balancing(world):
            await world.states.set(NodeId(1), BrokerState.DRAINING)
            await trio.sleep(5)
            away = [(partition, target) for partition, _, target in world.moved]
            assert len(away) == 4
            world.moved.clear()
            await world.states.set(NodeId(1), BrokerState.ACTIVE)
            await trio.sleep(100)
        assert sorted((partition, source) for partition, source, _ in world.moved) == sorted(away)
        assert world.leaders() == {1: 4, 2: 4, 3: 4}


async def test_a_drain_waits_for_no_cool_down_and_no_grace(autojump_clock: MockClock) -> None:
    async with open_world(1, 2) as world:
        await world.add_topic("t", [(1, 2)] * 4)
        world.set_alive(2, False)
        world.set_alive(2, True)
        async with balancing(world):
            await world.states.set(NodeId(1), BrokerState.DRAINING, force=True)
            await trio.sleep(5)
            assert world.leaders() == {1: 0, 2: 4}
        assert world.metrics.moves[Cause.EMPTY].value == 4


async def test_a_broker_that_fails_makes_no_end_of_the_loop(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await uneven(world)
        async with balancing(world):
            works, world.brokers.is_alive = world.brokers.is_alive, _breaks  # type: ignore[method-assign,assignment] # our bug, whatever it is
            await trio.sleep(20)
            assert "balancing has failed" in caplog.text
            world.brokers.is_alive = works  # type: ignore[method-assign] # mended
            await trio.sleep(20)
            assert world.leaders() == {1: 4, 2: 4, 3: 4}


def _breaks(_: NodeId) -> bool:
    raise ZeroDivisionError


async def test_the_drained_leader_of_the_metadata_hands_them_over_last(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await uneven(world)
        async with balancing(world):
            await world.states.set(NodeId(1), BrokerState.DRAINING)
            await trio.sleep(0.2)
            assert not world.handed_metadata_to
            await trio.sleep(10)
            assert world.leaders()[1] == 0
            assert world.handed_metadata_to[0] in (2, 3)


async def test_the_metadata_stay_where_no_other_can_lead_them(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        world.liveness.metadata_voters = (1,)
        async with balancing(world):
            await world.states.set(NodeId(1), BrokerState.DRAINING, force=True)
            await trio.sleep(10)
        assert not world.handed_metadata_to
