"""Scenarios of voters that change, at the starts of epochs."""

from __future__ import annotations

import pytest

from tests.scenarios.cluster import Cluster, Envelope, adding, at, resetting
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import (
    AppendRequest,
    Ballot,
    HandOver,
    VoteRequest,
    VoteResponse,
)
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import Epoch, NodeId


def _ids(*nodes: int) -> tuple[NodeId, ...]:
    return tuple(NodeId(node) for node in nodes)


def _config(voters: tuple[int, ...], outgoing: tuple[int, ...] = ()) -> Configuration:
    return Configuration(_ids(*voters), _ids(*outgoing))


def _with_learners(size: int, voters: list[int]) -> Cluster:
    cluster = Cluster(size, voters=voters)
    cluster.elect(1)
    for node in range(1, size + 1):
        if node not in voters:
            cluster[1].do(adding(node))
    cluster.produce(1, b"abc")
    return cluster


def _start_joint(
    cluster: Cluster, voters: tuple[int, ...], electors: set[int], *, version: int = -1
) -> None:
    """The leader opens the epoch of the joint configuration, and nobody has it yet."""
    leader = cluster[1]
    leader.do(lambda g: g.change_config(_ids(*voters), version))
    cluster.carry_votes(1, electors - {1})
    assert leader.group.is_leader
    assert leader.group.config.is_joint


def test_voters_are_replaced_in_two_epochs() -> None:
    cluster = _with_learners(6, [1, 2, 3])
    cluster[1].do(lambda g: g.change_config(_ids(1, 4, 5)))
    cluster.settle()
    assert cluster[1].group.config == _config((1, 4, 5))
    assert [r.config for r in cluster[1].disk.written.rows] == [
        _config((1, 2, 3)),
        _config((1, 4, 5), (1, 2, 3)),
        _config((1, 4, 5)),
    ]
    cluster.crash(2)
    cluster.crash(3)
    cluster.produce(1, b"d")
    assert cluster[4].committed == b"abcd"


def test_those_who_go_out_are_told() -> None:
    cluster = _with_learners(4, [1, 2, 3])
    cluster[1].do(lambda g: g.change_config(_ids(1, 2, 4)))
    cluster.settle()
    assert cluster[3].group.config == _config((1, 2, 4))
    cluster.messages.clear()
    cluster[3].do(lambda g: g.campaign())
    assert not cluster.messages


def test_one_that_goes_out_does_not_hold_up_those_who_do_not_know_yet() -> None:
    """The new configuration is at 2 alone, which has no vote in it, and 1 has lost it with power.

    1 then needs the vote of 2, whose log would be the longer one. Found by a random schedule.
    """
    cluster = _with_learners(2, [1, 2])
    cluster[1].do(lambda g: g.change_config(_ids(1)))
    cluster.carry_votes(1, {2})
    while cluster[1].group.config != _config((1,)):
        cluster[1].persist()
        cluster.deliver(*cluster.take(to=2))
        cluster[2].persist()
        cluster.deliver(*cluster.take(to=1))
    cluster.deliver(*cluster.take(AppendRequest, to=2))
    cluster[2].persist()
    cluster.crash(1)
    cluster.restart(1)
    assert cluster[1].group.config.is_joint
    cluster.elect(1)
    cluster.settle()
    assert cluster[1].group.config == _config((1,))


def test_a_change_waits_for_an_entry_of_the_own_epoch() -> None:
    """Ongaro's correction of 2015: else two majorities need not meet (one joins, one leaves)."""
    cluster = _with_learners(4, [1, 2, 3])
    for node in (2, 3):
        cluster[node].do(lambda g: g.leader_lost())
    cluster.crash(1)
    cluster.win(2, {2, 3})
    cluster[2].do(lambda g: g.add_learner(NodeId(4)))
    with pytest.raises(RequestError, match="not committed"):
        cluster[2].group.change_config(_ids(2, 3, 4))
    cluster.settle()
    cluster[2].do(lambda g: g.change_config(_ids(2, 3, 4)))
    cluster.settle()
    assert cluster[2].group.config == _config((2, 3, 4))


