"""Traps G1 to G14: what clients of Kafka's classic groups rely on to the letter."""

import pytest

from tests.partitions.state_machines.groups.driver import (
    GROUP,
    NO_DELAY,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    Coordinator,
)
from tidemark.partitions.state_machines.groups.requests import GroupState, Leaver
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition

OTHER = (("range", b"other metadata"),)


def test_trap_g1_a_member_without_id_is_given_one_and_told_to_come_again() -> None:
    groups = Coordinator()
    answer = groups.joined(groups.join(name="m", requires_member_id=True))
    assert (answer.error, answer.member_id) == (ErrorCode.MEMBER_ID_REQUIRED, "m")
    assert groups.members == []
    assert groups.joined(groups.join("m")).generation == 1
    assert groups.members == ["m"]


def test_trap_g1_a_given_id_is_kept_until_the_session_timeout() -> None:
    groups = Coordinator()
    groups.join(name="m", requires_member_id=True)
    groups.advance(SESSION_MS)
    assert groups.joined(groups.join("m")).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_trap_g1_versions_before_4_join_at_once() -> None:
    groups = Coordinator()
    assert groups.joined(groups.join(name="m", requires_member_id=False)).generation == 1


def test_trap_g1_a_rebalance_waits_for_an_id_that_was_given_out() -> None:
    groups = Coordinator()
    groups.form("a")
    groups.join(name="b", requires_member_id=True)
    waiter = groups.join("a", protocols=OTHER)
    assert groups.waits(waiter)
    groups.join("b")
    assert groups.joined(waiter).generation == 2


def test_trap_g2_only_the_leader_gets_the_members_and_their_metadata() -> None:
    groups = Coordinator()
    groups.form("a", "b")
    leader, follower = groups.join("a", protocols=OTHER), groups.join("b")
    assert [(m.member_id, m.metadata) for m in groups.joined(leader).members] == [
        ("a", b"other metadata"),
        ("b", b"range metadata"),
    ]
    assert groups.joined(follower).members == ()
    assert groups.joined(follower).leader == "a"


def test_trap_g2_other_protocol_types_are_as_good() -> None:
    groups = Coordinator()
    waiter = groups.join(name="m", protocol_type="connect", protocols=(("sessioned", b"\xff"),))
    answer = groups.joined(waiter)
    assert (answer.protocol_type, answer.protocol) == ("connect", "sessioned")


def test_trap_g3_a_rejoin_while_preparing_updates_and_waits() -> None:
    groups = Coordinator()
    groups.form("a", "b")
    first = groups.join("a", protocols=OTHER)
    again = groups.join("a", protocols=RANGE)
    assert groups.joined(first).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.waits(again)
    groups.join("b")
    assert groups.joined(again).members[0].metadata == b"range metadata"


def test_trap_g3_a_rejoin_while_completing_gets_the_generation_again() -> None:
    groups = Coordinator()
    groups.join(name="m")
    answer = groups.joined(groups.join("m"))
    assert (answer.generation, answer.leader, len(answer.members)) == (1, "m", 1)
    assert groups.state() is GroupState.COMPLETING_REBALANCE


def test_trap_g3_a_rejoin_while_completing_with_other_metadata_rebalances() -> None:
    groups = Coordinator()
    groups.join(name="m")
    assert groups.joined(groups.join("m", protocols=OTHER)).generation == 2


def test_trap_g3_the_leaders_rejoin_always_rebalances() -> None:
    groups = Coordinator()
    groups.form("a", "b")
    assert groups.waits(groups.join("a"))
    assert groups.state() is GroupState.PREPARING_REBALANCE


def test_trap_g3_a_followers_unchanged_rejoin_gets_the_generation_again() -> None:
    groups = Coordinator()
    generation = groups.form("a", "b")
    answer = groups.joined(groups.join("b"))
    assert (answer.generation, answer.members) == (generation, ())
    assert groups.state() is GroupState.STABLE


def test_trap_g3_a_followers_changed_rejoin_rebalances() -> None:
    groups = Coordinator()
    groups.form("a", "b")
    assert groups.waits(groups.join("b", protocols=OTHER))
    assert groups.state() is GroupState.PREPARING_REBALANCE


def test_trap_g3_a_rejoin_to_an_empty_group_starts_anew() -> None:
    groups = Coordinator()
    groups.form("a")
    groups.leave("a")
    assert groups.state() is GroupState.EMPTY
    assert groups.joined(groups.join("a")).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_trap_g4_a_restarted_static_member_gets_a_new_id_and_keeps_its_assignment() -> None:
    groups = Coordinator()
    generation = groups.form("a", "b", instance_ids=True)
    answer = groups.joined(groups.join(name="b2", instance_id="b"))
    assert (answer.error, answer.member_id, answer.generation) == (0, "b2", generation)
    assert groups.state() is GroupState.STABLE
    waiter = groups.sync("b2", generation, instance_id="b")
    assert groups.synced(waiter).assignment == b"b's part"


