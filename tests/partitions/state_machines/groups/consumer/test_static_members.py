"""Members with an instance id, in the consumer protocol: their places outlast them."""

from dataclasses import replace

from tests.partitions.state_machines.groups.consumer.clients import (
    SESSION_MS,
    Member,
    group_of,
    parts,
    settle,
)
from tests.partitions.state_machines.groups.driver import Coordinator
from tidemark.protocol.errors import ErrorCode

NONE = ErrorCode.NONE


def test_a_static_member_that_comes_back_has_its_part_without_a_rebalance(
    groups: Coordinator,
) -> None:
    first, second = Member(groups, "a", instance_id="one"), Member(groups, "b", instance_id="two")
    settle(first, second)
    had, epoch = first.owned, group_of(groups).epoch
    assert first.leave(for_a_while=True) is NONE
    groups.advance(1_000)
    second.beat()
    again = Member(groups, "a2", instance_id="one")
    assert again.beat() is NONE
    assert (again.owned, group_of(groups).epoch) == (had, epoch)
    assert first.take(first.coordinator.ask(replace(first.full, epoch=epoch))) is (
        ErrorCode.FENCED_INSTANCE_ID
    )


def test_an_instance_that_has_not_left_is_not_released(groups: Coordinator) -> None:
    Member(groups, "a", instance_id="one").beat()
    other = Member(groups, "b", instance_id="one")
    assert other.beat() is ErrorCode.UNRELEASED_INSTANCE_ID
    groups.advance(SESSION_MS)
    assert other.beat() is NONE


def test_a_static_member_that_stays_away_loses_its_part(groups: Coordinator) -> None:
    first, second = Member(groups, "a", instance_id="one"), Member(groups, "b")
    settle(first, second)
    first.leave(for_a_while=True)
    second.beat()
    assert len(second.owned) == 2
    groups.advance(SESSION_MS - 1)
    second.beat()
    groups.advance(1)
    second.beat()
    assert len(second.owned) == 4


def test_who_comes_back_to_read_something_else_causes_a_rebalance(groups: Coordinator) -> None:
    first = Member(groups, "a", instance_id="one")
    first.beat()
    first.leave(for_a_while=True)
    again = Member(groups, "a2", instance_id="one", reads=("clicks",))
    again.beat()
    again.beat()
    assert again.owned == parts("clicks", 0, 1)


def test_a_member_that_joins_as_another_instance_leaves_the_former_to_others(
    groups: Coordinator,
) -> None:
    member = Member(groups, "a", instance_id="one")
    member.beat()
    renamed = Member(groups, "a", instance_id="two")
    assert renamed.beat() is NONE
    other = Member(groups, "b", instance_id="one")
    assert other.beat() is NONE
    renamed.leave()
    other.leave()
    assert Member(groups, "c", instance_id="one").beat() is NONE
    assert group_of(groups).static_ids == {"one": "c"}


# Topics
