"""What this project changes in Raft: see `docs/decisions/0005-replication-groups.md`."""

from __future__ import annotations

import pytest

from tests.paper.solo import FIVE, Solo, append, at, run, start, vote
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HardState,
    PullRequest,
    PullResponse,
    VoteResponse,
)
from tidemark.protocol.types import Epoch, NodeId, Offset, Position

# Positions


def test_an_epoch_start_takes_no_offset() -> None:
    solo = Solo((0, b"abc"))
    solo.become_leader()
    assert solo.group.shape.last == at(1, 3)
    assert solo.group.shape.end_offset == 3


def test_each_epoch_begins_with_exactly_one_epoch_start() -> None:
    solo = Solo((0, b"abc"))
    solo.become_leader()
    assert [row.epoch for row in solo.group.shape.rows] == [0, 1]
    doubled = append(2, at(1, 3), start(2, 3), start(2, 3))
    assert solo.hear(2, doubled) == []


def test_positions_are_ordered_by_epoch_and_then_by_offset() -> None:
    assert at(1, 9) < at(2, 0) < at(2, 1)


def test_what_a_log_holds_is_answered_without_reading_it() -> None:
    solo = Solo((0, b"abc"), (2, b"d"))
    solo.group.read = lambda after, up_to, bytes_max: pytest.fail("it has read the log")
    for prev, held in [(at(0, 2), True), (at(0, 4), False), (at(1, 3), False), (at(2, 4), True)]:
        (answer,) = solo.hear(2, append(3, prev))
        assert isinstance(answer, AppendResponse)
        assert (answer.match is not None) == held


def test_a_refusal_names_the_largest_epoch_at_or_below_and_its_end() -> None:
    solo = Solo((0, b"abc"), (2, b"d"), (5, b"e"))
    for prev, conflict in [(at(4, 9), at(2, 4)), (at(1, 3), at(0, 3)), (at(7, 9), at(5, 5))]:
        (answer,) = solo.hear(2, append(8, prev))
        assert answer == AppendResponse(Epoch(8), prev, None, conflict)


# Rule 1: votes and epochs are durable before anything that rests on them is said


def test_the_vote_leaves_with_its_token() -> None:
    solo = Solo((0, b"abc"))
    assert solo.hear(2, vote(1, at(0, 3)), persist=False) == []
    ready = solo.readies[-1]
    assert ready.token
    assert ready.hard_state == HardState(Epoch(1), NodeId(2))
    assert [out.message for out in ready.send_after] == [VoteResponse(Epoch(1), Ballot.REAL, True)]


def test_a_refusal_too_waits_for_the_epoch_it_tells() -> None:
    solo = Solo((0, b"abc"))
    assert solo.hear(2, append(3, at(1, 9)), persist=False) == []
    assert solo.readies[-1].send_after


# Rule 2: commit


@pytest.mark.parametrize(
    ("voters", "acknowledged", "committed"),
    [
        (1, [], 9),
        (2, [4], 4),
        (3, [4], 4),
        (3, [4, 7], 7),
        (4, [4, 7], 4),
        (4, [4, 7, 8], 7),
        (5, [4, 7], 4),
        (5, [4, 7, 8, 8], 8),
    ],
)
def test_a_majority_of_n_is_more_than_half_also_where_n_is_even(
    voters: int, acknowledged: list[int], committed: int
) -> None:
    config = Configuration(tuple(NodeId(node) for node in range(1, voters + 1)))
    solo = Solo(config=config)
    solo.become_leader(range(2, voters + 1))
    solo.produce(b"123456789")
    for node, offset in enumerate(acknowledged, start=2):
        solo.acknowledge(node, position=at(0, offset))
    assert solo.group.high_watermark == committed


def test_a_leader_that_has_not_synced_does_not_count() -> None:
    solo = Solo(config=FIVE)
    solo.become_leader((2, 3, 4))
    solo.produce(b"abc", persist=False)
    solo.acknowledge(2, 3)
    assert solo.group.high_watermark == 0


# Rule 3: visibility


def test_serving_is_told_when_it_begins_and_when_it_ends() -> None:
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2)
    solo.group.step_down()
    solo.work()
    assert [r.is_serving for r in solo.readies if r.is_serving is not None] == [True, False]


# Rule 4: fencing


def test_a_leader_that_hears_of_a_later_epoch_stops_at_once() -> None:
    solo = Solo()
    solo.become_leader()
    solo.group.heard_leader(NodeId(2), Epoch(4), at(4, 0))
    assert not solo.group.is_leader
    assert (solo.group.epoch, solo.group.leader) == (4, 2)


def test_a_heartbeat_of_an_older_epoch_is_not_heard() -> None:
    solo = Solo((3, b"abc"))
    solo.group.heard_leader(NodeId(2), Epoch(2), at(2, 9))
    assert solo.group.leader is None
    assert not solo.group.has_ready


# Rule 5: truncation


def test_truncation_is_by_epochs_and_never_to_the_high_watermark() -> None:
    solo = Solo((0, b"abc"), committed=1)
    solo.hear(2, append(0, at(0, 3), committed=at(0, 1)))
    solo.hear(2, append(1, at(0, 3), start(1, 3), committed=at(0, 1)))
    assert solo.log == b"abc"