def test_trap_g4_the_process_before_is_fenced() -> None:
    groups = Coordinator()
    generation = groups.form("a", "b", instance_ids=True)
    groups.join(name="b2", instance_id="b")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert groups.heartbeat("b", generation, instance_id="b") is fenced
    assert groups.synced(groups.sync("b", generation, instance_id="b")).error is fenced
    assert groups.joined(groups.join("b", instance_id="b")).error is fenced
    assert groups.leave(Leaver(member_id="b", instance_id="b")) == [fenced]
    assert groups.heartbeat("b2", generation, instance_id="b") is ErrorCode.NONE


def test_trap_g4_from_version_9_a_restarted_leader_is_told_to_skip_the_assignment() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    answer = groups.joined(groups.join(name="a2", instance_id="a"))
    assert (answer.leader, answer.skip_assignment) == ("a2", True)
    assert [m.member_id for m in answer.members] == ["a2", "b"]


def test_trap_g4_before_version_9_a_restarted_leader_is_shown_its_old_id_as_leader() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    waiter = groups.join(name="a2", instance_id="a", may_skip_assignment=False)
    answer = groups.joined(waiter)
    assert (answer.member_id, answer.leader, answer.members) == ("a2", "a", ())
    assert not answer.skip_assignment


def test_trap_g4_while_completing_a_restarted_static_member_rebalances() -> None:
    groups = Coordinator()
    groups.join(name="a", instance_id="a")
    assert groups.state() is GroupState.COMPLETING_REBALANCE
    assert groups.joined(groups.join(name="a2", instance_id="a")).generation == 2


def test_trap_g4_a_restarted_static_members_timeouts_are_the_new_ones() -> None:
    groups = Coordinator()
    generation = groups.form("a", instance_ids=True)
    groups.join(name="a2", instance_id="a", session_ms=2 * SESSION_MS)
    groups.advance(2 * SESSION_MS - 1)
    assert groups.heartbeat("a2", generation, instance_id="a") is ErrorCode.NONE
    groups.advance(2 * SESSION_MS)
    assert groups.state() is GroupState.EMPTY


def test_trap_g4_a_restart_that_changes_the_elected_protocol_rebalances() -> None:
    groups = Coordinator()
    both = (("range", b""), ("sticky", b""))
    groups.join(name="a", instance_id="a", protocols=both)
    groups.sync("a", 1, {"a": b"all"}, instance_id="a")
    assert groups.state() is GroupState.STABLE
    waiter = groups.join(name="a2", instance_id="a", protocols=tuple(reversed(both)))
    assert groups.joined(waiter).generation == 2
    assert groups.joined(waiter).protocol == "sticky"


def test_trap_g5_heartbeats_tell_each_state_apart() -> None:
    groups = Coordinator()
    assert groups.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID
    groups.join(name="m")
    assert groups.state() is GroupState.COMPLETING_REBALANCE
    assert groups.heartbeat("m", 1) is ErrorCode.NONE
    groups.sync("m", 1)
    assert groups.state() is GroupState.STABLE
    assert groups.heartbeat("m", 1) is ErrorCode.NONE
    assert groups.heartbeat("m", 2) is ErrorCode.ILLEGAL_GENERATION
    groups.join(name="n")
    assert groups.state() is GroupState.PREPARING_REBALANCE
    assert groups.heartbeat("m", 1) is ErrorCode.REBALANCE_IN_PROGRESS
    groups.leave("m", "n")
    assert groups.state() is GroupState.EMPTY
    assert groups.heartbeat("m", 1) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("is_preparing", [False, True])
def test_trap_g5_a_heartbeat_keeps_a_member_in_whatever_the_group_does(
    is_preparing: bool,
) -> None:
    groups = Coordinator()
    generation = groups.form("a")
    if is_preparing:
        groups.join(name="b")
    for _ in range(3):
        groups.advance(SESSION_MS - 1)
        groups.heartbeat("a", generation)
    assert "a" in groups.members


def test_trap_g6_followers_wait_for_the_leader() -> None:
    groups = Coordinator()
    groups.form("a", "b")
    groups.join("a", protocols=OTHER)
    generation = groups.joined(groups.join("b")).generation
    follower = groups.sync("b", generation)
    assert groups.waits(follower)
    groups.sync("a", generation, {"a": b"1", "b": b"2"})
    assert groups.synced(follower).assignment == b"2"


def test_trap_g6_a_stable_group_answers_at_once() -> None:
    groups = Coordinator()
    generation = groups.form("a", "b")
    assert groups.synced(groups.sync("b", generation)).assignment == b"b's part"


