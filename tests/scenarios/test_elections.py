"""Scenarios of votes and epochs."""

from tests.scenarios.cluster import Cluster


def test_a_cluster_elects_replicates_and_commits() -> None:
    cluster = Cluster(3)
    cluster.elect(1)
    cluster.produce(1, b"abc")
    assert [node.committed for node in cluster.nodes.values()] == [b"abc"] * 3
