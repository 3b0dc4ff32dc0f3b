"""The consumer protocol (KIP-848), rule by rule."""

from dataclasses import replace

import pytest

from tests.partitions.state_machines.groups.consumer.clients import (
    REBALANCE_MS,
    SESSION_MS,
    Member,
    group_of,
    parts,
    settle,
    topics,
)
from tests.partitions.state_machines.groups.driver import GROUP, NO_DELAY, Coordinator
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroupState
from tidemark.partitions.state_machines.groups.effects import LogRecord
from tidemark.partitions.state_machines.groups.requests import GroupState
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.consumer_group_records import ConsumerGroupMemberMetadataValue
from tidemark.protocol.messages.consumer_offsets import GroupMetadataKey

NONE = ErrorCode.NONE


@pytest.fixture
def groups() -> Coordinator:
    return Coordinator(topics=topics(orders=4, clicks=2))


def state(groups: Coordinator) -> ConsumerGroupState:
    described = groups.shard.describe_consumer(GROUP)
    assert described is not None
    return described.state


def reasons(groups: Coordinator) -> list[str]:
    rebalances = groups.shard.rebalances(GROUP)
    assert rebalances is not None
    return [reason for each in rebalances for reason in each.reasons]


def test_the_first_member_gets_everything_at_once(groups: Coordinator) -> None:
    member = Member(groups, "a")
    assert member.beat() is NONE
    assert (member.epoch, member.owned) == (1, parts("orders", 0, 1, 2, 3))
    assert state(groups) is ConsumerGroupState.STABLE
    assert reasons(groups) == ["member a of client client at 127.0.0.1 joined"]


