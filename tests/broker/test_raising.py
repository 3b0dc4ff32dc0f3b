"""The replicas of committed offsets grow with the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import trio
from trio.testing import MockClock

from tests.broker.one_state import OneState
from tests.partitions.state_machines.clusters import create, on, with_brokers
from tidemark.broker.reassigning.door import Asked, Door
from tidemark.broker.reassigning.raising import LOOK_SECONDS, SETTLE_SECONDS, keep_raised, to_raise
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    ReassignPartitions,
    SetBrokerState,
    SetObservers,
)
from tidemark.partitions.state_machines.cluster_values import BrokerState, Reassignment
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.types import NodeId


def offsets_on_broker_1(brokers: int, partitions: int) -> ClusterState:
    state = with_brokers(*range(1, brokers + 1))
    state.apply(create(state, CONSUMER_OFFSETS, partitions=partitions))
    return state


def raised(state: ClusterState, replicas: int = 3, dead: Sequence[int] = ()) -> list[Asked]:
    return to_raise(
        state,
        CONSUMER_OFFSETS,
        lambda node: node not in dead,
        replicas=replicas,
        draw=Random(1).random,
    )


def test_each_partition_gets_replicas_on_other_brokers_evenly() -> None:
    asked = raised(offsets_on_broker_1(5, 6))
    assert [each.partition for each in asked] == list(range(6))
    added = [node for each in asked for node in (each.replicas or ())[1:]]
    assert all((each.replicas or ())[0] == 1 for each in asked), "the leader stays the preferred"
    assert all(len(set(each.replicas or ())) == 3 for each in asked)
    assert {added.count(NodeId(node)) for node in (2, 3, 4, 5)} == {3}


def test_as_many_as_there_are_brokers_to_count_on() -> None:
    state = offsets_on_broker_1(4, 1)
    leave = SetBrokerState(
        at_version=state.version, node_id=NodeId(3), state=BrokerState.DECOMMISSIONING
    )
    state.apply(leave)
    (asked,) = raised(state, dead=[4])
    assert asked.replicas == on(1, 2)
    assert raised(state, dead=[2, 4]) == []
    assert raised(state, replicas=1) == []


def test_what_moves_already_and_what_observes_is_let_be() -> None:
    state = offsets_on_broker_1(3, 2)
    topic = state.topics[CONSUMER_OFFSETS]
    move = Reassignment(topic_id=topic.id, partition=0, replicas=on(2))
    state.apply(ReassignPartitions(at_version=state.version, reassignments=(move,)))
    observe = SetObservers(at_version=state.version, topic_id=topic.id, partition=1, replicas=on(3))
    state.apply(observe)
    (asked,) = raised(state)
    assert (asked.partition, asked.replicas) == (1, on(1, 2))


async def test_it_waits_until_no_broker_has_come_for_a_while(autojump_clock: MockClock) -> None:
    state = offsets_on_broker_1(3, 1)
    alive = {NodeId(1)}
    async with trio.open_nursery() as tasks:
        tasks.start_soon(
            keep_raised,
            Door(OneState(state), lambda node: node in alive, lambda _: False),
            lambda: True,
            lambda: raised(state, dead=[node for node in (1, 2, 3) if node not in alive]),
            lambda: frozenset(alive),
        )
        await trio.sleep(SETTLE_SECONDS - LOOK_SECONDS - 1)
        alive |= {NodeId(2), NodeId(3)}
        await trio.sleep(SETTLE_SECONDS)
        assert not state.topics[CONSUMER_OFFSETS].wanted
        await trio.sleep(2 * LOOK_SECONDS + 1)
        assert {*state.topics[CONSUMER_OFFSETS].wanted[0]} == {1, 2, 3}
        tasks.cancel_scope.cancel()