def test_one_change_at_a_time() -> None:
    cluster = _with_learners(5, [1, 2, 3])
    _start_joint(cluster, (1, 2, 4), {1, 2, 3})
    with pytest.raises(RequestError, match="under way"):
        cluster[1].group.change_config(_ids(1, 2, 5))


def test_a_learner_has_no_vote() -> None:
    cluster = _with_learners(5, [1, 2, 3])
    cluster.partition({1, 4, 5}, {2, 3})
    cluster[1].append(b"d")
    cluster.settle(only={1, 4, 5})
    assert cluster[4].log == b"abcd"
    assert cluster[1].group.high_watermark == 3
    cluster.messages.clear()
    cluster[4].do(lambda g: g.campaign())
    assert not cluster.messages


def test_who_has_not_caught_up_does_not_become_a_voter() -> None:
    cluster = _with_learners(4, [1, 2, 3])
    cluster.crash(4)
    cluster.produce(1, b"d")
    with pytest.raises(RequestError, match="caught up"):
        cluster[1].group.change_config(_ids(1, 2, 4))


def test_who_is_not_sent_the_log_does_not_become_a_voter() -> None:
    cluster = _with_learners(4, [1, 2, 3])
    cluster[1].do(lambda g: g.remove_learner(NodeId(4)))
    with pytest.raises(RequestError, match="caught up"):
        cluster[1].group.change_config(_ids(1, 2, 4))


@pytest.mark.parametrize("voters", [(), (1, 1, 2), (3, 2, 1)])
def test_a_change_that_is_none_is_refused(voters: tuple[int, ...]) -> None:
    cluster = _with_learners(4, [1, 2, 3])
    with pytest.raises(RequestError):
        cluster[1].group.change_config(_ids(*voters))


def test_an_earlier_wish_is_not_gone_back_to() -> None:
    cluster = _with_learners(4, [1, 2, 3])
    cluster[1].do(lambda g: g.change_config(_ids(1, 2, 4), 7))
    cluster.settle()
    for voters in ((1, 2, 3), (1, 2, 4), (1, 2)):
        with pytest.raises(RequestError, match="newer wish"):
            cluster[1].group.change_config(_ids(*voters), 6)
    cluster[1].do(lambda g: g.change_config(_ids(1, 2), 7))
    cluster.settle()
    assert cluster[1].group.config == Configuration(_ids(1, 2), version=7)


def test_the_same_voters_at_a_newer_wish_take_an_epoch() -> None:
    cluster = _with_learners(4, [1, 2, 3])
    epoch = cluster[1].group.epoch
    cluster[1].do(lambda g: g.change_config(_ids(3, 1, 2), 7))
    cluster.settle()
    for node in (1, 2, 3):
        assert cluster[node].group.config == Configuration(_ids(1, 2, 3), version=7)
        assert cluster[node].group.epoch == epoch + 1
    assert cluster[1].group.is_serving
    with pytest.raises(RequestError, match="these are the voters"):
        cluster[1].group.change_config(_ids(1, 2, 3), 7)


def test_only_a_leader_changes_voters() -> None:
    cluster = _with_learners(4, [1, 2, 3])
    with pytest.raises(RequestError, match="not lead"):
        cluster[2].group.change_config(_ids(1, 2, 4))


def test_a_joint_configuration_needs_both_majorities_to_commit() -> None:
    cluster = _with_learners(6, [1, 2, 3])
    _start_joint(cluster, (4, 5, 6), {1, 2, 3})
    cluster.settle(only={1, 2, 3})
    assert not cluster[1].group.is_serving
    cluster.settle(only={1, 2, 3, 4})
    assert not cluster[1].group.is_serving
    cluster.settle(only={1, 2, 3, 4, 5})
    assert True in cluster[1].servings[1:]


def test_the_new_majority_alone_does_not_commit_a_joint_configuration() -> None:
    cluster = _with_learners(6, [1, 2, 3])
    _start_joint(cluster, (4, 5, 6), {1, 2, 3})
    cluster.settle(only={1, 4, 5, 6})
    assert cluster[1].servings == [True, False]