def test_trap_g6_while_preparing_a_sync_is_told_to_join() -> None:
    groups = Coordinator()
    generation = groups.form("a")
    groups.join(name="b")
    assert groups.synced(groups.sync("a", generation)).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_trap_g6_version_5_checks_the_protocols_type_and_name() -> None:
    groups = Coordinator()
    generation = groups.form("a")
    wrong = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert groups.synced(groups.sync("a", generation, protocol_type="connect")).error is wrong
    assert groups.synced(groups.sync("a", generation, protocol="sticky")).error is wrong
    good = groups.sync("a", generation, protocol_type="consumer", protocol="range")
    assert groups.synced(good).error is ErrorCode.NONE


def test_trap_g6_a_sync_of_another_generation_or_member_is_refused() -> None:
    groups = Coordinator()
    generation = groups.form("a")
    assert groups.synced(groups.sync("a", generation - 1)).error is ErrorCode.ILLEGAL_GENERATION
    assert groups.synced(groups.sync("b", generation)).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_trap_g7_an_empty_or_unknown_group_takes_commits_without_a_generation() -> None:
    groups = Coordinator()
    assert groups.committed(groups.commit(5)).error is ErrorCode.NONE
    assert groups.committed_offset() == 5
    groups.form("a")
    assert groups.committed(groups.commit(6)).error is ErrorCode.UNKNOWN_MEMBER_ID
    groups.leave("a")
    assert groups.committed(groups.commit(7)).error is ErrorCode.NONE


def test_trap_g7_while_completing_a_commit_is_told_of_the_rebalance() -> None:
    groups = Coordinator()
    groups.join(name="m")
    waiter = groups.commit(5, member_id="m", generation=1)
    assert groups.committed(waiter).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_trap_g7_while_preparing_the_last_generation_may_still_commit() -> None:
    groups = Coordinator()
    generation = groups.form("a")
    groups.join(name="b")
    assert groups.state() is GroupState.PREPARING_REBALANCE
    waiter = groups.commit(5, member_id="a", generation=generation)
    assert groups.committed(waiter).error is ErrorCode.NONE
    assert groups.committed_offset() == 5


def test_trap_g7_a_stale_generation_or_a_stranger_may_not_commit() -> None:
    groups = Coordinator()
    generation = groups.form("a")
    stale = groups.commit(5, member_id="a", generation=generation - 1)
    assert groups.committed(stale).error is ErrorCode.ILLEGAL_GENERATION
    stranger = groups.commit(5, member_id="b", generation=generation)
    assert groups.committed(stranger).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.committed_offset() is None


def test_trap_g7_a_generation_of_a_forgotten_group_is_illegal() -> None:
    groups = Coordinator()
    waiter = groups.commit(5, member_id="a", generation=3)
    assert groups.committed(waiter).error is ErrorCode.ILLEGAL_GENERATION


