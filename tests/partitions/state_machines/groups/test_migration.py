"""A group changes its protocol with members in it (KIP-848's migration), rule by rule."""

from collections.abc import Sequence

import pytest

from tests.partitions.state_machines.groups.consumer.classic_clients import (
    COOPERATIVE,
    EAGER,
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
    NO_DELAY,
    REBALANCE_MS,
    Coordinator,
)
from tidemark.partitions.state_machines.groups.group import Group
from tidemark.partitions.state_machines.groups.requests import Commit, GroupState, OffsetToCommit
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_offsets import GroupMetadataKey
from tidemark.protocol.types import TopicPartition

NONE = ErrorCode.NONE
ALL = parts("orders", 0, 1, 2, 3)
BOTH = pytest.mark.parametrize("assignor", [EAGER, COOPERATIVE])


@pytest.fixture
def groups() -> Coordinator:
    return Coordinator(topics=topics(orders=4, clicks=2))


def kind(groups: Coordinator) -> tuple[str, str]:
    (listed,) = groups.shard.list_groups()
    return listed.kind, listed.state


def go_on(*members: Member | ClassicMember, rounds: int = 12) -> None:
    """All do what clients do, until nothing changes any more; nobody ever reads another's."""
    for _ in range(rounds):
        for member in members:
            member.turn() if isinstance(member, ClassicMember) else member.beat()
            read = [partition for each in members for partition in each.owned]
            assert len(read) == len(set(read)), "one reader at a time"


def shared(*members: Member | ClassicMember) -> None:
    go_on(*members)
    assert frozenset[object]().union(*(each.owned for each in members)) == ALL
    loads = [len(each.owned) for each in members]
    assert max(loads) - min(loads) <= 1


def commits(groups: Coordinator, member: Member | ClassicMember, *, is_old: bool = True) -> bool:
    """Whether the member may commit in the epoch that it knows; `is_old`: by an old version."""
    is_classic = isinstance(member, ClassicMember)
    generation = member.generation if isinstance(member, ClassicMember) else member.epoch
    request = Commit(
        group_id=GROUP,
        generation=generation,
        member_id=member.id,
        offsets={TopicPartition("orders", 0): OffsetToCommit(offset=1)},
        knows_member_epochs=not (is_classic and is_old),
    )
    return groups.committed(groups.ask(request)).error is NONE


def hold_the_change(groups: Coordinator, *members: ClassicMember) -> None:
    """Go on until the group is on its way to the log as a classic one, and no further."""
    groups.holds_writes = True
    while not any(isinstance(key, GroupMetadataKey) for w in groups.held for key, _ in w.records):
        if groups.held:
            groups.store_one()
        for member in members if not groups.held else ():
            member.turn()


def reasons(groups: Coordinator) -> Sequence[str]:
    return [why for each in groups.shard.rebalances(GROUP) or () for why in each.reasons]


# Up


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


# Classic members in the new group


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


# Down


@BOTH
def test_the_group_is_a_classic_one_again_when_the_last_of_the_other_protocol_has_left(
    groups: Coordinator, assignor: str
) -> None:
    one, two = Member(groups, "one"), ClassicMember(groups, "two", assignor=assignor)
    three = ClassicMember(groups, "three", assignor=assignor)
    shared(one, two, three)
    epoch = group_of(groups).epoch
    one.leave()
    for _ in range(12):
        for each in (two, three):
            each.turn()
            assert each.error in (NONE, ErrorCode.REBALANCE_IN_PROGRESS), "nothing is lost"
            assert not each.owned or commits(groups, each, is_old=False), "no commit is refused"
        assert two.owned.isdisjoint(three.owned)
    assert kind(groups) == ("classic", "Stable")
    assert two.generation == three.generation > epoch
    shared(two, three)
    assert "the last member of the consumer protocol has left" in reasons(groups)
    last = dict(groups.log)
    left = [key for key, value in last.items() if value is not None]
    assert [key for key in left if not hasattr(key, "partition")] == [GroupMetadataKey(group=GROUP)]


@BOTH
def test_a_rolling_restart_goes_up_and_back(groups: Coordinator, assignor: str) -> None:
    members: list[Member | ClassicMember] = [
        ClassicMember(groups, f"old {n}", assignor=assignor) for n in range(3)
    ]
    shared(*members)
    for is_up in (True, False):
        for n in range(3):
            members[n].leave()
            name = f"{is_up} {n}"
            members[n] = (
                Member(groups, name) if is_up else ClassicMember(groups, name, assignor=assignor)
            )
            shared(*members)
        assert kind(groups) == ("consumer" if is_up else "classic", "Stable")


def test_who_comes_while_the_group_is_written_as_a_classic_one_keeps_it_as_it_is(
    groups: Coordinator,
) -> None:
    one, two = Member(groups, "one"), ClassicMember(groups, "two")
    shared(one, two)
    one.leave()
    hold_the_change(groups, two)
    three = Member(groups, "three")
    joined = three.send()
    groups.holds_writes = False
    groups.store_all()
    assert three.take(joined) is NONE
    assert kind(groups)[0] == "consumer"
    assert dict(groups.log)[GroupMetadataKey(group=GROUP)] is None
    groups.restart()
    shared(two, three)


# The log


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
    assert isinstance(groups.shard._groups[GROUP], Group)
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


def test_members_of_a_group_whose_tombstones_were_lost_do_not_come_back(
    groups: Coordinator,
) -> None:
    one, two, three = Member(groups, "one"), ClassicMember(groups, "two"), Member(groups, "three")
    one.beat()
    groups.holds_writes = True
    groups.ask(one.leaving())
    two.send_join()
    assert len(groups.held) == 2, "that it has left, and that the group is a classic one"
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    groups.holds_writes = False
    shared(two)
    groups.restart()
    shared(two, three)
    groups.restart()
    assert group_of(groups).members.keys() == {"two", "three"}