def test_a_partition_is_given_only_once_its_reader_has_let_go_of_it(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    assert second.owned == frozenset()
    had = first.owned
    first.beat()  # It is told what it may keep, and has not said yet that it has let go.
    assert len(first.owned) == 2
    assert first.epoch == 1, "the group's epoch is for those who have let go"
    second.beat()
    assert second.owned == frozenset()
    first.beat()
    assert first.epoch == 2
    second.beat()
    assert second.owned == had - first.owned
    assert state(groups) is ConsumerGroupState.STABLE


def test_who_does_not_say_what_it_owns_has_not_let_go(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    for _ in range(3):
        first.beat(says_owned=False)
        second.beat()
    assert second.owned == frozenset()


def test_who_waits_for_others_comes_back_sooner(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    assert (first.interval_ms, second.interval_ms) == (5_000, 500)


def test_one_that_does_not_let_go_in_time_is_taken_out(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    first.beat(says_owned=False)
    for _ in range(3):
        groups.advance(REBALANCE_MS // 3)
        first.beat(says_owned=False)
        second.beat()
    assert first.error is ErrorCode.UNKNOWN_MEMBER_ID
    second.beat()
    assert second.owned == parts("orders", 0, 1, 2, 3)
    assert reasons(groups)[-1].endswith("did not give up its partitions within 60 s")


def test_the_time_to_let_go_begins_when_a_member_is_told(groups: Coordinator) -> None:
    """1. The log refuses what says so. 2. It takes it, late. 3. It is durable, later still."""
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    groups.holds_writes = True
    for _ in range(3):
        groups.advance(REBALANCE_MS // 2)
        refused = [first.send(full=True), second.send()]
        while groups.held:
            groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert {first.take(refused[0]), second.take(refused[1])} != {NONE}
    told = first.send(full=True)
    groups.advance(REBALANCE_MS // 2)
    groups.store_all()
    reads = first.owned
    assert first.take(told) is NONE
    assert len(first.owned) < len(reads)
    groups.holds_writes, first.owned = False, reads
    for ms in (*[REBALANCE_MS // 6] * 5, REBALANCE_MS // 6 - 1):
        groups.advance(ms)
        second.beat()
        assert first.beat() is NONE
        first.owned = reads
    groups.advance(1)
    assert first.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_falls_silent_is_taken_out(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    groups.advance(SESSION_MS - 1)
    second.beat()
    groups.advance(1)
    second.beat()
    assert second.owned == parts("orders", 0, 1, 2, 3)
    assert reasons(groups)[-1] == ("member a of client client at 127.0.0.1 was not heard for 45 s")


def test_one_that_leaves_makes_room_at_once(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first, second)
    assert first.leave() is NONE
    second.beat()
    assert second.owned == parts("orders", 0, 1, 2, 3)
    assert second.leave() is NONE
    assert state(groups) is ConsumerGroupState.EMPTY


def test_an_answer_that_was_lost_is_given_again(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    first.beat()
    first.send()  # Raises its epoch; the answer is lost.
    assert first.epoch == 1
    assert first.beat(full=True) is NONE
    assert (first.epoch, len(first.owned)) == (2, 2)


def test_another_epoch_than_the_members_own_is_fenced(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first, second)
    ahead, behind = Member(groups, "a"), Member(groups, "a")
    ahead.epoch = first.epoch + 1
    assert ahead.beat() is ErrorCode.FENCED_MEMBER_EPOCH
    behind.epoch, behind.owned = first.epoch - 1, second.owned
    assert behind.beat() is ErrorCode.FENCED_MEMBER_EPOCH, "it owns what it was not given"
    assert Member(groups, "c").beat() is NONE
    stranger = Member(groups, "d")
    stranger.epoch = 3
    assert stranger.beat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_fenced_member_joins_again_under_its_id(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first, second)
    first.epoch = 99
    assert first.beat() is ErrorCode.FENCED_MEMBER_EPOCH
    assert first.beat() is NONE
    settle(first, second)
    assert first.owned | second.owned == parts("orders", 0, 1, 2, 3)


def test_a_member_must_say_who_it_is_and_what_it_wants(groups: Coordinator) -> None:
    good = Member(groups, "a").full
    for wrong, error in [
        (replace(good, group_id=""), ErrorCode.INVALID_GROUP_ID),
        (replace(good, member_id=""), ErrorCode.INVALID_REQUEST),
        (replace(good, instance_id=""), ErrorCode.INVALID_REQUEST),
        (replace(good, epoch=-3), ErrorCode.INVALID_REQUEST),
        (replace(good, epoch=-2), ErrorCode.INVALID_REQUEST),
        (replace(good, topics=None), ErrorCode.INVALID_REQUEST),
        (replace(good, rebalance_timeout_ms=None), ErrorCode.INVALID_REQUEST),
        (replace(good, owned=parts("orders", 0)), ErrorCode.INVALID_REQUEST),
        (replace(good, assignor="best"), ErrorCode.UNSUPPORTED_ASSIGNOR),
        (replace(good, pattern="("), ErrorCode.INVALID_REGULAR_EXPRESSION),
    ]:
        waiter = groups.ask(wrong)
        assert groups.answers[waiter].error is error
    assert groups.shard.list_groups() == []
    assert groups.log == []


def test_a_group_has_a_largest_size() -> None:
    settings = replace(NO_DELAY, consumer_group_members_max=1)
    groups = Coordinator(settings, topics=topics(orders=4))
    assert Member(groups, "a").beat() is NONE
    assert Member(groups, "b").beat() is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert Member(groups, "a").beat() is NONE


def test_a_group_may_have_a_session_time_out_and_an_interval_of_its_own() -> None:
    configs = {
        "consumer.session.timeout.ms": str(2 * SESSION_MS),
        "consumer.heartbeat.interval.ms": "7000",
    }
    settings = replace(NO_DELAY, group_configs=lambda group: configs if group == GROUP else {})
    groups = Coordinator(settings, topics=topics(orders=4))
    own, other = Member(groups, "a"), Member(groups, "b", group_id="another")
    settle(own, other)
    assert (own.interval_ms, other.interval_ms) == (7_000, 5_000)
    groups.restart()
    groups.advance(SESSION_MS)
    assert other.beat() is ErrorCode.UNKNOWN_MEMBER_ID
    groups.advance(SESSION_MS - 1)
    assert own.beat() is NONE
    groups.advance(2 * SESSION_MS)
    assert own.beat() is ErrorCode.UNKNOWN_MEMBER_ID


# Static members


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


# Topics


def test_members_get_what_topics_grow_by(groups: Coordinator) -> None:
    member = Member(groups, "a")
    member.beat()
    groups.set_topics(topics(orders=6))
    member.beat()
    assert member.owned == parts("orders", *range(6))
    assert reasons(groups)[-1] == "topics have changed: orders has 6 partitions"


def test_a_topic_that_comes_later_is_read_then(groups: Coordinator) -> None:
    member = Member(groups, "a", reads=("later",))
    member.beat()
    assert member.owned == frozenset()
    groups.set_topics(topics(later=1))
    member.beat()
    assert member.owned == parts("later", 0)
    groups.set_topics(topics())
    member.beat()
    member.beat()
    assert member.owned == frozenset()


def test_topics_that_nobody_reads_cause_no_rebalance(groups: Coordinator) -> None:
    member = Member(groups, "a")
    member.beat()
    groups.set_topics(topics(orders=4, other=9))
    member.beat()
    assert group_of(groups).epoch == 1


def test_topics_are_found_by_their_names_pattern() -> None:
    groups = Coordinator(topics=topics(orders=1, orders_eu=1, clicks=1))
    member = Member(groups, "a", reads=(), pattern="orders.*")
    member.beat()
    assert member.owned == parts("orders", 0) | parts("orders_eu", 0)
    groups.set_topics(topics(orders=1, orders_us=1))
    settle(member)
    assert member.owned == parts("orders", 0) | parts("orders_us", 0)


def test_a_pattern_in_the_log_that_is_not_understood_names_no_topics(groups: Coordinator) -> None:
    member = Member(groups, "a", reads=("clicks",), pattern="orders")
    settle(member)
    for number, (key, value) in enumerate(groups.log):
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            another = replace(value, subscribed_topic_regex="(?i)orders")
            groups.log[number] = LogRecord(key, another)
    groups.restart()
    groups.set_topics(topics(orders=4, clicks=3))
    settle(member)
    assert member.owned == parts("clicks", 0, 1, 2)


def test_what_a_member_reads_may_change(groups: Coordinator) -> None:
    member = Member(groups, "a")
    member.beat()
    waiter = groups.ask(replace(member.request(), topics=frozenset({"clicks"})))
    member.take(waiter)
    settle(member)
    assert member.owned == parts("clicks", 0, 1)


def test_most_members_choose_the_assignor(groups: Coordinator) -> None:
    members = [Member(groups, "a", assignor="range"), Member(groups, "b", assignor="range")]
    settle(*members, Member(groups, "c", assignor="uniform"))
    assert group_of(groups).assignor == "range"


# Commits


def test_a_commit_needs_the_members_epoch(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    settle(first, second)

    def commit(member_id: str, epoch: int) -> ErrorCode:
        return groups.committed(groups.commit(5, member_id=member_id, generation=epoch)).error

    assert commit("a", first.epoch) is NONE
    assert commit("a", first.epoch - 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit("a", first.epoch + 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit("z", first.epoch) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit("", -1) is ErrorCode.UNKNOWN_MEMBER_ID, "nobody may commit beside the members"
    first.leave()
    second.leave()
    assert commit("", -1) is NONE


# The other kind


def test_an_empty_group_becomes_one_of_the_other_kind_and_keeps_its_commits(
    groups: Coordinator,
) -> None:
    generation = groups.form("classic")
    groups.commit(7, member_id="classic", generation=generation)
    member = Member(groups, "a")
    assert member.beat() is ErrorCode.GROUP_ID_NOT_FOUND
    assert "classic protocol" in (member.message or "")
    groups.leave("classic")
    assert member.beat() is NONE
    assert member.epoch > generation
    assert groups.committed_offset() == 7
    groups.restart()
    assert state(groups) is ConsumerGroupState.STABLE

    joined = groups.join(name="classic")
    assert groups.joined(joined).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    member.leave()
    assert groups.form("classic") > member.epoch
    groups.restart()
    assert groups.state() is GroupState.STABLE
    assert groups.committed_offset() == 7


def test_of_a_group_that_became_another_kind_nothing_is_left_in_the_log(
    groups: Coordinator,
) -> None:
    groups.form("classic")
    groups.leave("classic")
    Member(groups, "a").beat()
    last = dict(groups.log)
    assert last[GroupMetadataKey(group=GROUP)] is None
    groups.leave("a")
    groups.form("classic")
    last = dict(groups.log)
    assert [key for key, value in last.items() if value is not None] == [
        GroupMetadataKey(group=GROUP)
    ]


def test_a_group_with_members_is_not_deleted(groups: Coordinator) -> None:
    member = Member(groups, "a")
    member.beat()
    groups.commit(3, member_id="a", generation=member.epoch)
    assert groups.deleted(groups.delete_group()).error is ErrorCode.NON_EMPTY_GROUP
    refused = groups.deleted(groups.delete_offset())
    assert list(refused.refused_partitions.values()) == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]
    member.leave()
    assert groups.deleted(groups.delete_group()).error is NONE
    groups.restart()
    assert groups.shard.list_groups() == []
    assert groups.committed_offset() is None


def test_a_member_is_removed_by_an_administrator(groups: Coordinator) -> None:
    first, second = Member(groups, "a", instance_id="one"), Member(groups, "b")
    settle(first, second)
    assert groups.leave("b", "z") == [NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    first.beat()
    assert len(first.owned) == 4


# The log


def test_an_answer_leaves_once_what_it_says_is_durable() -> None:
    groups = Coordinator(topics=topics(orders=4), holds_writes=True)
    first, second = Member(groups, "a"), Member(groups, "b")
    one, again, other = first.send(), first.send(), second.send()
    assert all(groups.waits(each) for each in (one, again, other))
    assert len(groups.held) == 1, "a group has one write on its way"
    groups.store_one()
    assert not groups.waits(one)
    assert groups.waits(other)
    groups.store_one()
    assert not groups.waits(other)


def test_an_answer_that_says_nothing_new_waits_for_what_was_said_before(
    groups: Coordinator,
) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    groups.holds_writes = True
    one = first.send(says_owned=False)
    again = first.send(says_owned=False)
    assert len(groups.held) == 1
    assert all(groups.waits(each) for each in (one, again))
    groups.store_one()
    assert not any(groups.waits(each) for each in (one, again))


def test_a_write_that_failed_is_made_good_by_the_next() -> None:
    groups = Coordinator(topics=topics(orders=4), holds_writes=True)
    first, second = Member(groups, "a"), Member(groups, "b")
    lost = first.send()
    groups.fail_one(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert groups.answers[lost].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not groups.held, "nothing is written for nobody"
    groups.holds_writes = False
    second.beat()
    described = groups.shard.describe_consumer(GROUP)
    groups.restart()
    restored = groups.shard.describe_consumer(GROUP)
    assert restored is not None
    assert described is not None
    assert set(restored.members) == set(described.members)


def test_after_a_restart_members_go_on_where_they_were(groups: Coordinator) -> None:
    first, second = Member(groups, "a", instance_id="one"), Member(groups, "b", reads=("orders",))
    settle(first, second)
    epoch, written = group_of(groups).epoch, len(groups.log)
    groups.restart()
    settle(first, second)
    assert (first.error, second.error) == (NONE, NONE)
    assert (group_of(groups).epoch, len(groups.log)) == (epoch, written)


def test_a_restart_in_the_middle_keeps_a_partition_held(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    first.beat()
    groups.restart()
    second.beat()
    assert second.owned == frozenset()
    groups.advance(REBALANCE_MS // 2)
    first.beat(says_owned=False)
    second.beat()
    groups.advance(REBALANCE_MS // 2)
    second.beat()
    assert second.owned == parts("orders", 0, 1, 2, 3), "deadlines hold for the next coordinator"