def test_trap_g7_metadata_is_limited_in_bytes_and_comes_back_with_the_leader_epoch() -> None:
    groups = Coordinator()
    fits, too_large = "é" * 2048, "é" * 2048 + "x"
    groups.commit(5, metadata=fits, leader_epoch=3)
    refused = groups.committed(groups.commit(6, metadata=too_large))
    partition = TopicPartition("orders", 0)
    assert refused.refused_partitions == {partition: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    found = groups.shard.committed(GROUP)[partition]
    assert (found.offset, found.metadata, found.leader_epoch) == (5, fits, 3)


def test_trap_g8_an_unknown_group_has_no_commits_and_that_is_no_error() -> None:
    assert Coordinator().shard.committed("nobody") == {}


def test_trap_g10_an_empty_group_waits_for_more_members_after_the_first() -> None:
    groups = Coordinator(GroupSettings(initial_rebalance_delay_ms=3_000))
    first = groups.join(name="a")
    groups.advance(2_000)
    second = groups.join(name="b")
    groups.advance(999)
    assert groups.waits(first)
    groups.advance(1)
    assert groups.waits(first), "the second one made it wait as long again"
    groups.advance(3_000)
    assert groups.joined(first).generation == groups.joined(second).generation == 1
    assert len(groups.joined(first).members) == 2


def test_trap_g10_the_wait_for_more_members_ends_at_the_rebalance_timeout() -> None:
    groups = Coordinator(GroupSettings(initial_rebalance_delay_ms=3_000))
    first = groups.join(name="m0", rebalance_ms=7_000)
    for number in range(1, 4):
        groups.advance(2_000)
        groups.join(name=f"m{number}", rebalance_ms=7_000)
    groups.advance(999)
    assert groups.waits(first)
    groups.advance(1)
    assert groups.joined(first).generation == 1


def test_trap_g10_only_the_first_rebalance_waits() -> None:
    groups = Coordinator(GroupSettings(initial_rebalance_delay_ms=3_000))
    groups.join(name="a")
    groups.advance(3_000)
    second = groups.join(name="b")
    groups.join("a")
    assert groups.joined(second).generation == 2


@pytest.mark.parametrize("session_ms", [5_999, 30 * 60_000 + 1, 0, -1])
def test_trap_g11_a_session_timeout_out_of_bounds_is_refused(session_ms: int) -> None:
    groups = Coordinator()
    answer = groups.joined(groups.join(session_ms=session_ms))
    assert answer.error is ErrorCode.INVALID_SESSION_TIMEOUT


@pytest.mark.parametrize("session_ms", [6_000, 30 * 60_000])
def test_trap_g11_the_bounds_themselves_are_allowed(session_ms: int) -> None:
    groups = Coordinator()
    assert groups.joined(groups.join(session_ms=session_ms)).error is ErrorCode.NONE


def test_trap_g12_members_leave_together_with_an_error_each() -> None:
    groups = Coordinator()
    groups.form("a", "b", "c")
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    assert groups.leave("a", "x", "b") == [ErrorCode.NONE, unknown, ErrorCode.NONE]
    assert groups.members == ["c"]


def test_trap_g12_an_administrator_removes_a_static_member_by_its_instance() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    gone = Leaver(member_id="", instance_id="a")
    nobody = Leaver(member_id="", instance_id="x")
    assert groups.leave(gone, nobody) == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert groups.members == ["b"]


def test_trap_g12_a_group_that_is_not_known_has_no_such_members() -> None:
    assert Coordinator().leave("a") == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_trap_g12_a_static_member_that_closes_without_leaving_keeps_its_place() -> None:
    groups = Coordinator()
    groups.form("a", "b", instance_ids=True)
    groups.advance(SESSION_MS - 1)
    assert groups.members == ["a", "b"]
    assert groups.state() is GroupState.STABLE


def test_trap_g13_an_unknown_group_has_no_description() -> None:
    assert Coordinator().shard.describe("nobody") is None


def test_trap_g13_only_an_empty_group_is_deleted() -> None:
    groups = Coordinator()
    assert groups.deleted(groups.delete_group()).error is ErrorCode.GROUP_ID_NOT_FOUND
    groups.commit(5)
    groups.form("a")
    assert groups.deleted(groups.delete_group()).error is ErrorCode.NON_EMPTY_GROUP
    groups.leave("a")
    assert groups.deleted(groups.delete_group()).error is ErrorCode.NONE
    assert groups.shard.describe(GROUP) is None
    assert groups.committed_offset() is None


def test_trap_g14_syncs_and_heartbeats_during_a_rebalance_lose_no_member() -> None:
    groups = Coordinator()
    generation = groups.form("a", "b")
    newcomer = groups.join(name="c")
    assert groups.heartbeat("a", generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.synced(groups.sync("b", generation)).error is ErrorCode.REBALANCE_IN_PROGRESS
    groups.join("a")
    waiter = groups.join("b")
    following = groups.joined(waiter).generation
    assert groups.joined(newcomer).generation == following
    assert groups.heartbeat("b", following) is ErrorCode.NONE
    groups.sync_all(["a", "b", "c"], following)
    assert groups.members == ["a", "b", "c"]
    assert groups.state() is GroupState.STABLE


def test_trap_g14_a_join_while_the_assignment_is_being_stored_loses_nobody() -> None:
    groups = Coordinator(holds_writes=True)
    groups.join(name="a")
    leader = groups.sync("a", 1, {"a": b"all"})
    newcomer = groups.join(name="b")
    assert groups.synced(leader).error is ErrorCode.REBALANCE_IN_PROGRESS
    groups.store_all()
    assert groups.state() is GroupState.PREPARING_REBALANCE, "the stored assignment came too late"
    groups.join("a")
    assert groups.joined(newcomer).generation == 2
    assert groups.members == ["a", "b"]


def test_trap_g14_members_that_died_while_preparing_do_not_hold_the_rebalance_up() -> None:
    groups = Coordinator()
    groups.form("a", "b", "c")
    waiter = groups.join(name="d")
    groups.join("a")
    groups.advance(SESSION_MS - 1)
    assert groups.waits(waiter)
    groups.advance(1)
    assert groups.joined(waiter).generation > 0
    assert groups.members == ["a", "d"]


def test_trap_g14_members_that_never_sync_are_taken_out() -> None:
    groups = Coordinator(NO_DELAY)
    groups.form("a", "b")
    groups.join("a", protocols=OTHER)
    generation = groups.joined(groups.join("b")).generation
    waiter = groups.sync("b", generation)
    for _ in range(REBALANCE_MS // 5_000):
        groups.advance(5_000)
        groups.heartbeat("a", generation)
    assert groups.synced(waiter).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert groups.members == ["b"], "the leader kept sending heartbeats, and no assignment"
