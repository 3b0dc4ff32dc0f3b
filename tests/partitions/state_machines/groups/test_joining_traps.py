"""Traps G1 to G4, G10 and G11: how members of Kafka's classic groups join, and come again."""

import pytest

from tests.partitions.state_machines.groups.driver import (
    OTHER,
    RANGE,
    SESSION_MS,
    Coordinator,
)
from tidemark.partitions.state_machines.groups.requests import GroupState, Leaver
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.protocol.errors import ErrorCode


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
