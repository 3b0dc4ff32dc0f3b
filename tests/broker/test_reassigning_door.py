"""Wishes for other replicas: which are refused, and with which words."""

from __future__ import annotations

import pytest

from tests.broker.one_state import OneState
from tests.partitions.state_machines.clusters import on
from tests.partitions.state_machines.wishes import cluster, move, set_state, wish
from tidemark.broker import steps
from tidemark.broker.reassigning.door import Asked, Door, change_of
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerState,
    TopicMetadata,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId


def _orders(state: ClusterState) -> TopicMetadata:
    topic = state.topic("orders")
    assert topic is not None
    return topic


def refusal(
    state: ClusterState, replicas: Assignment | None, *dead: int, may_change_factor: bool = True
) -> RequestError:
    with pytest.raises(RequestError) as refused:
        change_of(
            state,
            Asked("orders", 0, replicas),
            lambda node: node not in dead,
            lambda _: False,
            may_change_factor=may_change_factor,
        )
    return refused.value


@pytest.mark.parametrize(
    ("replicas", "dead", "sentence"),
    [
        (on(), (), "partition 0 needs at least one replica"),
        (on(1, 1), (), "name each broker once"),
        (on(1, 9), (), "there is no broker 9"),
        (on(1, 4), (4,), "broker 4 cannot be reached: start it, or choose another one"),
        (on(1, 2), (2,), "on brokers 1, 2, of which 1 can be reached: without a majority"),
        (on(1, 2, 4), (2, 3), "is now on brokers 1, 2, 3, of which 1 can be reached"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    replicas: Assignment, dead: tuple[int, ...], sentence: str
) -> None:
    error = refusal(cluster(), replicas, *dead)
    assert error.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert sentence in (error.message or "")


def test_a_dead_broker_may_be_left_and_may_be_kept() -> None:
    for replicas in (on(1, 2, 4), on(1, 3, 4), on(1, 2)):
        change = change_of(
            cluster(), Asked("orders", 0, replicas), lambda node: node != 3, lambda _: False
        )
        assert change.replicas == replicas


def test_nothing_is_moved_to_a_broker_that_goes() -> None:
    state = cluster()
    state.apply(set_state(state, 4, BrokerState.DECOMMISSIONING))
    assert "broker 4 is being decommissioned" in (refusal(state, on(1, 4)).message or "")


def test_nothing_is_moved_to_a_full_disk_and_what_is_there_may_stay() -> None:
    full = {1, 4}.__contains__
    with pytest.raises(RequestError, match="the disk of broker 4 is full: make room on it"):
        change_of(cluster(), Asked("orders", 0, on(1, 4)), lambda _: True, full)
    stays = Asked("orders", 0, on(1, 2))
    assert change_of(cluster(), stays, lambda _: True, full).replicas == stays.replicas


def test_the_number_of_replicas_stays_if_that_is_asked_for() -> None:
    error = refusal(cluster(), on(1, 2), may_change_factor=False)
    assert error.code is ErrorCode.INVALID_REPLICATION_FACTOR


@pytest.mark.parametrize("at_once", [1, 2, 1000])
async def test_each_partition_is_taken_or_refused_by_itself(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", at_once)
    state = cluster()
    state.apply(wish(state, move(4, partition=1)))
    answers = await Door(OneState(state), lambda _: True, lambda _: False).take(
        [
            Asked("orders", 0, on(1, 2, 4)),
            Asked("orders", 1, on(1, 2, 4)),
            Asked("orders", 2, on(1)),
            Asked("none", 0, on(1)),
            Asked("orders", 1, None),
        ]
    )
    assert [answer.code if answer else None for answer in answers] == [
        None,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_REQUEST,
    ]
    (topic,) = state.topics.values()
    assert topic.wanted == {0: on(1, 2, 4)}
    (answer,) = await Door(OneState(state), lambda _: True, lambda _: False).take(
        [Asked("orders", 1, None)]
    )
    assert answer is not None
    assert answer.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    (answer,) = await Door(OneState(state), lambda _: True, lambda _: False).take(
        [Asked("orders", 1, on(NodeId(2)))]
    )
    assert answer is not None
    assert answer.code is ErrorCode.REASSIGNMENT_IN_PROGRESS


async def test_what_is_so_already_is_not_wished_for() -> None:
    state = cluster()
    metadata = OneState(state)
    door = Door(metadata, lambda node: node == 1, lambda _: False)
    held = _orders(state).assignments[0]
    version = state.version
    assert await door.take([Asked("orders", 0, held)]) == [None]
    assert state.version == version
    everybody = Door(metadata, lambda _: True, lambda _: False)
    other_order = tuple(reversed(held))
    assert await everybody.take([Asked("orders", 0, other_order)]) == [None]
    assert await everybody.take([Asked("orders", 0, held)]) == [None]
    assert _orders(state).wanted == {0: held}, "it takes back what is under way"


class Fails(OneState):
    """The metadata, whose leader is gone after so many changes."""

    def __init__(self, state: ClusterState, *, after: int) -> None:
        super().__init__(state)
        self.left = after

    async def propose(self, decide: object) -> Applied:
        if not self.left:
            raise RequestError(ErrorCode.NOT_CONTROLLER)
        self.left -= 1
        return await super().propose(decide)


async def test_what_was_wished_for_before_a_failure_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(steps, "_ELEMENTS_AT_ONCE", 1)
    asked = [
        Asked("orders", 0, on(1, 2, 4)),
        Asked("orders", 1, on(1, 2, 4)),
        Asked("none", 0, None),
    ]
    state = cluster()
    door = Door(Fails(state, after=1), lambda _: True, lambda _: False)
    first, *others = await door.take(asked)
    assert first is None
    assert [each and each.code for each in others] == [ErrorCode.NOT_CONTROLLER] * 2
    (topic,) = state.topics.values()
    assert topic.wanted.keys() == {0}
    with pytest.raises(RequestError):
        await Door(Fails(cluster(), after=0), lambda _: True, lambda _: False).take(asked)
