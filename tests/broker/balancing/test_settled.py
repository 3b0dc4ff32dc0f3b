"""An idle cluster is not thought about again and again, and nothing is missed by that."""

from random import Random

from tests.broker.balancing.world import World, open_world
from tidemark.broker.balancing.settled import Settled
from tidemark.partitions.balancing.leaders import plan
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, Group, Snapshot
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, TopicPartition

RULES = Settings()
ONE, TWO = NodeId(1), NodeId(2)
LONG_AGO = -RULES.start_grace_ms - RULES.cool_down_ms


def group(number: int, leader: NodeId, moved_ms: int | None = None) -> Group:
    return Group(
        partition=TopicPartition("tides", number),
        replicas=(ONE, TWO),
        leader=leader,
        voters=(ONE, TWO),
        lags={TWO if leader == ONE else ONE: 0},
        moved_ms=moved_ms,
    )


def snapshot(now_ms: int, *groups: Group) -> Snapshot:
    brokers = [Broker(node_id=node, up_since_ms=LONG_AGO) for node in (ONE, TWO)]
    return Snapshot(now_ms=now_ms, brokers=brokers, groups=groups)


def settled(now: Snapshot) -> Settled:
    made = plan(now, RULES, Random(1))
    assert not made.moves
    return Settled.by(made, now)


def test_a_move_that_waits_for_a_group_to_cool_is_thought_of_when_that_has() -> None:
    groups = [group(number, ONE, moved_ms=number) for number in range(4)]
    last = settled(snapshot(10, *groups))
    assert last.waits
    assert last.holds(snapshot(RULES.cool_down_ms - 1, *groups), RULES)
    assert not last.holds(snapshot(RULES.cool_down_ms + 1, *groups), RULES)


def test_where_nothing_waits_it_is_thought_again_once_all_have_cooled() -> None:
    groups = [group(number, (ONE, TWO)[number % 2], moved_ms=number * 1_000) for number in range(4)]
    last = settled(snapshot(4_000, *groups))
    assert not last.waits
    assert last.holds(snapshot(RULES.cool_down_ms + 2_500, *groups), RULES)
    assert not last.holds(snapshot(RULES.cool_down_ms + 3_500, *groups), RULES)


def test_another_leader_unsettles_at_once() -> None:
    last = settled(snapshot(0, group(0, ONE), group(1, TWO)))
    assert not last.holds(snapshot(1, group(0, TWO), group(1, TWO)), RULES)


async def test_partitions_of_which_there_is_no_news_are_not_looked_at() -> None:
    async with open_world(1, 2, 3) as world:
        await world.add_topic("tides", [(1, 2), (2, 3), (3, 1)])
        first = await world.gathering.gather()
        assert (await world.gathering.gather()).groups is first.groups
        key = PartitionKey(world.state.topics["tides"].id, 0)
        world.liveness.leaders[key] = TWO, Epoch(9)
        assert await leaders(world) == [2, 2, 3]
        world.tell_all()
        assert (await world.gathering.gather()).groups[0].lags == {ONE: 0}
        world.set_alive(3, False)
        assert await leaders(world) == [2, 2, None]


async def leaders(world: World) -> list[NodeId | None]:
    return [group.leader for group in (await world.gathering.gather()).groups]
