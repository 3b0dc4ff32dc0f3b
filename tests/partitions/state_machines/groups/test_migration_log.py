"""What the log says of a group that changes its protocol, whatever becomes of its writes."""

import pytest

from tests.partitions.state_machines.groups.consumer.classic_clients import (
    SESSION_MS,
    ClassicMember,
)
from tests.partitions.state_machines.groups.consumer.clients import (
    Member,
    group_of,
    topics,
)
from tests.partitions.state_machines.groups.driver import (
    GROUP,
    NO_DELAY,
    Coordinator,
)
from tests.partitions.state_machines.groups.migration_steps import (
    BOTH,
    NONE,
    commits,
    go_on,
    hold_the_change,
    kind,
    shared,
)
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode


@pytest.fixture
def groups() -> Coordinator:
    return Coordinator(topics=topics(orders=4, clicks=2))


@BOTH
def test_a_coordinator_that_takes_over_goes_on_with_members_of_both(
    groups: Coordinator, assignor: str
) -> None:
    one, two = ClassicMember(groups, "one", assignor=assignor), Member(groups, "two")
    shared(one)
    two.beat()
    groups.restart()
    two.beat()
    assert two.owned == frozenset(), "what the classic member has is held in the log too"
    shared(one, two)
    written = len(groups.log)
    groups.restart()
    shared(one, two)
    assert len(groups.log) == written, "they go on where they were"
    groups.advance(SESSION_MS)
    assert "one" not in group_of(groups).members, "with the session that it chose"


def test_if_the_coordinator_dies_before_the_change_is_durable_nothing_has_changed(
    groups: Coordinator,
) -> None:
    one, two = ClassicMember(groups, "one"), Member(groups, "two")
    shared(one)
    groups.holds_writes = True
    joined = two.send()
    assert groups.waits(joined)
    assert one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    groups.restart()
    groups.holds_writes = False
    assert kind(groups) == ("classic", "Stable")
    assert one.beat() is NONE
    shared(one, two)


@pytest.mark.parametrize("is_stored", [True, False])
def test_if_the_coordinator_dies_on_the_way_back_no_member_loses_its_part(
    groups: Coordinator, is_stored: bool
) -> None:
    one, two = Member(groups, "one"), ClassicMember(groups, "two")
    shared(one, two)
    one.leave()
    hold_the_change(groups, two)
    two.take()
    if is_stored:
        groups.store_one()
    groups.take(groups.shard.resign(groups.now))
    groups.restart()
    groups.holds_writes = False
    assert kind(groups) == ("classic" if is_stored else "consumer", "Stable")
    assert commits(groups, two, is_old=False)
    shared(two)


def test_a_change_that_could_not_be_written_is_written_by_the_next(groups: Coordinator) -> None:
    one, two = Member(groups, "one"), ClassicMember(groups, "two")
    shared(one, two)
    one.leave()
    hold_the_change(groups, two)
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    groups.holds_writes = False
    assert kind(groups) == ("consumer", "Stable")
    two.send_join()
    go_on(two)
    # Found by its own session's alarm, if nobody asks for anything.
    groups.advance(SESSION_MS // 2)
    go_on(two)
    groups.advance(SESSION_MS // 2)
    go_on(two)
    assert kind(groups) == ("classic", "Stable")
    groups.restart()
    assert isinstance(groups.shard._groups[GROUP], ClassicGroup)
    shared(two)


def test_a_group_that_is_written_as_a_classic_one_is_within_its_limit() -> None:
    settings = GroupSettings(initial_rebalance_delay_ms=0, group_members_max=1)
    groups = Coordinator(settings, topics=topics(orders=4))
    one, two, three = (
        Member(groups, "one"),
        ClassicMember(groups, "two"),
        ClassicMember(groups, "three"),
    )
    shared(one, two, three)
    one.leave()
    shared(two, three)
    assert kind(groups) == ("consumer", "Stable")
    assert NO_DELAY.may_downgrade


def test_who_waits_in_a_group_that_becomes_another_is_answered(groups: Coordinator) -> None:
    groups.holds_writes = True
    one = Member(groups, "one")
    joined = one.send()
    groups.advance(45_000)  # Its session is over before its joining is durable.
    ClassicMember(groups, "two").turn()
    assert groups.answers[joined].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    groups.store_all()
    groups.restart()
    assert groups.shard.describe_consumer(GROUP) is None


def left_by_one(groups: Coordinator) -> tuple[ClassicMember, Member]:
    """The two who stay where one leaves a group of three. That cannot be written; that the group is
    a classic one since is still to be."""
    one, two, three = Member(groups, "one"), ClassicMember(groups, "two"), Member(groups, "three")
    one.beat()
    groups.holds_writes = True
    groups.ask(one.leaving())
    two.send_join()
    assert len(groups.held) == 2, "that it has left, and that the group is a classic one"
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return two, three


def test_members_of_a_group_whose_tombstones_were_lost_do_not_come_back(
    groups: Coordinator,
) -> None:
    two, three = left_by_one(groups)
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    groups.holds_writes = False
    shared(two)
    groups.restart()
    shared(two, three)
    groups.restart()
    assert group_of(groups).members.keys() == {"two", "three"}


def test_a_member_whose_leaving_could_not_be_written_does_not_come_back(
    groups: Coordinator,
) -> None:
    two, three = left_by_one(groups)
    groups.store_all()
    groups.holds_writes = False
    shared(two, three)
    groups.restart()
    assert group_of(groups).members.keys() == {"two", "three"}
