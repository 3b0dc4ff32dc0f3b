"""Scenarios of votes and epochs."""

import pytest

from tests.scenarios.cluster import Cluster, Envelope, at
from tidemark.partitions.raft.candidate import Candidate, PreCandidate
from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.messages import (
    AppendRequest,
    Ballot,
    HardState,
    Opened,
    VoteRequest,
    VoteResponse,
)
from tidemark.protocol.types import Epoch, NodeId


def test_a_cluster_elects_replicates_and_commits() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    assert [node.committed for node in cluster.nodes.values()] == [b"abc"] * 3


def test_a_vote_that_was_not_durable_was_not_given() -> None:
    """Grant, lose power before the sync, restart: another candidate of that epoch is voted for."""
    cluster = Cluster(3)
    cluster[1].do(lambda g: g.stand(Ballot.REAL))
    cluster[1].persist()
    cluster.deliver(*cluster.take(VoteRequest, to=2))
    assert not cluster.take(VoteResponse)  # it waits for the sync
    cluster.crash(2)
    cluster.restart(2)
    cluster[3].do(lambda g: g.stand(Ballot.REAL))
    cluster[3].persist()
    cluster.deliver(*cluster.take(VoteRequest, source=3, to=2))
    cluster[2].persist()
    cluster.deliver(*cluster.take(VoteResponse, source=2))
    assert cluster[3].group.is_leader
    assert not cluster[1].group.is_leader


def test_a_durable_vote_is_remembered_after_a_crash() -> None:
    cluster = Cluster(3)
    cluster[1].do(lambda g: g.stand(Ballot.REAL))
    cluster[1].persist()
    cluster.deliver(*cluster.take(VoteRequest, to=2))
    cluster[2].persist()
    cluster.crash(2)
    cluster.restart(2)
    cluster[3].do(lambda g: g.stand(Ballot.REAL))
    cluster[3].persist()
    cluster.deliver(*cluster.take(VoteRequest, source=3, to=2))
    cluster[2].persist()
    (refusal,) = cluster.take(VoteResponse, to=3)
    assert refusal.message == VoteResponse(Epoch(0), Ballot.REAL, False)


def test_an_epoch_heard_of_is_durable_before_an_append_is_answered() -> None:
    """Else it could vote in an epoch older than one it acknowledged entries in."""
    cluster = Cluster(3)
    cluster.win(1, {1, 2})
    cluster.deliver(*cluster.take(AppendRequest, to=3))
    assert not [e for e in cluster.messages if e.source == 3]
    cluster[3].persist()
    assert [e for e in cluster.messages if e.source == 3]
    assert cluster[3].disk.durable.hard_state == HardState(Epoch(0), None)


def test_a_candidate_asks_only_once_its_own_vote_is_durable() -> None:
    cluster = Cluster(3)
    cluster[1].do(lambda g: g.stand(Ballot.REAL))
    assert not cluster.messages
    cluster.crash(1)
    assert cluster.restart(1).group.epoch == -1
    cluster[1].do(lambda g: g.stand(Ballot.REAL))
    cluster[1].persist()
    cluster.crash(1)
    assert cluster.restart(1).group.epoch == 0


def test_a_stale_vote_is_not_counted_in_a_later_epoch() -> None:
    cluster = Cluster(5)
    cluster[1].do(lambda g: g.stand(Ballot.REAL))
    cluster[1].persist()
    for voter in (2, 3):
        cluster.deliver(*cluster.take(VoteRequest, to=voter))
        cluster[voter].persist()
    late = cluster.take(VoteResponse)
    cluster[1].do(lambda g: g.stand(Ballot.REAL))
    cluster[1].persist()
    cluster.deliver(*late)
    assert isinstance(cluster[1].group.role, Candidate)


def test_a_vote_counts_once_however_often_it_arrives() -> None:
    cluster = Cluster(5)
    cluster[1].do(lambda g: g.stand(Ballot.REAL))
    cluster[1].persist()
    cluster.deliver(*cluster.take(VoteRequest, to=2))
    cluster[2].persist()
    votes = cluster.take(VoteResponse)
    cluster.deliver(*votes, *votes, *votes)
    assert not cluster[1].group.is_leader


def test_a_yes_to_the_pre_vote_is_no_vote() -> None:
    cluster = Cluster(3)
    cluster[1].do(lambda g: g.campaign())
    cluster.deliver(*cluster.take(VoteRequest, to=2))
    yes = cluster.take(VoteResponse)
    cluster.deliver(*yes)
    assert isinstance(cluster[1].group.role, Candidate)
    cluster[1].persist()
    cluster.deliver(*yes)
    assert not cluster[1].group.is_leader


