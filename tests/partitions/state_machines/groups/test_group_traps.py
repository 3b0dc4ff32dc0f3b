"""Traps G5 to G9 and G12 to G14: what clients of Kafka's classic groups rely on to the letter."""

import pytest

from tests.partitions.state_machines.groups.driver import (
    GROUP,
    NO_DELAY,
    OTHER,
    REBALANCE_MS,
    SESSION_MS,
    Coordinator,
)
from tidemark.partitions.state_machines.groups.requests import GroupState, Leaver
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition


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
