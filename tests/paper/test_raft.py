"""Raft by section: "In Search of an Understandable Consensus Algorithm" (extended version).

Sections with a D are of Ongaro's dissertation, "Consensus: Bridging Theory and Practice".
"""

from __future__ import annotations

import pytest

from tests.paper.solo import FIVE, Solo, append, at, run, start, vote
from tidemark.partitions.raft.candidate import Candidate, PreCandidate
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    HardState,
    ResetRequest,
    VoteRequest,
    VoteResponse,
)
from tidemark.protocol.types import Epoch, NodeId, Offset

PROBE = at(0, 3)


# 5.1 Terms


def test_5_1_a_larger_term_is_taken_over_at_once() -> None:
    solo = Solo((0, b"abc"))
    solo.become_leader()
    solo.hear(2, AppendResponse(Epoch(9), PROBE, None))
    assert solo.group.epoch == 9
    assert isinstance(solo.group.role, Follower)


def test_5_1_a_request_with_a_stale_term_is_refused() -> None:
    solo = Solo((0, b"abc"), epoch=4)
    (answer,) = solo.hear(2, append(3, PROBE, start(3, 3)))
    assert answer == AppendResponse(Epoch(4), PROBE, None)
    (answer,) = solo.hear(2, vote(3, at(3, 9)))
    assert answer == VoteResponse(Epoch(4), Ballot.REAL, False)


# 5.2 Leader election


def test_5_2_a_candidate_increments_its_term_and_votes_for_itself() -> None:
    solo = Solo((0, b"abc"))
    solo.group.campaign()
    solo.work()
    solo.hear(2, VoteResponse(Epoch(1), Ballot.PRE, True))
    assert isinstance(solo.group.role, Candidate)
    assert solo.disk.written.hard_state == HardState(Epoch(1), NodeId(1))


def test_5_2_one_vote_a_term_first_come_first_served() -> None:
    solo = Solo((0, b"abc"))
    first = solo.hear(2, vote(1, PROBE))
    second = solo.hear(3, vote(1, PROBE))
    again = solo.hear(2, vote(1, PROBE))
    assert [m.granted for m in (*first, *second, *again) if isinstance(m, VoteResponse)] == [
        True,
        False,
        True,
    ]


def test_5_2_a_majority_of_votes_makes_a_leader() -> None:
    solo = Solo((0, b"abc"), config=FIVE)
    solo.group.stand(Ballot.REAL)
    solo.work()
    solo.hear(2, VoteResponse(Epoch(1), Ballot.REAL, True))
    assert not solo.group.is_leader
    solo.hear(3, VoteResponse(Epoch(1), Ballot.REAL, True))
    assert solo.group.is_leader


def test_5_2_a_leader_says_so_at_once() -> None:
    solo = Solo((0, b"abc"))
    said = solo.become_leader()
    assert [m.entries for m in said if isinstance(m, AppendRequest)] == [(start(1, 3, 1),)] * 2


def test_5_2_a_candidate_returns_to_follower_for_a_leader_of_its_term() -> None:
    solo = Solo((0, b"abc"))
    solo.group.stand(Ballot.REAL)
    solo.work()
    solo.hear(2, append(1, PROBE, start(1, 3)))
    assert isinstance(solo.group.role, Follower)
    assert solo.group.leader == 2


def test_5_2_a_candidate_goes_on_when_an_older_leader_speaks() -> None:
    solo = Solo((0, b"abc"))
    solo.group.stand(Ballot.REAL)
    solo.work()
    solo.hear(2, append(0, PROBE))
    assert isinstance(solo.group.role, Candidate)


def test_5_2_after_a_split_vote_the_next_term_begins() -> None:
    solo = Solo((0, b"abc"))
    solo.group.stand(Ballot.REAL)
    solo.work()
    solo.group.campaign()
    solo.work()
    solo.hear(2, VoteResponse(Epoch(2), Ballot.PRE, True))
    assert solo.group.epoch == 2


# 5.3 Log replication


def test_5_3_an_append_is_refused_without_the_entry_before_it() -> None:
    solo = Solo((0, b"abc"))
    (answer,) = solo.hear(2, append(2, at(1, 5), start(2, 5)))
    assert answer == AppendResponse(Epoch(2), at(1, 5), None, at(0, 3))
    assert solo.log == b"abc"


def test_5_3_a_conflicting_entry_goes_with_all_that_follow_it() -> None:
    solo = Solo((0, b"ab"), (1, b"cde"))
    solo.hear(2, append(2, at(0, 2), start(2, 2), run(2, 2, b"x")))
    assert solo.log == b"abx"
    assert [row.epoch for row in solo.group.shape.rows] == [0, 2]


def test_5_3_a_leader_never_changes_its_own_log() -> None:
    solo = Solo((0, b"abc"))
    solo.become_leader()
    solo.hear(2, append(1, at(0, 1), run(0, 1, b"xyz")))
    solo.hear(2, AppendResponse(Epoch(1), at(0, 3), None, at(0, 1)))
    assert solo.log == b"abc"


