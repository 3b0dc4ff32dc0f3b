"""The consumer protocol (KIP-848), rule by rule: who joins, lets go, falls silent and leaves."""

from dataclasses import replace

from tests.partitions.state_machines.groups.consumer.clients import (
    REBALANCE_MS,
    SESSION_MS,
    Member,
    parts,
    reasons,
    settle,
    state,
    topics,
)
from tests.partitions.state_machines.groups.driver import GROUP, NO_DELAY, Coordinator
from tidemark.partitions.state_machines.groups.consumer.group import ConsumerGroupState
from tidemark.partitions.state_machines.groups.requests import ConsumerHeartbeatAnswer
from tidemark.protocol.errors import ErrorCode

NONE = ErrorCode.NONE


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


def test_who_missed_what_it_was_told_is_told_again(groups: Coordinator) -> None:
    first, second = Member(groups, "a"), Member(groups, "b")
    first.beat()
    second.beat()
    first.beat()
    first.beat()
    assert (second.owned, first.epoch) == (frozenset(), 2)
    second.send()  # Gives it what the first has given up; the answer is lost.
    assert second.beat() is NONE
    assert len(second.owned) == 2
    told = groups.answers[second.send()]
    assert isinstance(told, ConsumerHeartbeatAnswer)
    assert told.assignment is None, "it has it"


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
