"""Scenarios of replicas that leave a group, and come back to it with nothing but an epoch."""

from functools import partial

from tests.scenarios.cluster import Cluster, adding
from tidemark.partitions.raft.group import Group, Limits
from tidemark.partitions.raft.messages import AppendRequest
from tidemark.protocol.types import NodeId


def gone_over(size: int, old: set[int], new: int) -> Cluster:
    """From the voters `old`, led by 1, to `new` alone, which has committed `c` since."""
    cluster = Cluster(size, voters=old, limits=Limits(append_bytes_max=1, window_bytes=1))
    cluster.elect(1)
    cluster.produce(1, b"ab", only=old)
    cluster[1].do(adding(new))
    cluster.settle()
    cluster[1].do(lambda group: group.change_config((NodeId(new),)))
    cluster.settle()
    assert cluster[new].group.is_leader, "it was handed over"
    for node in map(NodeId, old):
        cluster[new].do(partial(Group.remove_learner, node=node))
    cluster.produce(new, b"c")
    return cluster


def come_back(cluster: Cluster, *nodes: int, leader: int) -> None:
    """They have left, come again, and are sent the part of the log in which they are voters."""
    for node in nodes:
        cluster.leave(node)
        cluster.restart(node)
        cluster[leader].do(adding(node))
    while any(len(cluster[node].log) < 2 for node in nodes):
        for each in cluster.nodes.values():
            each.persist()
        cluster.deliver(*cluster.take())
    cluster.messages.clear()


def test_it_does_not_elect_itself_by_the_old_part() -> None:
    cluster = gone_over(2, {1}, 2)
    come_back(cluster, 1, leader=2)
    cluster.partition({1}, {2})
    assert cluster[1].group.config.members == (1,)
    cluster[1].do(lambda group: group.campaign())
    cluster.settle(only={1})
    assert not cluster[1].group.is_leader
    cluster.crash(1)
    cluster.restart(1)
    cluster[1].do(lambda group: group.campaign())
    cluster.settle(only={1})
    assert not cluster[1].group.is_leader
    cluster.heal()
    cluster[2].do(lambda group: group.peer_reset(NodeId(1)))
    cluster.settle()
    assert cluster[1].log == b"abc"


def test_those_who_come_back_do_not_elect_each_other() -> None:
    """1 was away when 2 and 3 went over to 4; in its log they are a majority with it."""
    cluster = Cluster(4, voters={1, 2, 3}, limits=Limits(append_bytes_max=1, window_bytes=1))
    cluster.elect(2)
    cluster.produce(2, b"ab")
    cluster.partition({1}, {2, 3, 4})
    cluster[2].do(adding(4))
    cluster.settle(only={2, 3, 4})
    cluster[2].do(lambda group: group.change_config((NodeId(4),)))
    cluster.settle(only={2, 3, 4})
    cluster.produce(4, b"c", only={4})
    cluster.crash(4)
    for node in (2, 3):
        cluster.leave(node)
    cluster.messages.clear()
    cluster.heal()
    for node in (2, 3):
        cluster.restart(node)
    for is_migration in (False, True):
        cluster[1].do(partial(Group.campaign, is_migration=is_migration))
        cluster.settle()
        assert not cluster[1].group.is_leader
    cluster.restart(4)
    cluster.elect(4)
    assert cluster[4].committed == b"abc"


def test_a_deposed_leader_cannot_commit_with_who_came_back() -> None:
    """1 stood still while the others elected 2, and 3 left and came back."""
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"a")
    cluster.partition({1}, {2, 3})
    cluster.elect(2, only={2, 3})
    cluster.produce(2, b"b", only={2, 3})
    cluster.leave(3)
    cluster.partition({2}, {1, 3})
    cluster.messages.clear()
    cluster.restart(3)
    cluster[1].append(b"x")
    cluster.settle(only={1, 3})
    assert cluster[1].committed == b"a"
    assert not cluster[1].group.is_leader


def test_who_came_back_votes_again_once_the_group_has_gone_on() -> None:
    """The way back: 1 is a voter again, alone, and leads with all that there is."""
    cluster = gone_over(2, {1}, 2)
    come_back(cluster, 1, leader=2)
    cluster[2].do(lambda group: group.peer_reset(NodeId(1)))
    cluster.settle()
    cluster[2].do(lambda group: group.change_config((NodeId(1),)))
    cluster.settle()
    cluster.leave(2)
    cluster.crash(1)
    cluster.restart(1)
    cluster.messages = [each for each in cluster.messages if isinstance(each, AppendRequest)]
    cluster[1].do(lambda group: group.campaign())
    cluster.settle(only={1})
    assert cluster[1].group.is_leader
    assert cluster[1].committed == b"abc"
