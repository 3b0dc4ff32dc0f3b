"""Scenarios of a leader that gives the lead to another."""

import pytest

from tests.scenarios.cluster import Cluster
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse, HandOver
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId


def test_the_lead_goes_over_in_one_election() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    cluster[1].do(lambda g: g.hand_over(NodeId(2)))
    cluster.settle()
    assert cluster[2].group.is_serving
    assert cluster[2].group.epoch == 1
    assert cluster[1].group.leader == 2


def test_the_successor_is_told_only_once_it_has_everything() -> None:
    """Redpanda#2606: told too early, it loses the election, and nobody leads."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"abc")
    cluster[1].do(lambda g: g.hand_over(NodeId(2)))
    assert not cluster.take(HandOver)
    assert not cluster[1].group.is_accepting
    cluster.settle()
    assert cluster[2].group.is_serving
    assert cluster[2].committed == b"abc"


def test_a_pre_vote_does_not_stop_it() -> None:
    """RedisLabs/raft#88: the voters hear a leader, and vote all the same: it wants them to."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].do(lambda g: g.hand_over(NodeId(3)))
    cluster.settle(only={2, 3})
    cluster.deliver(*cluster.take(HandOver))
    cluster.settle(only={2, 3})
    assert cluster[3].group.is_leader


def test_a_hand_over_to_a_dead_successor_ends() -> None:
    """openraft#1747: writes were blocked for hours."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.crash(2)
    cluster[1].dead = {2}
    cluster[1].do(lambda g: g.hand_over(NodeId(2)))
    cluster.settle()
    assert cluster[1].group.successor == 2
    cluster[1].do(lambda g: g.check_quorum())
    assert cluster[1].group.is_accepting
    cluster.produce(1, b"abc")
    assert cluster[1].committed == b"abc"


def test_a_hand_over_that_takes_too_long_is_given_up() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].append(b"abc")
    cluster.take(AppendRequest, to=2)
    cluster[1].do(lambda g: g.hand_over(NodeId(2)))
    cluster.settle()
    assert cluster[1].group.successor == 2
    cluster[1].do(lambda g: g.abort_hand_over())
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    cluster.settle()
    assert cluster[1].group.is_accepting
    assert cluster[1].group.is_serving


def test_a_hand_over_that_got_lost_is_said_again() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].do(lambda g: g.hand_over(NodeId(2)))
    cluster.take(HandOver)
    cluster[1].do(lambda g: g.peer_reset(NodeId(2)))
    cluster.settle()
    assert cluster[2].group.is_serving


def test_a_hand_over_of_an_older_epoch_is_not_heeded() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].do(lambda g: g.hand_over(NodeId(2)))
    late = cluster.take(HandOver)
    cluster[1].do(lambda g: g.abort_hand_over())
    cluster.elect(3)
    cluster.deliver(*late)
    cluster.settle()
    assert cluster[3].group.is_leader


def test_what_is_appended_during_a_hand_over_is_lost_or_committed_but_never_both() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].do(lambda g: g.hand_over(NodeId(2)))
    cluster[1].append(b"late")
    cluster.take((AppendRequest, AppendResponse))
    cluster.settle()
    assert cluster[2].group.is_serving
    cluster.settle()
    cluster.produce(2, b"x")
    assert [node.committed for node in cluster.nodes.values()] == [b"x"] * 3


@pytest.mark.parametrize("to", [1, 4, 9])
def test_a_successor_is_another_voter(to: int) -> None:
    cluster = Cluster(4, voters=[1, 2, 3])
    cluster.elect(1)
    with pytest.raises(RequestError):
        cluster[1].group.hand_over(NodeId(to))


def test_a_leader_that_steps_down_is_followed_by_nobody() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster[1].do(lambda g: g.step_down())
    assert cluster[1].group.leader is None
    assert cluster[1].servings == [True, False]
    cluster.elect(2)
    assert cluster[2].group.is_serving
