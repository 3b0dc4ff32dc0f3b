"""Replicas without a vote: whoever is sent nothing pulls.

On real groups without a network or time: `tests/partitions/replication/cluster.py`.
"""

from functools import partial

from tests.partitions.replication.cluster import Cluster
from tidemark.broker.metadata.non_voters import NonVoters
from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.observer import Observer
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.types import NodeId
from tidemark.testing.memory_files import MemoryFiles

VOTERS = (1, 2, 3)
FOURTH = NodeId(4)


def looking_after_all_of(node: ReplicationNode) -> NonVoters:
    return NonVoters(node, lambda: [replica.key for replica in node.replicas])


class Scene:
    """Four brokers with a replica each, of which three vote; the fourth looks after its own."""

    def __init__(self) -> None:
        self.cluster = Cluster(4)
        for broker in self.cluster.brokers.values():
            broker.open(VOTERS)
        self.cluster.run(2)
        self.leader = self.cluster.leader()
        self.onlooker = self.cluster[FOURTH]
        self.non_voters = looking_after_all_of(self.onlooker.node)

    def add_learner(self) -> None:
        self.leader.replica().tell(partial(Group.add_learner, node=FOURTH))
        self.cluster.run(1)

    def remove_learner(self, node: NodeId = FOURTH) -> None:
        self.leader.replica().tell(partial(Group.remove_learner, node=node))
        self.cluster.run(0.1)

    def append(self, value: str) -> None:
        self.leader.append(value)
        self.cluster.run(0.5)

    def look(self, seconds: float) -> None:
        """Let so much time pass, and look once in every second of it."""
        for _ in range(int(seconds)):
            self.non_voters.look(self.cluster.now)
            self.cluster.run(1)


def test_a_replica_that_nobody_told_anything_pulls_what_is_committed() -> None:
    scene = Scene()
    scene.append("one")
    assert scene.onlooker.values() == []
    scene.look(4)
    assert scene.onlooker.committed_values() == ["one"]


def test_a_learner_that_is_taken_away_again_pulls() -> None:
    scene = Scene()
    scene.add_learner()
    scene.append("one")
    assert scene.onlooker.values() == ["one"]
    scene.look(1)
    scene.remove_learner()
    scene.append("two")
    assert scene.onlooker.values() == ["one"]
    scene.look(4)
    assert scene.onlooker.committed_values() == ["one", "two"]


def test_a_learner_that_pulls_becomes_one_again_with_the_next_record() -> None:
    scene = Scene()
    scene.add_learner()
    scene.look(4)
    assert isinstance(scene.onlooker.replica().group.role, Observer)
    scene.append("one")
    assert isinstance(scene.onlooker.replica().group.role, Follower)
    assert scene.onlooker.values() == ["one"]


def test_who_was_away_while_all_voters_were_replaced_asks_the_leader() -> None:
    """By its own log others vote, who have gone."""
    scene = Scene()
    scene.cluster.start(5, MemoryFiles(), StateDb.open(":memory:")).open(VOTERS)
    disk = scene.cluster.kill(FOURTH)
    leader, gone = scene.leader, scene.cluster.followers()[:2]
    five, lead = NodeId(5), leader.node.node_id
    leader.replica().tell(partial(Group.add_learner, node=five))
    scene.cluster.run(1)
    leader.replica().tell(partial(Group.change_config, voters=tuple(sorted((lead, five)))))
    scene.cluster.run(5)
    leader.replica().tell(partial(Group.hand_over, to=five))
    scene.cluster.run(2)
    scene.cluster[five].replica().tell(partial(Group.change_config, voters=(five,)))
    scene.cluster.run(5)
    scene.cluster[five].append("one")
    for each in (leader, *gone):
        scene.cluster.kill(each.node.node_id)
    returned = scene.cluster.start(FOURTH, *disk)
    returned.open(VOTERS)
    scene.non_voters = looking_after_all_of(returned.node)
    scene.look(4)
    assert returned.committed_values() == ["one"]


def test_a_voter_whose_vote_was_taken_from_it_while_it_was_away_pulls() -> None:
    scene = Scene()
    away = scene.cluster.followers()[0].node.node_id
    staying = tuple(NodeId(node) for node in (*VOTERS, FOURTH) if node != away)
    disk = scene.cluster.kill(away)
    scene.add_learner()
    scene.leader.replica().tell(partial(Group.change_config, voters=staying))
    scene.cluster.run(5)
    scene.remove_learner(away)
    scene.append("one")
    returned = scene.cluster.start(away, *disk)
    returned.open(VOTERS)
    scene.cluster.run(5)
    assert returned.replica().group.is_voter
    assert returned.values() == []
    scene.non_voters = looking_after_all_of(returned.node)
    scene.look(4)
    assert returned.committed_values() == ["one"]
    assert returned.replica().group.config.members == staying


def test_voters_are_left_alone() -> None:
    scene = Scene()
    leading, following = looking_after_all_of(scene.leader.node), scene.non_voters
    assert not leading.look(0.0)
    assert not following.look(0.0)
    assert not leading.look(60.0)
    assert following.look(60.0)