def test_truncation_below_the_high_watermark_ends_the_group_instead() -> None:
    solo = Solo((0, b"abc"), committed=2)
    solo.hear(2, append(1, at(0, 1), start(1, 1)))
    assert solo.log == b"abc"
    assert solo.readies[-1].failure is not None
    assert solo.hear(2, vote(9, at(8, 8))) == []


def test_a_truncation_gives_back_the_configuration_before() -> None:
    solo = Solo((0, b"abc"))
    before = solo.group.config
    solo.hear(2, append(1, at(0, 3), start(1, 3, config=FIVE)))
    assert solo.group.config == FIVE
    solo.hear(3, append(2, at(0, 3), start(2, 3, 3)))
    assert solo.group.config == before


# Rule 7: stale replies


def test_an_answer_of_another_epoch_is_dropped() -> None:
    solo = Solo((0, b"abc"))
    solo.become_leader()
    before = solo.group.progress()
    solo.hear(2, AppendResponse(Epoch(0), at(0, 3), at(0, 3)))
    assert solo.group.progress() == before


# Parallel replication


def test_answers_come_in_any_order_and_one_answers_all_before_it() -> None:
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2)
    for data in (b"a", b"b", b"c"):
        solo.produce(data)
    solo.hear(2, AppendResponse(Epoch(0), at(0, 2), at(0, 3)))
    assert solo.group.high_watermark == 3
    solo.hear(2, AppendResponse(Epoch(0), at(0, 0), at(0, 1)))
    (second, _) = solo.group.progress()
    assert (second.match, second.next) == (at(0, 3), at(0, 3))


# Membership


def test_an_ordinary_election_carries_on_the_configuration_in_force() -> None:
    joint = Configuration((NodeId(1), NodeId(2), NodeId(4)), (NodeId(1), NodeId(2), NodeId(3)))
    solo = Solo((0, b"abc"), config=joint)
    solo.become_leader((2, 3))
    assert solo.group.shape.rows[-1].config == joint


def test_a_change_begins_with_an_election_by_the_old_voters() -> None:
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2, 3)
    solo.group.add_learner(NodeId(4))
    solo.work()
    solo.acknowledge(4)
    solo.group.change_config((NodeId(1), NodeId(3), NodeId(4)))
    asked = {out.to for out in solo.work() if out.message == vote(1, at(0, 0), Ballot.MIGRATION)}
    assert asked == {2, 3}


# Observers


def test_whoever_is_asked_gives_only_what_is_committed_and_remembers_nothing() -> None:
    solo = Solo((0, b"abcdef"), committed=4)
    request = PullRequest(at(0, 1), at(0, 0), 1000)
    (answer,) = solo.hear(9, request)
    assert answer == PullResponse(Epoch(0), at(0, 1), (run(0, 1, b"bcd"),), at(0, 4))
    assert solo.hear(9, request) == [answer]


# flush=os


def test_votes_of_the_unclean_do_not_count_unless_all_have_voted() -> None:
    solo = Solo()
    solo.group.stand(Ballot.REAL)
    solo.work()
    solo.hear(2, VoteResponse(Epoch(0), Ballot.REAL, True, False))
    assert not solo.group.is_leader
    solo.hear(3, VoteResponse(Epoch(0), Ballot.REAL, True, False))
    assert isinstance(solo.group.role, Leader)
    assert solo.group.role.may_have_lost


def test_the_unclean_say_so_until_they_hold_what_their_leader_had() -> None:
    solo = Solo((0, b"ab"))
    solo.group.is_clean = False
    answers = solo.hear(2, append(0, at(0, 3)))
    answers += solo.hear(2, _with_clean_at(append(0, at(0, 2), run(0, 2, b"c")), at(0, 4)))
    answers += solo.hear(2, _with_clean_at(append(0, at(0, 3), run(0, 3, b"d")), at(0, 4)))
    answers += solo.hear(2, append(0, at(0, 4)))
    assert [a.is_clean for a in answers if isinstance(a, AppendResponse)] == [False] * 3 + [True]


def _with_clean_at(request: AppendRequest, position: Position) -> AppendRequest:
    return AppendRequest(request.epoch, request.prev, request.entries, request.committed, position)


def test_acknowledgements_of_the_unclean_do_not_count_until_then() -> None:
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2)
    solo.produce(b"abc")
    unclean = AppendResponse(Epoch(0), at(0, 0), at(0, 2), is_clean=False)
    (told,) = solo.hear(2, unclean)
    assert isinstance(told, AppendRequest)
    assert told.clean_at == at(0, 3)
    assert solo.group.high_watermark == 0
    solo.hear(2, AppendResponse(Epoch(0), at(0, 2), at(0, 3), is_clean=False))
    assert solo.group.high_watermark == 3


def test_one_voter_with_its_writes_durable_at_once_commits_in_the_call() -> None:
    solo = Solo(config=Configuration((NodeId(1),)))
    solo.group.campaign()
    solo.work()
    solo.work()
    solo.group.appended(Offset(3), is_durable=True)
    assert solo.group.high_watermark == 3
