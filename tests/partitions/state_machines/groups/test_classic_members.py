"""Members of the classic protocol in a group of the consumer protocol, rule by rule."""

import pytest

from tests.partitions.state_machines.groups.consumer.classic_clients import (
    COOPERATIVE,
    SESSION_MS,
    ClassicMember,
)
from tests.partitions.state_machines.groups.consumer.clients import (
    Member,
    group_of,
    parts,
    topics,
)
from tests.partitions.state_machines.groups.driver import (
    GROUP,
    REBALANCE_MS,
    Coordinator,
)
from tests.partitions.state_machines.groups.migration_steps import (
    ALL,
    NONE,
    go_on,
    kind,
    reasons,
    shared,
)
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode


@pytest.fixture
def groups() -> Coordinator:
    return Coordinator(topics=topics(orders=4, clicks=2))


def test_a_commit_is_made_in_the_members_own_generation(groups: Coordinator) -> None:
    one, two = ClassicMember(groups, "one"), Member(groups, "two")
    shared(one)
    shared(one, two)
    old, ours = one.generation - 1, one.generation
    for generation, error in ((ours, NONE), (old, ErrorCode.ILLEGAL_GENERATION)):
        committed = groups.commit(5, member_id="one", generation=generation)
        assert groups.committed(committed).error is error
        assert groups.shard.check_member(GROUP, "one", generation) is error
        assert groups.heartbeat("one", generation) is error


def test_a_classic_member_joins_and_leaves_a_group_of_the_consumer_protocol(
    groups: Coordinator,
) -> None:
    one = Member(groups, "one")
    one.beat()
    asked = groups.joined(groups.join(name="two", requires_member_id=True))
    assert asked.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "its metadata cannot be read"
    two = ClassicMember(groups, "two")
    shared(one, two)
    assert two.leave() == [NONE]
    shared(one)
    assert reasons(groups)[-1] == "member two of client client at 127.0.0.1 left"


def test_one_that_was_taken_out_and_does_not_know_hears_so(groups: Coordinator) -> None:
    one, two = ClassicMember(groups, "one", assignor=COOPERATIVE), Member(groups, "two")
    shared(one)
    shared(one, two)
    groups.advance(SESSION_MS)
    two.beat()
    assert two.owned == ALL
    one.send_join()
    one.take()
    assert (one.error, one.owned) == (ErrorCode.UNKNOWN_MEMBER_ID, frozenset())
    shared(one, two)


def test_one_that_does_not_join_again_in_time_is_taken_out(groups: Coordinator) -> None:
    one, two = ClassicMember(groups, "one"), Member(groups, "two")
    shared(one)
    two.beat()
    for _ in range(REBALANCE_MS // 5_000):
        assert one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
        two.beat()
        groups.advance(5_000)
    two.beat()
    assert two.owned == ALL
    assert "did not join again, or ask for its assignment, within 60 s" in reasons(groups)[-1]


def test_one_that_does_not_ask_for_its_assignment_in_time_is_taken_out(
    groups: Coordinator,
) -> None:
    one, two = ClassicMember(groups, "one"), Member(groups, "two")
    shared(one)
    two.beat()
    one.beat()
    classic = group_of(groups).members["one"].classic
    assert classic is not None
    joined = groups.joined(groups.join("one", protocols=classic.protocols))
    for _ in range(REBALANCE_MS // 5_000):
        groups.heartbeat("one", joined.generation)
        two.beat()
        groups.advance(5_000)
    two.beat()
    assert two.owned == ALL


def test_members_hear_of_new_partitions_by_their_heartbeats(groups: Coordinator) -> None:
    settings = GroupSettings(initial_rebalance_delay_ms=0, may_downgrade=False)
    groups = Coordinator(settings, topics=topics(orders=4))
    one, two = ClassicMember(groups, "one"), Member(groups, "two")
    shared(one)
    shared(one, two)
    two.leave()
    shared(one)
    assert kind(groups) == ("consumer", "Stable"), "it may not become a classic one"
    groups.set_topics(topics(orders=5, others=3))
    assert one.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    go_on(one)
    assert one.owned == ALL | parts("orders", 4)
    assert one.beat() is NONE


@pytest.mark.parametrize("goes_up", [True, False])
def test_a_static_member_takes_its_place_by_the_other_protocol(
    groups: Coordinator, goes_up: bool
) -> None:
    other = Member(groups, "other")
    if goes_up:
        before: Member | ClassicMember = ClassicMember(groups, "before", instance_id="x")
        after: Member | ClassicMember = Member(groups, "after", instance_id="x")
    else:
        before = Member(groups, "before", instance_id="x")
        after = ClassicMember(groups, "after", instance_id="x")
    shared(before, other)
    had, epoch = before.owned, group_of(groups).epoch
    if isinstance(before, Member):
        before.leave(for_a_while=True)
    go_on(after, other)
    assert (after.owned, group_of(groups).epoch) == (had, epoch)
    before.turn() if isinstance(before, ClassicMember) else before.beat()
    assert before.error in (
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNRELEASED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
    )


def test_a_static_member_that_does_not_say_its_instance_stays_that_one(
    groups: Coordinator,
) -> None:
    Member(groups, "other").beat()
    member = ClassicMember(groups, "before", instance_id="x")
    go_on(member)
    member.instance_id = None
    member.send_join()
    assert group_of(groups).static_ids == {"x": member.id}
    assert groups.leave(member.id) == [NONE]
    assert Member(groups, "after", instance_id="x").beat() is NONE