def test_a_joint_configuration_needs_both_majorities_to_elect() -> None:
    cluster = _with_learners(6, [1, 2, 3])
    _start_joint(cluster, (4, 5, 6), {1, 2, 3})
    cluster.settle(only={1, 2, 3})
    for node in (2, 3, 4, 5):
        cluster[node].do(lambda g: g.leader_lost())
    cluster.crash(1)
    cluster.messages.clear()
    cluster[2].do(lambda g: g.campaign())
    cluster.carry_votes(2, {3})
    assert not cluster[2].group.is_leader
    cluster[2].do(lambda g: g.campaign())
    cluster.carry_votes(2, {3, 4, 5})
    assert cluster[2].group.is_leader


def test_a_configuration_counts_as_soon_as_it_is_written() -> None:
    """etcd#7625: not once it is applied. The outgoing voters alone elect nobody any more."""
    cluster = _with_learners(6, [1, 2, 3])
    _start_joint(cluster, (4, 5, 6), {1, 2, 3})
    cluster.settle(only={1, 2})
    assert cluster[2].group.config == _config((4, 5, 6), (1, 2, 3))
    assert cluster[2].group.committed.epoch == 0


def test_an_uncommitted_configuration_goes_with_its_entry() -> None:
    cluster = _with_learners(6, [1, 2, 3])
    _start_joint(cluster, (4, 5, 6), {1, 2, 3})
    cluster.take()
    cluster[1].persist()
    cluster.crash(1)
    cluster.elect(2, only={2, 3})
    assert cluster[2].group.config == _config((1, 2, 3))
    cluster.restart(1)
    assert cluster[1].group.config.is_joint
    cluster.settle()
    assert cluster[1].group.config == _config((1, 2, 3))
    cluster.produce(2, b"d")
    assert cluster[1].committed == b"abcd"


def test_a_new_leader_finishes_the_change() -> None:
    cluster = _with_learners(5, [1, 2, 3])
    _start_joint(cluster, (1, 4, 5), {1, 2, 3}, version=7)
    for node in (2, 4, 5):
        cluster.deliver(*cluster.take(AppendRequest, to=node))
        cluster[node].persist()
    cluster.messages.clear()
    cluster.crash(1)
    for node in (2, 3, 4, 5):
        cluster[node].do(lambda g: g.leader_lost())
    cluster[4].do(lambda g: g.campaign())
    cluster.settle()
    if not cluster[4].group.is_leader:
        cluster[4].do(lambda g: g.campaign())
        cluster.settle()
    assert cluster[4].group.is_serving
    assert cluster[4].group.config == Configuration(_ids(1, 4, 5), version=7), "the same wish"


def test_a_leader_outside_the_new_voters_hands_over_and_stops() -> None:
    cluster = _with_learners(4, [1, 2, 3])
    cluster[1].do(lambda g: g.change_config(_ids(2, 3, 4)))
    cluster.settle()
    assert not cluster[1].group.is_leader
    (leader,) = [node for node in cluster.nodes.values() if node.group.is_serving]
    assert leader.id in (2, 3, 4)
    assert leader.group.config == _config((2, 3, 4))
    cluster.produce(leader.id, b"d")
    assert leader.committed == b"abcd"


def test_a_leader_outside_the_new_voters_tries_another_heir() -> None:
    cluster = _with_learners(4, [1, 2, 3])
    _start_joint(cluster, (2, 3, 4), {1, 2, 3})
    while not cluster.take(HandOver):
        assert cluster.messages
        cluster.deliver(cluster.messages.pop(0))
        for node in cluster.nodes.values():
            node.persist()
    first = cluster[1].group.successor
    assert first is not None
    cluster.messages.clear()
    cluster.crash(first)
    cluster[1].dead = {first}
    for node in cluster.nodes.values():
        if node.id != 1:
            cluster[1].do(resetting(node.id))
    cluster[1].do(lambda g: g.check_quorum())
    assert cluster[1].group.successor not in (None, first)
    cluster.settle()
    assert not cluster[1].group.is_leader


def test_a_removed_replica_disturbs_nobody() -> None:
    """It did not hear of its removal: its pre-votes are refused, and no epoch moves."""
    cluster = _with_learners(4, [1, 2, 3])
    cluster.partition({1, 2, 4}, {3})
    cluster[1].do(lambda g: g.change_config(_ids(1, 2, 4)))
    cluster.settle(only={1, 2, 4})
    cluster.messages.clear()
    epoch = cluster[1].group.epoch
    cluster.heal()
    cluster[1].do(lambda g: g.remove_learner(NodeId(3)))
    cluster[1].do(lambda g: g.add_learner(NodeId(4)))
    assert cluster[3].group.config == _config((1, 2, 3))
    for _ in range(5):
        cluster[3].do(lambda g: g.campaign())
        cluster.settle()
    assert cluster[1].group.is_serving
    assert cluster[1].group.epoch == epoch