def test_a_yes_to_an_older_pre_vote_is_not_counted() -> None:
    cluster = Cluster(3)
    cluster[1].do(lambda g: g.campaign())
    cluster.deliver(*cluster.take(VoteRequest, to=2))
    late = cluster.take(VoteResponse)
    cluster[1].do(lambda g: g.heard_leader(NodeId(3), Epoch(4), at(4, 0)))
    cluster[1].do(lambda g: g.campaign())
    cluster.deliver(*late)
    assert isinstance(cluster[1].group.role, PreCandidate)


def test_a_longer_log_of_an_older_epoch_loses() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"long log of an old epoch")
    cluster[1].persist()
    cluster.take()
    cluster.elect(2, only={2, 3})
    cluster.messages.clear()
    cluster[1].do(lambda g: g.step_down())
    cluster[3].do(lambda g: g.leader_lost())
    request = VoteRequest(Epoch(9), Ballot.REAL, cluster[1].group.shape.last)
    cluster.deliver(Envelope(1, 3, request))
    cluster[3].persist()
    (answer,) = cluster.take(VoteResponse)
    assert answer.message == VoteResponse(Epoch(9), Ballot.REAL, False)


def test_a_shorter_log_of_the_same_epoch_loses() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"x")
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.take()
    cluster[2].do(lambda g: g.leader_lost())
    cluster.deliver(Envelope(3, 2, VoteRequest(Epoch(1), Ballot.REAL, at(0, 0))))
    cluster[2].persist()
    (answer,) = cluster.take(VoteResponse)
    assert answer.message == VoteResponse(Epoch(1), Ballot.REAL, False)


def test_voters_that_hear_a_leader_refuse_others() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[3].do(lambda g: g.stand(Ballot.REAL))
    cluster[3].persist()
    cluster.deliver(*cluster.take(VoteRequest))
    assert cluster[1].group.is_leader
    assert cluster[2].group.epoch == 0
    assert all(
        isinstance(e.message, VoteResponse) and not e.message.granted
        for e in cluster.take(VoteResponse)
    )


def test_voters_whose_leader_is_silent_vote() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[2].dead = {1}
    cluster[3].do(lambda g: g.campaign())
    cluster.carry_votes(3, {2})
    assert cluster[3].group.is_leader


def test_a_leader_that_asks_for_votes_is_no_leader_any_more() -> None:
    """It was restarted before anybody noticed: nobody waits for it to be declared dead."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.crash(1)
    cluster.restart(1)
    cluster.messages.clear()
    cluster[1].do(lambda g: g.campaign())
    cluster.carry_votes(1, {2})
    assert cluster[1].group.is_leader


def test_a_replica_that_was_cut_off_disturbs_nobody() -> None:
    """Without a pre-vote its epoch grows while it is alone, and deposes the leader."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.partition({1, 2}, {3})
    for _ in range(60):
        cluster[3].do(lambda g: g.campaign())
        cluster.settle()
    assert cluster[3].group.epoch == 0
    cluster.heal()
    cluster.reconnect()
    cluster.settle()
    assert cluster[1].group.is_leader
    assert cluster[1].group.epoch == 0
    assert cluster[3].group.leader == 1


def test_a_leader_speaks_to_one_that_asks_for_votes() -> None:
    """It does not hear the leader, or it would not ask; the leader's answer ends its candidacy."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[3].do(lambda g: g.campaign())
    cluster.settle()
    assert isinstance(cluster[3].group.role, Follower)
    assert cluster[3].group.leader == 1
    assert cluster[1].group.is_leader


def test_a_candidate_follows_the_leader_of_its_own_epoch() -> None:
    cluster = Cluster(3)
    cluster[3].do(lambda g: g.stand(Ballot.REAL))
    cluster.win(1, {1, 2})
    assert cluster[3].group.epoch == cluster[1].group.epoch
    cluster.settle()
    assert isinstance(cluster[3].group.role, Follower)
    assert cluster[3].group.leader == 1


def test_a_candidate_that_hears_of_a_leader_follows_it() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[3].do(lambda g: g.campaign())
    cluster.take()
    cluster.beat()
    assert isinstance(cluster[3].group.role, Follower)
    assert cluster[3].group.leader == 1


@pytest.mark.parametrize("who_asks_first", [1, 2])
def test_an_old_epoch_with_a_long_log_and_a_new_one_with_a_short_log_agree(
    who_asks_first: int,
) -> None:
    """Of two voters of three that are left, one has the votes' epoch, the other the log."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc", only={1, 3})
    cluster.crash(3)
    cluster[1].do(lambda g: g.step_down())
    cluster[2].do(lambda g: g.leader_lost())
    for _ in range(4):
        cluster[2].do(lambda g: g.stand(Ballot.REAL))
        cluster[2].persist()
        cluster.take()
    assert cluster[2].group.epoch > cluster[1].group.epoch
    for candidate in [who_asks_first, 3 - who_asks_first] * 3:
        cluster[candidate].do(lambda g: g.campaign())
        cluster.settle()
        if cluster[1].group.is_serving:
            break
    assert cluster[1].group.is_serving