def test_5_3_the_next_attempt_begins_where_the_follower_says() -> None:
    """In place of one entry at a time (§5.3, "can be optimized")."""
    solo = Solo((0, b"abc"), (2, b"de"), (4, b"f"))
    solo.become_leader()
    (retry,) = solo.hear(2, AppendResponse(Epoch(5), at(4, 6), None, at(1, 2)))
    assert isinstance(retry, AppendRequest)
    assert retry.prev == at(0, 3)


def test_5_3_what_a_majority_holds_is_committed() -> None:
    solo = Solo(config=FIVE)
    solo.become_leader((2, 3, 4))
    solo.produce(b"abc")
    solo.acknowledge(2)
    assert solo.group.high_watermark == 0
    solo.acknowledge(3)
    assert solo.group.committed == at(0, 3)


def test_5_3_followers_learn_what_is_committed_with_the_next_append() -> None:
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2)
    (sent,) = [m for m in solo.produce(b"abc") if isinstance(m, AppendRequest)]
    assert sent.committed == at(0, 0)
    follower = Solo((0, b"abc"))
    follower.hear(2, append(0, at(0, 3), run(0, 3, b"d"), committed=at(0, 2)))
    assert follower.group.high_watermark == 2
    follower.hear(2, append(0, at(0, 4), committed=at(0, 9)))
    assert follower.group.high_watermark == 4


# 5.4 Safety


@pytest.mark.parametrize(
    ("last", "granted"),
    [(at(1, 9), False), (at(2, 4), False), (at(2, 5), True), (at(2, 6), True), (at(3, 1), True)],
)
def test_5_4_1_a_vote_goes_to_a_log_at_least_as_up_to_date(
    last: tuple[int, int], granted: bool
) -> None:
    solo = Solo((0, b"ab"), (2, b"cde"))
    (answer,) = solo.hear(2, vote(7, at(*last)))
    assert answer == VoteResponse(Epoch(7), Ballot.REAL, granted)


def test_5_4_2_entries_of_earlier_terms_are_not_committed_by_counting() -> None:
    solo = Solo((0, b"abc"))
    solo.become_leader()
    solo.acknowledge(2, 3, position=at(0, 3))
    assert solo.group.committed < at(0, 3)
    solo.acknowledge(2)
    assert solo.group.committed == at(1, 3)


def test_5_5_requests_are_idempotent() -> None:
    solo = Solo((0, b"abc"))
    request = append(1, PROBE, start(1, 3), run(1, 3, b"de"))
    first = solo.hear(2, request)
    assert solo.hear(2, request) == first
    assert solo.log == b"abcde"


# 6 Membership


def _joint() -> Solo:
    """A leader with its log at all of 1 to 4, in a joint configuration from 1, 2, 3 to 1, 2, 4."""
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2, 3)
    solo.group.add_learner(NodeId(4))
    solo.work()
    solo.acknowledge(4)
    solo.group.change_config((NodeId(1), NodeId(2), NodeId(4)))
    solo.work()
    solo.hear(2, VoteResponse(Epoch(1), Ballot.MIGRATION, True))
    assert solo.group.config.is_joint
    return solo


def test_6_a_configuration_is_in_force_once_it_is_in_the_log() -> None:
    solo = Solo((0, b"abc"))
    other = Configuration((NodeId(2), NodeId(3), NodeId(4)), (NodeId(1), NodeId(2), NodeId(3)))
    solo.hear(2, append(1, PROBE, start(1, 3, config=other)), persist=False)
    assert solo.group.config == other
    assert solo.group.committed < at(1, 3)


def test_6_entries_go_to_the_servers_of_both_configurations() -> None:
    solo = _joint()
    assert [p.node for p in solo.group.progress() if p.is_voter] == [2, 3, 4]


def test_6_agreement_needs_majorities_of_both() -> None:
    solo = _joint()
    solo.acknowledge(3)  # 1 and 3: a majority of the old, not of the new
    assert not solo.group.is_serving
    solo.acknowledge(4)
    assert solo.group.committed.epoch == 1


def test_6_the_new_configuration_follows_once_the_joint_one_is_committed() -> None:
    solo = _joint()
    said = solo.acknowledge(2)
    assert {m.ballot for m in said if isinstance(m, VoteRequest)} == {Ballot.MIGRATION}
    for voter in (2, 4):
        solo.hear(voter, VoteResponse(Epoch(2), Ballot.MIGRATION, True))
    assert solo.group.config == Configuration((NodeId(1), NodeId(2), NodeId(4)))


def test_6_a_new_server_catches_up_without_a_vote() -> None:
    solo = Solo()
    solo.become_leader()
    solo.group.add_learner(NodeId(4))
    solo.work()
    solo.acknowledge(4)
    assert solo.group.committed < at(0, 0)


def test_6_a_server_outside_the_configuration_does_not_campaign() -> None:
    solo = Solo(config=Configuration((NodeId(2), NodeId(3), NodeId(4))))
    solo.group.campaign()
    assert not solo.group.has_ready


