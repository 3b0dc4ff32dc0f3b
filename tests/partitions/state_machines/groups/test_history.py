"""Why a group rebalanced, in words."""

import pytest

from tests.partitions.state_machines.groups.driver import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    Coordinator,
)
from tidemark.partitions.state_machines.groups.history import (
    REASONS_KEPT,
    REBALANCES_KEPT,
    History,
    Rebalance,
)
from tidemark.partitions.state_machines.groups.requests import Leaver

MEMBER = "member {} of client client at 127.0.0.1"


@pytest.fixture
def groups() -> Coordinator:
    return Coordinator()


def last(groups: Coordinator) -> Rebalance:
    rebalances = groups.shard.rebalances(GROUP)
    assert rebalances
    return rebalances[-1]


def test_members_that_join(groups: Coordinator) -> None:
    generation = groups.form("a")
    assert last(groups).generation == generation
    assert last(groups).reasons == (f"{MEMBER.format('a')} joined",)


def test_a_member_that_leaves_and_says_why(groups: Coordinator) -> None:
    groups.form("a", "b")
    groups.leave(Leaver(member_id="b", reason="the consumer is being closed"))
    assert last(groups).reasons == (f"{MEMBER.format('b')} left: the consumer is being closed",)


def test_a_member_that_falls_silent(groups: Coordinator) -> None:
    generation = groups.form("a", "b")
    groups.advance(SESSION_MS - 1)
    groups.heartbeat("a", generation)
    groups.advance(1)
    assert last(groups).reasons == (f"{MEMBER.format('b')} was not heard for 10 s",)


def test_members_that_do_not_join_again_in_time(groups: Coordinator) -> None:
    generation = groups.form("a", "b")
    groups.join(name="c")
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        groups.advance(SESSION_MS // 2)
        groups.heartbeat("a", generation)
        groups.heartbeat("b", generation)
    first, *others = last(groups).reasons
    assert first == f"{MEMBER.format('c')} joined"
    assert f"{MEMBER.format('a')} did not join again in time" in others


def test_a_member_that_never_asks_for_its_assignment(groups: Coordinator) -> None:
    groups.form("a")
    groups.join(name="b")
    generation = groups.joined(groups.join("a")).generation
    groups.sync("a", generation)
    for _ in range(REBALANCE_MS // SESSION_MS * 2):
        groups.advance(SESSION_MS // 2)
        groups.heartbeat("a", generation)
        groups.heartbeat("b", generation)
    assert last(groups).reasons[0] == (
        f"{MEMBER.format('b')} did not ask for its assignment in time"
    )


def test_a_leader_that_joins_again(groups: Coordinator) -> None:
    groups.form("a")
    groups.join("a")
    assert last(groups).reasons == (f"{MEMBER.format('a')} joined again, as before",)


def test_of_many_reasons_some_are_kept_and_the_others_counted() -> None:
    history = History()
    for number in range(REASONS_KEPT + 3):
        history.note(1, 5, str(number))
    (only,) = history.rebalances
    assert (len(only.reasons), only.more_reasons, only.at_ms) == (REASONS_KEPT, 3, 5)
    for generation in range(2, 2 * REBALANCES_KEPT):
        history.note(generation, 6, "again")
    assert len(history.rebalances) == REBALANCES_KEPT
    assert history.rebalances[-1].generation == 2 * REBALANCES_KEPT - 1