def test_a_new_attempt_asks_again() -> None:
    cluster = Cluster(3)
    cluster[1].do(lambda g: g.campaign())
    cluster.take()
    cluster[1].do(lambda g: g.campaign())
    assert len(cluster.take(VoteRequest)) == 2
    assert isinstance(cluster[1].group.role, PreCandidate)


def test_a_leader_that_hears_no_majority_steps_down() -> None:
    """KAFKA-15489: it can send and is followed for ever, but nothing is ever committed."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].dead = {2, 3}
    cluster[1].do(lambda g: g.check_quorum())
    assert not cluster[1].group.is_leader
    assert cluster[1].servings == [True, False]


def test_a_leader_that_hears_a_majority_stays() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].dead = {3}
    cluster[1].do(lambda g: g.check_quorum())
    assert cluster[1].group.is_serving


def test_who_has_lost_the_voters_from_sight_is_elected_in_vain() -> None:
    """It would lead alone: a leader looks after its majority when it loses one of it."""
    cluster = Cluster(3)
    cluster[1].do(lambda g: g.campaign())
    cluster.deliver(*cluster.take(VoteRequest))
    cluster.deliver(*cluster.take(VoteResponse))  # to the pre-vote
    cluster[1].persist()
    cluster.deliver(*cluster.take(VoteRequest, to=2))
    cluster[2].persist()
    cluster[1].dead = {2, 3}
    (vote,) = cluster.take(VoteResponse, source=2)
    cluster.deliver(vote)
    assert not cluster[1].group.is_leader
    cluster[1].dead = {3}
    cluster.deliver(vote)  # as when it asks again
    assert cluster[1].group.is_leader


def test_a_single_voter_stays_leader() -> None:
    """KAFKA-16144: it hears nobody, and needs nobody."""
    cluster = Cluster(1)
    cluster.elect(1)
    cluster[1].do(lambda g: g.check_quorum())
    assert cluster[1].group.is_serving


def test_an_attempt_whose_requests_have_not_left_is_not_begun_anew() -> None:
    """While the disk is slow, epochs would fly by and nobody be asked."""
    cluster = Cluster(1)
    for _ in range(5):
        cluster[1].do(lambda g: g.campaign())
    assert cluster[1].group.epoch == 0
    cluster.settle()
    assert cluster[1].group.is_serving


def test_a_single_voter_leads_once_its_vote_is_durable() -> None:
    cluster = Cluster(1)
    cluster[1].do(lambda g: g.campaign())
    cluster[1].persist()
    assert (cluster[1].group.is_leader, cluster[1].servings) == (True, [])
    cluster[1].persist()
    assert (cluster[1].group.is_leader, cluster[1].servings) == (True, [True])


def test_leaders_are_told_of_to_the_shell() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[2].do(lambda g: g.leader_lost())
    assert [news.leader for news in cluster[2].leaderships] == [None, 1, None]
    cluster[2].do(lambda g: g.heard_leader(NodeId(1), Epoch(0), at(0, 0)))
    assert cluster[2].leaderships[-1].leader == 1


@pytest.mark.parametrize("ballot", [Ballot.PRE, Ballot.REAL])
def test_a_voter_that_is_there_late_is_asked_again(ballot: Ballot) -> None:
    cluster = Cluster(3)
    cluster.crash(3)
    if ballot is Ballot.PRE:
        cluster[1].do(lambda g: g.campaign())
    else:
        cluster[1].do(lambda g: g.stand(Ballot.REAL))
        cluster[1].persist()
    assert len(cluster.take(VoteRequest)) == 2
    cluster.deliver(Envelope(2, 1, Opened(Epoch(-1))))
    (again,) = cluster.take(VoteRequest)
    assert again.to == 2
    cluster.deliver(again)
    cluster.settle()
    assert cluster[1].group.is_leader


def test_a_voter_that_is_there_late_hears_nothing_of_a_vote_that_is_not_durable() -> None:
    cluster = Cluster(3)
    cluster[1].do(lambda g: g.stand(Ballot.REAL))
    cluster.deliver(Envelope(2, 1, Opened(Epoch(-1))))
    assert not cluster.take(VoteRequest)
    cluster[1].persist()
    assert len(cluster.take(VoteRequest)) == 2


def test_only_voters_are_asked_for_votes_however_often_they_say_that_they_are_there() -> None:
    cluster = Cluster(4, voters=[1, 2, 3])
    cluster[1].do(lambda g: g.campaign())
    cluster.take(VoteRequest)
    cluster.deliver(Envelope(4, 1, Opened(Epoch(-1))))
    assert not cluster.take(VoteRequest)