def test_6_requests_for_votes_are_disregarded_while_a_leader_is_heard() -> None:
    solo = Solo((0, b"abc"))
    solo.hear(2, append(0, PROBE))
    (answer,) = solo.hear(3, vote(7, at(6, 9)))
    assert answer == VoteResponse(Epoch(0), Ballot.REAL, False)
    assert solo.group.epoch == 0


# 7 Log compaction


def _reset(epoch: int, offset: int) -> ResetRequest:
    return ResetRequest(Epoch(5), at(epoch, offset), (start(epoch, 0),), b"", at(epoch, offset))


def test_7_a_snapshot_replaces_a_log_that_lacks_it() -> None:
    solo = Solo((0, b"abc"))
    (answer,) = solo.hear(2, _reset(4, 40))
    assert answer == AppendResponse(Epoch(5), at(4, 40), at(4, 40))
    assert (solo.group.shape.start, solo.group.high_watermark) == (at(4, 40), 40)


def test_7_a_snapshot_of_a_prefix_leaves_what_follows_it() -> None:
    solo = Solo((0, b"abc"))
    (answer,) = solo.hear(2, _reset(0, 2))
    assert answer == AppendResponse(Epoch(5), at(0, 2), at(0, 2))
    assert solo.log == b"abc"


def test_7_a_follower_that_needs_what_is_gone_gets_a_snapshot() -> None:
    solo = Solo((0, b"abcdef"), committed=6)
    solo.disk.trim(Offset(4))
    solo.group.trim(Offset(4))
    solo.become_leader()
    (reset,) = solo.hear(2, AppendResponse(Epoch(1), at(0, 6), None, at(0, 2)))
    assert isinstance(reset, ResetRequest)
    assert reset.start == at(0, 4)


# 8 Client interaction


def test_8_a_leader_begins_its_term_with_an_entry_of_its_own() -> None:
    solo = Solo((0, b"abc"))
    solo.become_leader()
    assert solo.group.shape.rows[-1] == start(1, 3, 1)
    assert not solo.group.is_serving
    solo.acknowledge(2)
    assert solo.group.is_serving


# The dissertation


def test_d3_10_a_leader_that_hands_over_takes_no_more_and_brings_its_heir_up_to_date() -> None:
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2)
    solo.produce(b"abc")
    solo.group.hand_over(NodeId(2))
    assert not solo.group.is_accepting
    assert not [o for o in solo.work() if isinstance(o.message, HandOver)]
    assert HandOver(Epoch(0)) in solo.acknowledge(2)


def test_d3_10_the_heir_campaigns_at_once_and_voters_that_hear_the_leader_vote() -> None:
    heir = Solo((0, b"abc"))
    heir.hear(2, append(0, PROBE))
    requests = heir.hear(2, HandOver(Epoch(0)))
    assert requests == [vote(1, PROBE, Ballot.MIGRATION)] * 2
    voter = Solo((0, b"abc"))
    voter.hear(2, append(0, PROBE))
    (answer,) = voter.hear(3, requests[0])
    assert answer == VoteResponse(Epoch(1), Ballot.MIGRATION, True)


def test_d4_1_a_change_begins_only_after_an_entry_of_the_own_term_is_committed() -> None:
    solo = Solo((0, b"abc"))
    solo.become_leader()
    with pytest.raises(Exception, match="not committed"):
        solo.group.change_config((NodeId(1), NodeId(2)))


def test_d6_2_a_leader_steps_down_without_a_round_with_a_majority() -> None:
    solo = Solo()
    solo.become_leader()
    solo.dead = {2, 3}
    solo.group.check_quorum()
    assert not solo.group.is_leader


def test_d9_6_a_pre_vote_moves_no_term() -> None:
    solo = Solo((0, b"abc"))
    solo.group.campaign()
    said = [out.message for out in solo.work()]
    assert said == [vote(1, PROBE, Ballot.PRE)] * 2
    assert isinstance(solo.group.role, PreCandidate)
    assert solo.group.epoch == 0
    (answer,) = solo.hear(2, vote(5, PROBE, Ballot.PRE))
    assert answer == VoteResponse(Epoch(5), Ballot.PRE, True)
    assert solo.group.epoch == 0
    assert solo.disk.written.hard_state == HardState(Epoch(0), None)


def test_d10_2_1_a_leader_writes_and_sends_at_the_same_time() -> None:
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2, 3)
    assert [m for m in solo.produce(b"abc", persist=False) if isinstance(m, AppendRequest)]
    solo.acknowledge(2)
    assert solo.group.high_watermark == 0
    solo.acknowledge(3)
    assert solo.group.high_watermark == 3


def test_d10_2_2_a_leader_sends_the_next_entries_before_the_last_are_acknowledged() -> None:
    solo = Solo()
    solo.become_leader()
    solo.acknowledge(2)
    sent = [*solo.produce(b"a"), *solo.produce(b"b"), *solo.produce(b"c")]
    assert [m.prev for m in sent if isinstance(m, AppendRequest)] == [at(0, n) for n in range(3)]
