"""Scenarios in which nothing is wrong with what is said, only that nothing gets done.

A round is what the owner of a group does in a heartbeat interval: it looks who is heard and hears
(see `Peers`), gives up a leader that is not, and lets some of those without a leader campaign.
"""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from tests.scenarios.cluster import Cluster, resetting
from tidemark.partitions.raft.group import Group

LINKS = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b]


def _run_round(cluster: Cluster, random: Random) -> None:
    nodes = [*cluster.nodes.values()]
    for node in nodes:
        heard = {
            other.id
            for other in nodes
            if not {(other.id, node.id), (node.id, other.id)} & cluster.cut
        }
        node.dead = {other.id for other in nodes} - heard
        node.do(lambda group: group.check_quorum())
        leader = node.group.leader
        if leader is not None and leader in heard and not cluster[leader].group.is_leader:
            node.do(lambda group: group.leader_lost())
        if leader in node.dead:
            node.do(lambda group: group.leader_lost())
        if node.group.is_leader:
            for other in nodes:
                if other is not node and node.group.has_in_flight:
                    node.do(resetting(other.id))
    cluster.beat()
    cluster.settle()
    for node in random.sample(nodes, k=len(nodes)):
        if node.group.leader is None and random.random() < 0.5:
            node.do(lambda group: group.campaign())
            cluster.settle()
    cluster.settle()


def _commits_something(cluster: Cluster) -> bool:
    for node in cluster.nodes.values():
        if node.group.is_serving:
            before = node.group.high_watermark
            node.append(b".")
            cluster.settle()
            if node.group.high_watermark > before:
                return True
    return False


@pytest.mark.parametrize("cut", range(64))
def test_any_two_of_three_that_hear_each_other_get_on(cut: int) -> None:
    """Every set of one-way links that can be cut; whoever led before (Cloudflare 2020)."""
    links = {link for bit, link in enumerate(LINKS) if cut >> bit & 1}
    pairs = [(a, b) for a, b in combinations((1, 2, 3), 2) if not {(a, b), (b, a)} & links]
    for first_leader in (1, 2, 3):
        cluster, random = Cluster(3), Random(cut)
        cluster.elect(first_leader)
        cluster.cut = links
        for _ in range(12):
            _run_round(cluster, random)
        if pairs:
            assert _commits_something(cluster)
            epochs = [node.group.epoch for node in cluster.nodes.values()]
            for _ in range(5):
                _run_round(cluster, random)
            assert [node.group.epoch for node in cluster.nodes.values()] == epochs, "no peace"
        cluster.heal()
        for _ in range(12):
            _run_round(cluster, random)
        assert _commits_something(cluster)


@pytest.mark.parametrize("seed", range(5))
def test_one_of_five_that_alone_hears_a_majority_leads(seed: int) -> None:
    """Howard and Abraham's five: 4 is cut off from all but 5; only 5 has a majority."""
    cluster, random = Cluster(5), Random(seed)
    cluster.elect(4)
    hub = 5
    cluster.cut = {(a, b) for a in range(1, 6) for b in range(1, 6) if a != b and hub not in (a, b)}
    for _ in range(25):
        _run_round(cluster, random)
    assert cluster[hub].group.is_serving
    assert _commits_something(cluster)


@pytest.mark.parametrize("seed", range(10))
def test_candidates_that_begin_together_come_to_an_end(seed: int) -> None:
    cluster, random = Cluster(5), Random(seed)
    for node in cluster.nodes.values():
        node.do(Group.campaign)
    for _ in range(10):
        cluster.settle()
        for node in random.sample([*cluster.nodes.values()], k=5):
            if node.group.leader is None and random.random() < 0.4:
                node.do(Group.campaign)
    cluster.settle()
    assert _commits_something(cluster)
