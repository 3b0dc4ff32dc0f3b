"""Moves that an operator asks for, and who leads when all else fails."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import TypeVar

import pytest

from tests.partitions.balancing.clusters import broker, brokers, group, snapshot
from tidemark.partitions.balancing.by_hand import (
    DrainPlan,
    plan_drain,
    plan_preferred,
    why_not_move,
    why_not_moves,
)
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group
from tidemark.protocol.types import NodeId, TopicPartition

T = TypeVar("T")

EVERYWHERE = (1, 2, 3)
SETTINGS = Settings()
ORDERS = TopicPartition("orders", 0)


def why_not(members: list[Broker], one: Group, target: int) -> str:
    no = why_not_move(snapshot(members, [one]), SETTINGS, ORDERS, NodeId(target))
    return "" if no is None else no.sentence


# One leader


@pytest.mark.parametrize(
    ("two", "orders", "sentence"),
    [
        (broker(2), group("orders-0", EVERYWHERE), ""),
        (broker(2, up_ms=5), group("orders-0", EVERYWHERE, moved_ago_ms=5), ""),
        (broker(2, is_alive=False), group("orders-0", EVERYWHERE), "broker 2 is not alive"),
        (
            broker(2, state=BrokerState.DRAINED),
            group("orders-0", EVERYWHERE),
            "broker 2 is drained",
        ),
        (
            broker(2),
            group("orders-0", EVERYWHERE, voters=(1, 3), learners=(2,)),
            "on broker 2 it is a learner, which does not vote",
        ),
        (broker(2), group("orders-0", (1, 3)), "broker 2 is none of its voters"),
        (
            broker(2),
            group("orders-0", EVERYWHERE, lags={2: 70_000}),
            "broker 2 is 70000 records behind, and 10000 are allowed",
        ),
        (broker(2), group("orders-0", EVERYWHERE, 2), "broker 2 leads it already"),
        (
            broker(2),
            group("orders-0", EVERYWHERE, moving_to=3),
            "its leader is on its way to broker 3",
        ),
        (
            broker(2),
            group("orders-0", EVERYWHERE, is_changing=True),
            "its replicas are being changed",
        ),
    ],
    ids=[
        "well",
        "just started and moved",
        "dead",
        "drained",
        "learner",
        "no replica",
        "behind",
        "leads it",
        "moving",
        "changing",
    ],
)
def test_a_move_that_cannot_be_says_why(two: Broker, orders: Group, sentence: str) -> None:
    assert why_not([broker(1), two, broker(3)], orders, 2) == sentence


def test_a_move_to_a_broker_or_of_a_partition_that_is_not_there_is_refused() -> None:
    assert why_not(brokers(3), group("orders-0", EVERYWHERE), 7) == (
        "there is no broker 7, only 1, 2, 3"
    )
    assert why_not(brokers(3), group("views-0", EVERYWHERE), 2) == "there is no partition orders-0"


# Preferred leaders


def test_leaders_come_home_in_spite_of_evenness_and_cool_down() -> None:
    groups = [group(f"t-{at}", EVERYWHERE, 1 + at, moved_ago_ms=1) for at in range(3)]
    made = plan_preferred(snapshot(brokers(3), groups), SETTINGS)
    assert [(str(m.partition), m.source, m.target) for m in made.moves] == [
        ("t-1", 2, 1),
        ("t-2", 3, 1),
    ]
    assert made.moves[0].reason == "broker 1 is its preferred leader"
    assert [(str(r.partition), r.reason) for r in made.refusals] == [("t-0", Reason.NOT_NEEDED)]


def test_where_the_preferred_leader_cannot_lead_the_next_one_does() -> None:
    members = [broker(1, is_alive=False), broker(2), broker(3)]
    groups = [group("t-0", EVERYWHERE, 3), group("u-0", EVERYWHERE, 2)]
    made = plan_preferred(snapshot(members, groups), SETTINGS)
    (move,) = made.moves
    assert (str(move.partition), move.target) == ("t-0", 2)
    assert move.reason == "broker 2 is the first of its replicas that can lead"
    assert {r.sentence for r in made.refusals} == {"broker 1 is not alive"}


def test_only_the_partitions_that_are_named_come_home() -> None:
    groups = [group("t-0", EVERYWHERE, 2), group("t-1", EVERYWHERE, 2)]
    asked = [TopicPartition("t", 1), TopicPartition("t", 9)]
    made = plan_preferred(snapshot(brokers(3), groups), SETTINGS, asked)
    assert [str(move.partition) for move in made.moves] == ["t-1"]
    assert [r.sentence for r in made.refusals] == ["there is no partition t-9"]


class LookedThrough(list[T]):
    """Counts how often somebody goes through it from its first to its last."""

    times = 0

    def __iter__(self) -> Iterator[T]:
        self.times += 1
        return super().__iter__()

    def __contains__(self, each: object) -> bool:
        self.times += 1
        return super().__contains__(each)


def test_thousands_of_wishes_are_not_looked_for_one_by_one() -> None:
    groups = LookedThrough(group(f"t-{at}", EVERYWHERE, 2) for at in range(100))
    asked = LookedThrough(each.partition for each in groups)
    found = replace(snapshot(brokers(3), ()), groups=groups)
    groups.times = 0
    why_not = why_not_moves(found, SETTINGS)
    assert not any(why_not(partition, NodeId(1)) for partition in asked)
    assert groups.times == 1
    asked.times = 0
    made = plan_preferred(found, SETTINGS, asked)
    assert len(made.moves) == len(groups)
    assert asked.times <= 2


def test_a_group_in_motion_or_without_a_leader_does_not_come_home() -> None:
    groups = [
        group("t-0", EVERYWHERE, 2, moving_to=3),
        group("t-1", EVERYWHERE, 2)._replace(leader=None),
    ]
    made = plan_preferred(snapshot(brokers(3), groups), SETTINGS)
    assert not made.moves
    assert [r.reason for r in made.refusals] == [Reason.IN_MOTION, Reason.NO_LEADER]


# Draining


def drained(members: list[Broker], groups: list[Group], node: int) -> DrainPlan:
    return plan_drain(snapshot(members, groups), SETTINGS, NodeId(node), Random(1))


def test_a_drained_brokers_leaders_are_shared_out() -> None:
    groups = [group(f"t-{at}", EVERYWHERE, moved_ago_ms=1) for at in range(20)]
    made = drained(brokers(3), [*groups, group("u-0", EVERYWHERE, 2)], 1)
    assert made.is_safe
    assert not made.stuck
    assert {move.source for move in made.moves} == {1}
    to = [move.target for move in made.moves]
    assert {to.count(NodeId(2)), to.count(NodeId(3))} == {10}
    assert made.moves[0].reason == "broker 1 is draining"


def test_draining_moves_nobody_elses_leaders() -> None:
    members = [broker(1), broker(2, state=BrokerState.DRAINED), broker(3)]
    groups = [group("t-0", EVERYWHERE), group("u-0", EVERYWHERE, 2)]
    assert [str(move.partition) for move in drained(members, groups, 1).moves] == ["t-0"]


def test_draining_what_a_majority_needs_is_refused() -> None:
    groups = [
        group("t-0", EVERYWHERE, lags={2: 0}),
        group("t-1", EVERYWHERE, lags={2: 0}),
        group("t-2", EVERYWHERE),
    ]
    made = drained(brokers(3), groups, 1)
    assert not made.is_safe
    (refusal,) = made.refusals
    assert (refusal.reason, refusal.groups) == (Reason.QUORUM, 2)
    assert refusal.sentence == (
        "without broker 1 it has 1 of 3 voters in sync on brokers to count on (2), and needs 2"
    )


def test_draining_the_only_replica_is_refused() -> None:
    made = drained(brokers(2), [group("t-0", (1,))], 1)
    assert [r.sentence for r in made.refusals] == ["its only voter is on broker 1"]
    assert [r.reason for r in made.stuck] == [Reason.OUT_OF_SYNC], "and it would stay, too"


@pytest.mark.parametrize(
    "second",
    [broker(2, state=BrokerState.DRAINED), broker(2, is_alive=False)],
    ids=["drained", "dead"],
)
def test_draining_two_of_three_is_refused(second: Broker) -> None:
    made = drained([broker(1), second, broker(3)], [group("t-0", EVERYWHERE)], 1)
    assert [r.reason for r in made.refusals] == [Reason.QUORUM]


def test_draining_one_of_two_is_refused() -> None:
    made = drained(brokers(2), [group("t-0", (1, 2))], 1)
    assert [r.reason for r in made.refusals] == [Reason.QUORUM]


def test_draining_a_broker_that_is_not_there_is_refused() -> None:
    assert [r.sentence for r in drained(brokers(2), [], 5).refusals] == ["there is no broker 5"]


@pytest.mark.parametrize(
    "others",
    [[], [broker(2, state=BrokerState.DRAINED)], [broker(2, is_alive=False)]],
    ids=["alone", "drained", "dead"],
)
def test_draining_the_last_that_takes_leaders_is_refused(others: list[Broker]) -> None:
    made = drained([broker(1), *others], [], 1)
    assert [r.reason for r in made.refusals] == [Reason.TOO_FEW_BROKERS]
    assert made.refusals[0].sentence == (
        "no broker but 1 is alive and takes leaders: nobody could take over"
    )


def test_a_drain_does_not_wait_for_brokers_that_have_just_started() -> None:
    made = drained([broker(1), broker(2, up_ms=1)], [group("t-0", (1, 2))], 1)
    assert [(move.target, str(move.partition)) for move in made.moves] == [(2, "t-0")]