def test_a_voter_of_the_newer_configuration_votes_though_it_has_not_heard_of_it() -> None:
    cluster = Cluster(4, voters=[1, 2, 3])
    request = VoteRequest(Epoch(3), Ballot.REAL, at(2, 5))
    cluster.deliver(Envelope(1, 4, request))
    cluster[4].persist()
    (answer,) = cluster.take(VoteResponse)
    assert answer.message == VoteResponse(Epoch(3), Ballot.REAL, True)


def test_a_single_voter_becomes_three_and_one_again() -> None:
    cluster = _with_learners(3, [1])
    cluster[1].do(lambda g: g.change_config(_ids(1, 2, 3)))
    cluster.settle()
    cluster.produce(1, b"d")
    assert cluster[3].committed == b"abcd"
    cluster[1].do(lambda g: g.change_config(_ids(1)))
    cluster.settle()
    cluster.crash(2)
    cluster.crash(3)
    cluster.produce(1, b"e")
    assert cluster[1].committed == b"abcde"


def test_learners_stay_through_a_change() -> None:
    cluster = _with_learners(5, [1, 2, 3])
    cluster[1].do(lambda g: g.change_config(_ids(1, 2, 4)))
    cluster.settle()
    cluster.produce(1, b"d")
    assert cluster[5].log == b"abcd"


def _learners(group: Group) -> list[int]:
    return [p.node for p in group.progress() if not p.is_voter]


def test_learners_come_and_go() -> None:
    cluster = _with_learners(5, [1, 2, 3])
    assert _learners(cluster[1].group) == [4, 5]
    cluster[1].do(lambda g: g.remove_learner(NodeId(4)))
    cluster[1].do(lambda g: g.remove_learner(NodeId(2)))
    assert _learners(cluster[1].group) == [5]
    assert [p.node for p in cluster[1].group.progress()] == [2, 3, 5]


def test_a_learner_is_sent_no_more_than_it_is_allowed() -> None:
    cluster = Cluster(3, voters=[1, 2])
    cluster.elect(1)
    cluster[1].do(adding(3))
    cluster.settle()
    cluster[1].do(lambda g: g.allow(NodeId(3), 0))
    cluster.produce(1, b"ab")
    cluster.produce(1, b"cd")
    assert cluster[2].committed == b"abcd"
    assert cluster[3].committed == b""
    assert cluster[1].group.waits_for() == frozenset(), "it is not stuck: it was told to wait"
    cluster[1].do(lambda g: g.allow(NodeId(3), 2))
    cluster.settle()
    assert cluster[3].disk.written.content == b"ab"
    cluster[1].do(lambda g: g.allow(NodeId(3), 2))
    cluster.settle()
    assert cluster[3].committed == b"abcd"
    (learner,) = [each for each in cluster[1].group.progress() if each.node == 3]
    assert learner.bytes_sent == 4
    cluster[1].do(lambda g: g.allow(NodeId(2), 0))
    cluster.produce(1, b"f")
    assert cluster[2].committed == b"abcdf", "who votes is not made to wait"


def test_a_learner_that_was_given_up_and_comes_again_is_asked_where_its_log_ends() -> None:
    """It is in step with this epoch, and took the first request for one that had overtaken."""
    cluster = Cluster(3, voters=[1, 2])
    cluster.elect(1)
    cluster[1].do(adding(3))
    cluster.produce(1, b"a")
    assert cluster[3].committed == b"a"
    cluster[1].do(lambda g: g.remove_learner(NodeId(3)))
    cluster.produce(1, b"b")
    cluster[1].do(adding(3))
    cluster.messages.clear()
    cluster[1].append(b"c")
    cluster.messages.clear()
    for node in (2, 3):
        cluster[1].do(resetting(node))
    cluster.settle()
    assert cluster[3].disk.written.content == b"abc"
