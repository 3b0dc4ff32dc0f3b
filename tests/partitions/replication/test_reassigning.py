"""Replicas that move: by learning first, and the group is whole at every moment."""

from __future__ import annotations

from random import Random

import pytest

from tests.partitions.replication.cluster import KEY
from tests.partitions.replication.moving import LOOK, Moving, nodes
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.replication.reassigning import NO_LIMIT, ReassignmentTiming, Stage
from tidemark.partitions.storage.left_groups import leave
from tidemark.partitions.storage.room import Room
from tidemark.protocol.types import NodeId


def test_a_replica_moves_and_its_old_broker_is_needed_no_more() -> None:
    cluster = Moving()
    cluster[1].append("a", "b")
    cluster.wish(1, 2, 4)
    cluster.wait_done()
    assert cluster.leader().node_id == 1
    cluster.check(1, 2, 4, values=["a", "b"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1, 2, 3), (2, 3, 4)),
        ((1, 2, 3), (4, 5, 2)),
        ((1, 2, 3), (4, 5, 6)),
        ((1,), (2,)),
        ((1,), (2, 3)),
    ],
    ids=str,
)
def test_a_leader_that_is_to_go_hands_over_first(
    before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    cluster = Moving(6, before)
    cluster[1].append("a")
    cluster.wish(*after)
    configs: list[tuple[NodeId, Configuration]] = []
    while not cluster.done:
        cluster.look()
        configs += [
            (each.node_id, each.replica().group.config)
            for each in cluster.brokers.values()
            if each.replica().is_leader
        ]
        assert cluster.now < 60
    assert cluster.leader().node_id in after
    assert all(leader in config.voters for leader, config in configs), (
        "no leader was outside the new voters"
    )
    cluster.check(*after, values=["a"])


@pytest.mark.parametrize(
    ("before", "after"), [((1,), (1, 2, 3)), ((1, 2, 3), (1,)), ((1, 2, 3), (3, 1, 2))], ids=str
)
def test_replicas_are_added_and_removed(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    cluster = Moving(3, before)
    cluster[1].append("a")
    cluster.wish(*after)
    cluster.wait_done()
    cluster.check(*after, values=["a"])


def test_writes_are_held_while_the_voters_change_and_none_is_sent_away() -> None:
    cluster = Moving()
    cluster.wish(1, 2, 4)
    appended, held = 0, 0.0
    while not cluster.done:
        leader = cluster[1].replica()
        if leader.is_paused:
            held += LOOK
        elif not leader.is_accepting:
            raise AssertionError("a producer would have been sent away")
        else:
            cluster[1].append(str(appended))
            appended += 1
        cluster.look()
        assert cluster.now < 60
    assert 0 < held <= 0.1
    (pause,) = cluster.parts[NodeId(1)].take_pauses()
    assert abs(pause - held) < LOOK
    assert not cluster[1].replica().is_paused
    cluster.check(1, 2, 4, values=[str(number) for number in range(appended)])


def test_the_log_is_copied_no_faster_than_the_limit() -> None:
    timing = ReassignmentTiming(near_bytes=1000)
    cluster = Moving(bytes_per_second=10_000, timing=timing)
    for _ in range(40):
        cluster[1].append("x" * 1000)
        cluster.settle()
    size = cluster[1].replica().log.size_bytes
    cluster.wish(1, 2, 4)
    begun = cluster.now
    cluster.go(1.0)
    state = cluster.state()
    assert state.stage is Stage.COPY
    assert state.learner == 4
    assert 0.6 < state.bytes_per_second / 10_000 < 1.2
    assert state.copied_bytes <= 10_000 * (cluster.now - begun) + 1100
    assert abs(state.copied_bytes + state.remaining_bytes - size) < 3000
    cluster[1].append("live")
    cluster.settle()
    assert cluster[2].values()[-1] == "live", "who votes does not wait"
    cluster.wait_done()
    assert cluster.now - begun >= (size - 2 * timing.near_bytes) / 10_000
    assert cluster.parts[NodeId(1)].bytes_sent >= size - timing.near_bytes


def test_what_a_learner_was_sent_is_counted_once_though_its_wish_is_replaced() -> None:
    cluster = Moving(bytes_per_second=10_000, timing=ReassignmentTiming(near_bytes=100))
    for _ in range(40):
        cluster[1].append("x" * 1000)
        cluster.settle()
    for _ in range(2):
        cluster.wish(1, 2, 4)
        cluster.go(1)
    cluster.parts[NodeId(1)].look(cluster.now)
    (sent,) = [
        each.bytes_sent
        for each in cluster[1].replica().group.progress()
        if each.node == 4 and not each.is_voter
    ]
    assert cluster.parts[NodeId(1)].bytes_sent == sent == cluster.state().copied_bytes


def test_a_learners_answer_counts_for_nothing() -> None:
    cluster = Moving(bytes_per_second=1, timing=ReassignmentTiming(near_bytes=0))
    cluster.wish(1, 2, 4)
    cluster.go(0.2)
    for node in (2, 3):
        cluster.kill(node)
    leader = cluster[1].replica()
    if leader.is_accepting:
        cluster[1].append("a")
    cluster.parts[NodeId(1)].bytes_per_second = NO_LIMIT
    cluster.go(1)
    assert cluster[4].values() in ([], ["a"])
    assert leader.high_watermark == 0


def test_that_a_learner_takes_nothing_in_is_said_for_as_long_as_it_is_so() -> None:
    cluster = Moving(timing=ReassignmentTiming(near_bytes=0))
    cluster[1].append("a")
    cluster[4].replica().log.room = room = Room(is_out=True, why="the disk is full")
    cluster.wish(1, 2, 4)
    cluster.go(13)
    for _ in range(40):
        cluster.go(1)  # it is sent what it lacks again, less and less often
        assert "broker 4 does not take in what it is sent" in cluster.state().why
    room.is_out = False
    cluster.wait_done()
    cluster.check(1, 2, 4, values=["a"])


def test_it_is_cancelled_while_the_log_is_copied() -> None:
    cluster = Moving(bytes_per_second=1000, timing=ReassignmentTiming(near_bytes=100))
    for _ in range(20):
        cluster[1].append("x" * 1000)
    cluster.settle()
    cluster.wish(4, 5, 3)
    cluster.go(1)
    assert cluster.state().stage is Stage.COPY
    cluster.wish(1, 2, 3)
    cluster.wait_done(0.2)
    assert cluster.leader().node_id == 1
    cluster.strike()
    cluster.look()
    assert {each.node for each in cluster[1].replica().group.progress()} == {2, 3}


def test_it_is_cancelled_though_a_voter_is_dead() -> None:
    cluster = Moving(4)
    cluster[1].append("a")
    cluster.kill(4)
    cluster.wish(1, 2, 4)
    cluster.kill(3)
    cluster.go(1)
    cluster.wish(1, 2, 3)
    cluster.wait_done(0.5)
    assert cluster.config == Configuration(nodes(1, 2, 3), version=2)


def test_it_is_cancelled_at_every_moment_and_the_group_is_as_it_was() -> None:
    for looks in range(0, 40, 3):
        cluster = Moving(6)
        cluster[1].append("a")
        cluster.wish(4, 5, 6)
        for _ in range(looks):
            cluster.look()
        cluster.wish(1, 2, 3)
        cluster.wait_done()
        cluster.check(1, 2, 3, values=["a"])


def test_who_has_yet_to_hear_of_a_wish_does_not_undo_it() -> None:
    cluster = Moving(4)
    cluster[1].append("a")
    cluster[3].is_disk_slow = True  # what is wished first comes to nothing
    cluster.wish(1, 2, 4)
    cluster.wish_unheard(2, 1, 2, 3)
    cluster[3].is_disk_slow = False
    cluster.wait_done()
    cluster.leader().node.move_leader(KEY, NodeId(2), cluster.now + 5)
    cluster.go(3)
    assert cluster.leader().node_id == 2
    config = Configuration(nodes(1, 2, 3), version=2)
    assert cluster.config == config, "the report that it has come true may be under way"
    state = cluster.parts[NodeId(2)].state(KEY)
    assert state is not None
    assert state.why == "this broker has yet to hear of a newer wish"
    assert not cluster.parts[NodeId(2)].done()
    cluster.wish(1, 2, 4)
    cluster.wait_done()
    cluster.check(1, 2, 4, values=["a"])


@pytest.mark.parametrize("power", [False, True], ids=["killed", "without power"])
@pytest.mark.parametrize("role", ["leader", "target", "other"])
def test_whoever_dies_at_whatever_moment_it_goes_on(role: str, power: bool) -> None:
    for looks in range(0, 36, 5):
        cluster = Moving(5)
        cluster[1].append("a")
        cluster.settle()
        cluster.wish(2, 4, 5)
        for _ in range(looks):
            cluster.look()
        leaders = [each.node_id for each in cluster.brokers.values() if each.replica().is_leader]
        victim = {"leader": leaders[0] if leaders else 1, "target": 4, "other": 3}[role]
        what_is_left = cluster.kill(victim, Random(looks) if power else None)
        cluster.go(2.5)
        if role != "target" and not cluster.done:
            assert cluster.leader().append("b"), f"after {looks} looks"
        cluster.revive(victim, *what_is_left)
        cluster.wait_done()
        values = cluster.leader().committed_values()
        assert values[0] == "a"
        cluster.check(2, 4, 5, values=values)


def test_nobody_is_sent_the_log_who_has_yet_to_hear_of_the_wish() -> None:
    cluster = Moving(4)
    cluster[1].append("a")
    cluster.wish_unheard(4, 1, 2, 4)
    cluster.go(1)
    assert cluster.state().why == "broker 4 has yet to hear of the wish"
    assert cluster[4].values() == []
    cluster.wish(1, 2, 4)
    cluster.wait_done()
    cluster.check(1, 2, 4, values=["a"])


def test_a_target_that_cannot_be_reached_is_said_and_lets_others_have_their_turn() -> None:
    cluster = Moving()
    left = cluster.kill(4)
    cluster.wish(1, 2, 4)
    cluster.go(1)
    state = cluster.state()
    assert (state.stage, state.why) == (Stage.COPY, "broker 4 cannot be reached")
    assert cluster.config == Configuration((NodeId(1), NodeId(2), NodeId(3)))
    assert cluster[1].append("a")
    cluster.revive(4, *left)
    cluster.wait_done()
    cluster.check(1, 2, 4, values=["a"])


def test_a_replica_that_was_given_up_too_early_does_not_count() -> None:
    """Nobody is to forget before the wish is struck. If one did, 2 and 3 were no majority."""
    cluster = Moving(3)
    cluster[2].is_disk_slow = True
    cluster[1].append("a")
    cluster.settle()
    assert cluster[1].replica().high_watermark == 1, "1 and 3 hold it, 2 does not"
    cluster[3].node.remove(KEY, is_deleted=True)
    cluster[3].sync()
    leave(cluster[3].state, {KEY: cluster[1].replica().epoch})
    for name in list(cluster[3].files.sizes("/data/orders-0")):
        cluster[3].files.remove(f"/data/orders-0/{name}")
    files, state = cluster.kill(1)
    cluster[2].is_disk_slow = False
    cluster[3].open((1, 2, 3), preference=(1, 2, 3))
    cluster.go(3)
    assert not any(each.replica().is_leader for each in cluster.brokers.values())
    cluster.revive(1, files, state)
    cluster.go(3)
    assert cluster.leader().node_id == 1
    assert cluster.leader().committed_values() == ["a"]
    assert cluster[3].committed_values() == ["a"]


def test_nothing_is_struck_before_the_new_voters_have_committed_something_of_their_own() -> None:
    cluster = Moving(4)
    cluster[1].append("a")
    cluster.wish(1, 2, 4)
    for node in (2, 4):
        cluster[node].is_disk_slow = True
    final = Configuration(nodes(1, 2, 4), version=1)
    for _ in range(100):
        cluster.look()
        if cluster[1].replica().group.config == final:
            break
        for node in (2, 4):
            cluster[node].sync()
    cluster.go(0.8)
    assert cluster[1].replica().group.config == final
    assert cluster[1].replica().is_leader
    assert not cluster.done, "no other voter has it on its disk: it may be undone"
    for node in (2, 4):
        cluster[node].is_disk_slow = False
    cluster.wait_done()


def test_what_is_struck_lets_writes_flow() -> None:
    cluster = Moving()
    cluster[2].is_disk_slow = cluster[3].is_disk_slow = True
    cluster.wish(1, 2, 4)
    for _ in range(50):
        cluster.look()
        if cluster[1].replica().is_paused:
            break
        cluster[1].append("a")
    assert cluster[1].replica().is_paused
    cluster.strike()
    assert not cluster[1].replica().is_paused


def test_why_the_voters_did_not_change_is_said_until_they_are_to_again() -> None:
    cluster = Moving()
    cluster.wish(1, 2, 4)
    cluster[2].is_disk_slow = cluster[3].is_disk_slow = True
    cluster[1].append("a")
    cluster.go(0.8)
    assert cluster.parts[NodeId(1)].take_pauses(), "there was an attempt"
    assert not cluster[1].replica().is_paused
    why = "writes were held for 500 ms, and then what was appended is not committed yet"
    for _ in range(10):
        cluster.look()
        assert (cluster.state().stage, cluster.state().why) == (Stage.CHANGE, why)
    cluster[2].is_disk_slow = cluster[3].is_disk_slow = False
    cluster.wait_done()
    cluster.check(1, 2, 4, values=["a"])


def test_that_an_heir_did_not_get_the_lead_is_said_until_it_has_it() -> None:
    cluster = Moving()
    cluster.wish(2, 3, 4)
    cluster[2].is_disk_slow = cluster[3].is_disk_slow = True
    cluster[1].append("a")
    cluster.go(12)
    for _ in range(600):
        cluster.look()
        said = cluster.state().stage, cluster.state().why
        assert said == (Stage.LEAD, "broker 2 did not get the lead")
    cluster[2].is_disk_slow = cluster[3].is_disk_slow = False
    cluster.wait_done()
    cluster.check(2, 3, 4, values=["a"])
