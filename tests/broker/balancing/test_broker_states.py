"""Draining brokers, and letting them go: what is refused, and what follows."""

import pytest
import trio
from trio.testing import MockClock

from tests.broker.balancing.world import World, balancing, open_world
from tidemark.broker.balancing.broker_states import Refused
from tidemark.broker.balancing.descriptions import Description, describe
from tidemark.partitions.state_machines.cluster_commands import DeleteTopic
from tidemark.partitions.state_machines.cluster_values import BrokerState
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

EVERYWHERE = (1, 2, 3)
DRAINING, DECOMMISSIONING = BrokerState.DRAINING, BrokerState.DECOMMISSIONING


async def refusal(world: World, node: int, state: BrokerState) -> str:
    before = world.state.version
    with pytest.raises(Refused) as refused:
        await world.states.set(NodeId(node), state)
    assert world.state.version == before, "nothing has changed"
    assert refused.value.code is ErrorCode.POLICY_VIOLATION
    return refused.value.message or ""


async def described(world: World) -> dict[int, Description]:
    snapshot = await world.gathering.gather()
    metadata, balancer = world.gathering.metadata_group(), world.balancer
    found = describe(snapshot, NodeId(1), balancer.rules, balancer.progress, metadata)
    return {each.broker.node_id: each for each in found}


async def test_two_drains_that_would_cost_a_quorum_are_not_both_taken(
    autojump_clock: MockClock,
) -> None:
    """They come at once: the second is decided on the state that the first has led to."""
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [EVERYWHERE] * 2)
        outcomes: list[str] = []

        async def drain(node: int) -> None:
            try:
                await world.states.set(NodeId(node), DRAINING)
                outcomes.append("taken")
            except Refused as error:
                outcomes.append(error.message or "")

        async with trio.open_nursery() as both:
            both.start_soon(drain, 2)
            both.start_soon(drain, 3)
        assert sorted(outcomes)[1] == "taken"
        assert "voters in sync on brokers to count on (1), and needs 2" in sorted(outcomes)[0]


async def test_the_last_broker_that_takes_leaders_is_not_drained(autojump_clock: MockClock) -> None:
    async with open_world(1, 2) as world:
        world.liveness.metadata_voters = (1,)
        await world.states.set(NodeId(2), DRAINING)
        assert "nobody could take over" in await refusal(world, 1, DRAINING)


