"""Scenarios of replicas that may have forgotten epochs and votes: their journal was damaged."""

import pytest

from tests.scenarios.cluster import Cluster, Envelope, Node, adding, at
from tidemark.partitions.raft.candidate import Candidate
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    VoteRequest,
    VoteResponse,
)
from tidemark.protocol.types import Epoch, NodeId


def look(cluster: Cluster, leader: int) -> None:
    """What a leader is made to do again and again while something is not as it should be."""
    cluster[leader].do(lambda g: g.check_quorum())
    cluster.settle()


def is_sure(node: Node) -> bool:
    return node.group.is_clean and not node.group.in_doubt


# A leader that was deposed with the forgotten vote


def deposed_by_a_forgotten_vote() -> Cluster:
    """1 leads epoch 0 and is cut off; 2 and 3 elect 3, which has committed `y` with 2. Then 2
    forgets all of that, and 3 is cut off."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"a")
    before = cluster[2].disk.durable.copy()
    cluster.partition({1}, {2, 3})
    cluster.elect(3, only={2, 3})
    cluster.produce(3, b"y", only={2, 3})
    assert cluster[3].committed == b"ay"
    assert cluster[1].group.is_leader
    cluster.crash(2, back_to=before)
    cluster.partition({1, 2}, {3})
    cluster.cut |= {(2, 3), (3, 2)}
    cluster.messages.clear()
    cluster.restart(2, in_doubt=True).dead.add(3)
    return cluster


def test_a_leader_that_was_deposed_with_the_forgotten_vote_commits_nothing() -> None:
    cluster = deposed_by_a_forgotten_vote()
    cluster.produce(1, b"z")
    look(cluster, 1)
    assert (cluster[2].log, cluster[1].committed) == (b"az", b"a")
    assert cluster[2].group.in_doubt
    cluster.heal()
    cluster.reconnect()
    cluster.settle()
    cluster.produce(3, b"x")
    assert [node.committed for node in cluster.nodes.values()] == [b"ayx"] * 3
    assert all(map(is_sure, cluster.nodes.values()))


def test_it_does_not_campaign_in_its_own_favour_either() -> None:
    """With nobody but the one in doubt it would not be elected again, and reads would end."""
    cluster = deposed_by_a_forgotten_vote()
    cluster.settle()
    look(cluster, 1)
    assert (cluster[1].group.is_leader, cluster[1].group.epoch) == (True, Epoch(0))


# A candidate that has the forgotten vote


def with_a_forgotten_vote_for_five() -> Cluster:
    """1 leads five. 5 stands in the next epoch and has the vote of 2, which has forgotten that."""
    cluster = Cluster(5)
    cluster.elect(1)
    cluster.produce(1, b"a")
    before = cluster[2].disk.durable.copy()
    cluster[5].do(lambda g: g.leader_lost())
    cluster[5].do(lambda g: g.stand(Ballot.REAL))
    cluster[5].persist()
    cluster[2].do(lambda g: g.leader_lost())
    cluster.deliver(*cluster.take(VoteRequest, to=2))
    cluster[2].persist()
    cluster.deliver(*cluster.take(VoteResponse, source=2))
    assert isinstance(cluster[5].group.role, Candidate)
    cluster.messages.clear()
    cluster.crash(2, back_to=before)
    cluster.cut |= {(1, 5), (5, 1)}
    cluster.restart(2, in_doubt=True)
    cluster.settle(only={1, 2})
    cluster.messages.clear()
    return cluster


def test_who_may_have_voted_for_another_does_not_count_for_this_leader() -> None:
    """4 has not heard of `z`, so that 5 can still win with the votes of 2 and 4."""
    cluster = with_a_forgotten_vote_for_five()
    assert cluster[1].group.is_leader
    cluster[1].append(b"z")
    cluster.settle(only={1, 2, 3})
    assert (cluster[2].log, cluster[3].log) == (b"az", b"az")
    assert cluster[1].committed == b"a"
    cluster[4].do(lambda g: g.leader_lost())
    vote = VoteRequest(cluster[5].group.epoch, Ballot.REAL, cluster[5].group.shape.last)
    cluster.deliver(Envelope(5, 4, vote))
    cluster[4].persist()
    cluster.deliver(*cluster.take(VoteResponse, source=4))
    assert cluster[5].group.is_leader


def test_something_newer_on_a_majority_of_the_others_keeps_the_candidate_from_winning() -> None:
    cluster = with_a_forgotten_vote_for_five()
    cluster[1].append(b"z")
    cluster.settle(only={1, 2, 3, 4})
    assert cluster[1].committed == b"az"
    assert is_sure(cluster[2])
    for voter in (3, 4):
        cluster[voter].do(lambda g: g.leader_lost())
        vote = VoteRequest(cluster[5].group.epoch, Ballot.REAL, cluster[5].group.shape.last)
        cluster.deliver(Envelope(5, voter, vote))
        cluster[voter].persist()
        cluster.deliver(*cluster.take(VoteResponse, source=voter))
    assert isinstance(cluster[5].group.role, Candidate)


def test_a_leader_that_is_in_doubt_itself_does_not_count_itself() -> None:
    """2 is elected by 1, 3 and 4; 5 has its forgotten vote, and may get that of 4."""
    cluster = with_a_forgotten_vote_for_five()
    cluster.cut.clear()
    cluster.cut |= {(2, 5), (5, 2)}
    cluster[1].do(lambda g: g.step_down())
    leader = cluster.win(2, [1, 2, 3, 4])
    assert leader.group.in_doubt
    cluster.settle(only={1, 2, 3})
    assert leader.group.committed.epoch < leader.group.epoch
    cluster.settle(only={1, 2, 3, 4})
    assert leader.group.is_serving
    assert is_sure(leader)


# How a doubt ends


def test_where_something_is_appended_a_repaired_replica_counts_with_that() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    node, epoch = _damaged(cluster, 2), cluster[1].group.epoch
    cluster.settle()
    assert (node.log, node.group.in_doubt) == (b"abc", True)
    cluster.produce(1, b"d")
    assert is_sure(node)
    assert cluster[1].group.epoch == epoch
    cluster.partition({1, 2}, {3})
    cluster.produce(1, b"e")
    assert cluster[1].committed == b"abcde"


def test_where_nothing_is_appended_the_leader_opens_another_epoch_itself() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    node, epoch = _damaged(cluster, 2), cluster[1].group.epoch
    cluster.settle()
    assert cluster[1].group.has_in_flight  # so that it is looked at
    look(cluster, 1)
    assert is_sure(node)
    assert (cluster[1].group.is_serving, cluster[1].group.epoch) == (True, epoch + 1)
    look(cluster, 1)
    assert cluster[1].group.epoch == epoch + 1
    assert not cluster[1].group.has_in_flight


def _change_that_waits(voters: list[int], heirs: set[int]) -> Cluster:
    """1 leads, will be no voter, and is about to hand over; nobody has heard of that."""
    cluster = Cluster(max(heirs), voters=voters)
    cluster.elect(1)
    for heir in heirs - {*voters}:
        cluster[1].do(adding(heir))
    cluster.produce(1, b"abc")
    cluster[1].do(lambda g: g.change_config(tuple(map(NodeId, sorted(heirs)))))
    while not cluster.take(HandOver):
        for node in cluster.nodes.values():
            node.persist()
        cluster.deliver(*cluster.messages[:1])
        del cluster.messages[:1]
    return cluster


def test_a_change_whose_only_heir_is_in_doubt_is_finished_all_the_same() -> None:
    """Its leader may lead no more, and the heir may not yet: first the doubt has to end."""
    cluster = _change_that_waits([1], {2})
    node = _damaged(cluster, 2)
    cluster.settle()
    look(cluster, 1)
    assert is_sure(node)
    cluster[1].do(lambda g: g.abort_hand_over())  # told before it was sure, and asked again
    look(cluster, 1)
    assert node.group.is_serving
    assert node.group.config == Configuration((NodeId(2),))
    cluster.produce(2, b"d")
    assert node.committed == b"abcd"


def test_who_is_in_doubt_is_not_handed_the_lead_while_there_is_somebody_else() -> None:
    cluster = _change_that_waits([1, 2, 3], {2, 3, 4})
    first = cluster[1].group.successor
    assert first is not None
    cluster.crash(first)
    cluster.restart(first, in_doubt=True)
    cluster.settle()
    look(cluster, 1)
    (leader,) = [node for node in cluster.nodes.values() if node.group.is_serving]
    assert leader.id not in (1, first)
    assert leader.group.config == Configuration((NodeId(2), NodeId(3), NodeId(4)))


def test_two_of_three_that_are_damaged_one_after_the_other_elect_as_before() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    for victim in (2, 3):
        node = _damaged(cluster, victim)
        cluster.settle()
        cluster.produce(1, b"a")
        assert is_sure(node)
    cluster.crash(1)
    cluster.elect(2)
    assert cluster[2].committed == b"aa"


def test_of_two_voters_both_have_to_hold_something_newer() -> None:
    cluster = Cluster(2)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    node = _damaged(cluster, 2)
    cluster.settle()
    assert cluster[1].group.is_leader
    look(cluster, 1)
    assert is_sure(node)
    cluster.produce(1, b"d")
    assert node.committed == b"abcd"
    assert not _may_have_lost(cluster[1])


@pytest.mark.parametrize("longest", [1, 2])
def test_a_majority_in_doubt_elects_with_all_the_others(longest: int) -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    if longest == 2:
        cluster.crash(1)
        cluster.elect(2)
    both = [_damaged(cluster, victim) for victim in (2, 3)]
    for node in cluster.nodes.values():
        node.do(lambda g: g.step_down())
    cluster.messages.clear()
    if 1 not in cluster.nodes:
        for node in both:
            node.do(lambda g: g.campaign())
            cluster.settle()
            assert not node.group.is_leader
        cluster.restart(1)
    cluster.elect(longest)
    assert _may_have_lost(cluster[longest])
    look(cluster, longest)
    cluster.beat()
    assert all(map(is_sure, cluster.nodes.values()))
    assert {node.committed for node in cluster.nodes.values()} == {b"abc"}


def test_who_gave_way_counts_as_having_voted_in_its_leaders_epoch() -> None:
    """It may have voted in that epoch: for one that lost, and still asks."""
    cluster = Cluster(3)
    cluster.elect(1)
    node = _damaged(cluster, 2)
    cluster.settle()
    cluster.produce(1, b"a")
    assert is_sure(node)
    assert node.disk.durable.hard_state.voted_for is not None
    node.do(lambda g: g.leader_lost())
    epoch = node.group.epoch
    cluster.deliver(Envelope(3, 2, VoteRequest(epoch, Ballot.REAL, at(epoch, 99))))
    node.persist()
    (answer,) = cluster.take(VoteResponse)
    assert answer.message == VoteResponse(epoch, Ballot.REAL, False)


def test_only_a_word_for_this_very_life_ends_a_doubt() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"a")
    node = _damaged(cluster, 2)
    cluster.settle()
    last, life = node.group.shape.last, node.group.life
    for ends_doubt in (0, life - 1):
        word = AppendRequest(last.epoch, last, (), last, last, ends_doubt)
        cluster.deliver(Envelope(1, 2, word))
        node.persist()
        assert node.group.in_doubt
    cluster.deliver(Envelope(1, 2, AppendRequest(last.epoch, last, (), last, last, life)))
    node.persist()
    assert is_sure(node)


def test_an_answer_of_an_earlier_life_says_nothing() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.crash(3)
    cluster[1].append(b"a")
    cluster[1].persist()
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    _damaged(cluster, 2)
    cluster.settle()
    late = AppendResponse(Epoch(0), at(0, 0), at(0, 1), is_clean=True, life=1)
    cluster.deliver(Envelope(2, 1, late))
    cluster[1].append(b"b")
    cluster[1].persist()
    assert cluster[1].committed == b""


def test_a_replica_in_doubt_leads_nothing_that_nobody_else_was_asked_about() -> None:
    """Neither alone, nor because the leader wants it."""
    alone = Cluster(1)
    alone.elect(1)
    _damaged(alone, 1)
    alone[1].do(lambda g: g.campaign())
    alone[1].persist()
    assert not alone[1].group.is_leader
    cluster = Cluster(3)
    cluster.elect(1)
    _damaged(cluster, 2)
    cluster.settle()
    epoch = cluster[2].group.epoch
    cluster[2].do(lambda g: g.campaign(is_migration=True))
    assert cluster[2].group.epoch == epoch


def _damaged(cluster: Cluster, node: int) -> Node:
    """It remembers its log, and no epoch and no vote but what the log tells."""
    image = cluster[node].disk.durable.copy()
    image.hard_state = type(image.hard_state)(Epoch(-1), None)
    cluster.crash(node, back_to=image)
    return cluster.restart(node, in_doubt=True)


def _may_have_lost(node: Node) -> bool:
    role = node.group.role
    assert isinstance(role, Leader)
    return role.may_have_lost
