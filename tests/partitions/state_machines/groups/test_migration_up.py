"""A group of the classic protocol becomes one of the consumer protocol with members in it."""

import pytest

from tests.partitions.state_machines.groups.consumer.classic_clients import (
    COOPERATIVE,
    ClassicMember,
)
from tests.partitions.state_machines.groups.consumer.clients import (
    Member,
    topics,
)
from tests.partitions.state_machines.groups.driver import (
    GROUP,
    Coordinator,
)
from tests.partitions.state_machines.groups.migration_steps import (
    ALL,
    BOTH,
    NONE,
    commits,
    kind,
    shared,
)
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode


@pytest.fixture
def groups() -> Coordinator:
    return Coordinator(topics=topics(orders=4, clicks=2))


@BOTH
def test_a_classic_group_goes_on_in_a_group_of_the_consumer_protocol(
    groups: Coordinator, assignor: str
) -> None:
    one, two = (ClassicMember(groups, name, assignor=assignor) for name in ("one", "two"))
    shared(one, two)
    generation = one.generation
    three = Member(groups, "three")
    assert three.beat() is NONE
    assert three.owned == frozenset(), "what the others read is theirs until they let go"
    assert three.epoch == generation + 1
    assert (kind(groups), groups.state()) == (("consumer", "Reconciling"), GroupState.DEAD)
    assert commits(groups, one), "what it has read it may commit as before"
    shared(one, two, three)
    assert kind(groups) == ("consumer", "Stable")
    assert one.generation == two.generation == three.epoch
    described = groups.shard.describe_consumer(GROUP)
    assert described is not None
    assert [(each.member.id, each.member.is_classic) for each in described.members] == [
        ("one", True),
        ("two", True),
        ("three", False),
    ]
    assert all(commits(groups, each) for each in (one, two, three))


@BOTH
def test_nobody_gives_up_more_than_it_must(groups: Coordinator, assignor: str) -> None:
    one, two = (ClassicMember(groups, name, assignor=assignor) for name in ("one", "two"))
    shared(one, two)
    had = [one.owned, two.owned]
    three = Member(groups, "three")
    shared(one, two, three)
    assert one.owned <= had[0]
    assert two.owned <= had[1]


def test_a_partition_is_given_once_its_classic_reader_has_joined_without_it(
    groups: Coordinator,
) -> None:
    one, two = ClassicMember(groups, "one", assignor=COOPERATIVE), Member(groups, "two")
    shared(one)
    two.beat()
    assert one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    one.turn()  # It joins with all it owns, and is told what it may keep.
    assert len(one.owned) == 2
    two.beat()
    assert two.owned == frozenset(), "it was told, and has not said yet that it has let go"
    one.turn()
    two.beat()
    assert two.owned == ALL - one.owned


def test_what_a_cooperative_member_is_letting_go_of_is_held_until_it_joins_again(
    groups: Coordinator,
) -> None:
    one, two = (ClassicMember(groups, name, assignor=COOPERATIVE) for name in ("one", "two"))
    shared(one)
    groups.holds_writes = True
    for _ in range(2):  # `two` joins, `one` joins again with all it owns, and assigns.
        two.turn()
        one.turn()
    had = one.owned
    groups.store_all()  # The assignment is durable; `one` has not taken its own in yet.
    groups.holds_writes = False
    three = Member(groups, "three")
    three.beat()
    assert three.owned == frozenset()
    assert one.owned == had == ALL
    shared(one, two, three)


@BOTH
def test_a_rebalance_under_way_is_left_for_the_new_group(
    groups: Coordinator, assignor: str
) -> None:
    one, two = (ClassicMember(groups, name, assignor=assignor) for name in ("one", "two"))
    shared(one)
    two.send_join()
    three = Member(groups, "three")
    three.beat()
    two.take()
    assert two.error is ErrorCode.REBALANCE_IN_PROGRESS
    shared(one, two, three)


def test_an_assignment_that_is_stored_too_late_is_nobodys() -> None:
    groups = Coordinator(topics=topics(orders=4), holds_writes=True)
    one, three = ClassicMember(groups, "one"), Member(groups, "three")
    for _ in range(2):
        one.turn()
    assert len(groups.held) == 1, "the leader's assignment"
    joined = three.send()
    groups.store_all()
    one.take()
    assert one.owned == frozenset()
    assert one.error is ErrorCode.REBALANCE_IN_PROGRESS
    three.take(joined)
    groups.holds_writes = False
    shared(one, three)


def test_a_group_of_others_than_consumers_stays_as_it_is(groups: Coordinator) -> None:
    groups.join(name="worker", protocol_type="connect")
    member = Member(groups, "one")
    assert member.beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert "one of connect" in (member.message or "")
    assert groups.members == ["worker"]


@pytest.mark.parametrize(
    "settings",
    [
        GroupSettings(initial_rebalance_delay_ms=0, may_upgrade=False),
        GroupSettings(initial_rebalance_delay_ms=0, consumer_group_members_max=1),
    ],
)
def test_a_group_that_may_not_change_goes_on_as_if_nobody_had_asked(
    settings: GroupSettings,
) -> None:
    groups = Coordinator(settings, topics=topics(orders=4))
    one = ClassicMember(groups, "one")
    shared(one)
    member = Member(groups, "two")
    assert member.beat() is not NONE
    assert "classic protocol" in (member.message or "") or "1 members" in (member.message or "")
    assert kind(groups) == ("classic", "Stable")
    assert one.beat() is NONE
    assert commits(groups, one)