async def test_a_broker_that_holds_the_only_copy_is_not_drained_but_can_leave(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("single", [(3,)], size=100)
        assert await refusal(world, 3, DRAINING) == (
            "broker 3 cannot be drained: single-0: its only voter is on broker 3"
        )
        found = await world.states.set(NodeId(3), DECOMMISSIONING, dry_run=True)
        assert (found.leaders, found.replicas, found.size_bytes) == (1, 1, 100)


async def test_a_dead_broker_that_holds_the_only_copy_cannot_leave(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("single", [(3,)])
        world.set_alive(3, False)
        message = await refusal(world, 3, DECOMMISSIONING)
        assert message.startswith("broker 3 cannot be decommissioned: single-0: ")
        assert "no leader" in message


async def test_a_drain_costs_no_majority_of_the_metadata(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        world.set_alive(3, False)
        assert "__cluster-0: without broker 2 it has 1 of 3 voters" in await refusal(
            world, 2, DRAINING
        )


async def test_a_drain_waits_a_little_for_a_broker_that_has_just_been_restarted(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [(1, 2, 3)])
        world.liveness.alive.discard(2)
        world.tell_all()  # nobody has heard how far it is
        world.liveness.alive.add(2)
        async with trio.open_nursery() as tasks:
            tasks.start_soon(world.states.set, NodeId(3), DRAINING)
            await trio.sleep(2)
            assert world.state.wishes.broker_state(NodeId(3)) is BrokerState.ACTIVE
            world.tell_all()
        assert world.state.wishes.broker_state(NodeId(3)) is DRAINING


async def test_what_is_refused_can_be_forced(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("single", [(3,)])
        found = await world.states.set(NodeId(3), DRAINING, force=True)
        assert len(found.refusals) == 1
        assert world.state.wishes.broker_state(NodeId(3)) is DRAINING
        (why,) = (await described(world))[3].stuck
        assert why.startswith("single-0: stays on broker 3, draining: no other voter is in sync")


async def test_a_dry_run_changes_nothing(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [EVERYWHERE] * 2)
        before = world.state.version
        found = await world.states.set(NodeId(1), DRAINING, dry_run=True)
        assert (found.leaders, world.state.version) == (2, before)


async def test_there_is_no_state_of_a_broker_that_is_not_there(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        with pytest.raises(RequestError) as error:
            await world.states.set(NodeId(9), DRAINING)
        assert error.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


async def test_a_broker_that_leaves_gives_its_replicas_away_and_is_forgotten(
    autojump_clock: MockClock,
) -> None:
    async with open_world(1, 2, 3, 4) as world:
        await world.add_topic("t", [(4, 1, 2), (3, 4, 1), (1, 2, 3)])
        async with balancing(world):
            await world.states.set(NodeId(4), DECOMMISSIONING)
            assert (await described(world))[4].state == "decommissioning"
            await trio.sleep(20)
            topic = world.state.topic("t")
            assert topic is not None
            assert all(4 not in replicas for replicas in topic.assignments)
            assert (await described(world))[4].state == "decommissioned"
            assert 4 in world.state.brokers, "as long as it runs"
            world.set_alive(4, False)
            await trio.sleep(20)
            assert 4 not in world.state.brokers


async def test_a_broker_that_leaves_is_not_done_while_the_metadata_need_its_vote(
    autojump_clock: MockClock,
) -> None:
    """Whoever waits is told to stop it then, and may throw its disk away."""
    async with open_world(1, 2, 3, 4) as world:
        world.liveness.metadata_voters = EVERYWHERE
        world.set_alive(3, False)
        await world.states.set(NodeId(2), DECOMMISSIONING)
        leaving = (await described(world))[2]
        assert (leaving.replicas, leaving.state) == (0, "decommissioning")
        (why,) = leaving.stuck
        assert why == (
            "__cluster-0: without broker 2 it has 1 of 3 voters in sync on brokers to count on "
            "(1), and needs 2"
        )
        world.liveness.metadata_voters = (1, 2, 4)
        assert (await described(world))[2].state == "decommissioned"


async def test_of_two_that_leave_and_have_to_wait_for_each_other_one_goes_first(
    autojump_clock: MockClock,
) -> None:
    async with open_world(*EVERYWHERE) as world:
        for node in (2, 3):
            await world.states.set(NodeId(node), DECOMMISSIONING)
        found = await described(world)
        assert (found[2].state, found[3].state) == ("decommissioned", "decommissioning")


async def test_replicas_on_their_way_to_a_broker_that_dies_go_to_another(
    autojump_clock: MockClock,
) -> None:
    async with open_world(1, 2, 3, 4, 5) as world:
        await world.add_topic("other", [(4, 1, 2)] * 3)
        await world.add_topic("t", [(3, 1, 2)])
        world.failing_copies.add(5)
        async with balancing(world):
            await world.states.set(NodeId(3), DECOMMISSIONING)
            await trio.sleep(10)
            assert wanted(world) == {1, 2, 5}
            world.set_alive(5, False)
            await trio.sleep(40)
            assert wanted(world) == {1, 2, 5}, "it may come back"
            await trio.sleep(60)
            assert not wanted(world)
            topic = world.state.topic("t")
            assert topic is not None
            assert {*topic.assignments[0]} == {1, 2, 4}


def wanted(world: World) -> set[NodeId]:
    """Where the partition of `t` is to be, if it is to move."""
    topic = world.state.topic("t")
    assert topic is not None
    return {*topic.wanted.get(0, ())}


async def test_a_broker_that_holds_something_is_not_forgotten(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [EVERYWHERE])
        async with balancing(world):
            await world.states.set(NodeId(3), DECOMMISSIONING, force=True)
            world.set_alive(3, False)
            await trio.sleep(30)
            assert 3 in world.state.brokers
            assert (await described(world))[3].stuck == [
                "t-0: it has 3 replicas, and without broker 3 there are 2 brokers to hold them"
            ]
            topic = world.state.topic("t")
            assert topic is not None
            await world.cluster.propose(
                lambda state: DeleteTopic(at_version=state.version, id=topic.id)
            )
            await trio.sleep(30)
            assert 3 not in world.state.brokers


async def test_who_was_to_leave_and_stays_gets_back_what_is_on_the_way(
    autojump_clock: MockClock,
) -> None:
    async with open_world(1, 2, 3, 4) as world:
        await world.add_topic("t", [(4, 1, 2)])
        await world.states.set(NodeId(4), DECOMMISSIONING)
        # No replicas move by themselves here: the wish is made, and taken back.
        async with trio.open_nursery() as tasks:
            tasks.start_soon(world.balancer.run)
            await trio.sleep(0.01)
            tasks.cancel_scope.cancel()
        topic = world.state.topic("t")
        assert topic is not None
        await world.states.set(NodeId(4), BrokerState.ACTIVE)
        await trio.sleep(5)
        topic = world.state.topic("t")
        assert topic is not None
        assert not topic.wanted


async def test_how_long_a_drain_takes_is_told_by_its_speed(autojump_clock: MockClock) -> None:
    async with open_world(*EVERYWHERE) as world:
        await world.add_topic("t", [EVERYWHERE] * 60)
        async with balancing(world):
            await world.states.set(NodeId(1), DRAINING)
            await trio.sleep(0.5)
            on_the_way = (await described(world))[1]
            assert on_the_way.state == "draining"
            assert 0 < on_the_way.leaders < 60
            assert on_the_way.left_ms is not None
            assert 100 < on_the_way.left_ms < 10_000
            await trio.sleep(20)
            done = (await described(world))[1]
            assert (done.leaders, done.replicas, done.left_ms) == (0, 60, 0)
