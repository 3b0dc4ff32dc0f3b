"""What is said of a cluster, from the facts."""

from dataclasses import replace

from tests.cli.health import ONE, THREE, TWO, broker, facts, partition
from tidemark.cli.health import HEALTHY, ClusterFacts
from tidemark.client import (
    ClusterDescription,
    LogDirDescription,
    PartitionReplicas,
    QuorumDescription,
    QuorumReplica,
    ReplicaRole,
    ReplicaStanding,
    TopicPartition,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import Epoch, NodeId, Offset


def quorum(**ends: int | None) -> QuorumDescription:
    """Led by broker 1; ends by node, as in `n1=10`."""
    return QuorumDescription(
        leader=ONE,
        leader_epoch=Epoch(4),
        high_watermark=Offset(10),
        voters=tuple(
            QuorumReplica(
                node_id=NodeId(int(name[1:])), end_offset=None if e is None else Offset(e)
            )
            for name, e in ends.items()
        ),
        observers=(),
    )


def test_a_cluster_in_which_nothing_is_missing_is_healthy() -> None:
    assert facts(partition(0), partition(1)).verdict() == HEALTHY


def test_the_verdict_names_what_is_the_matter_the_worst_first() -> None:
    sick = facts(
        partition(0, leader=None, in_sync=(TWO,)),
        partition(1, in_sync=(ONE, TWO)),
        partition(2),
        brokers=(broker(ONE), broker(TWO), broker(THREE, is_fenced=True)),
        controller=None,
    )
    assert sick.verdict() == (
        "1 of 3 partitions without a leader, no controller, 1 of 3 brokers down, "
        "2 of 3 partitions under-replicated"
    )
    assert [row["trouble"] for row in sick.partition_rows()] == [
        "no leader",
        "under-replicated",
        None,
    ]


def test_an_observer_is_shown_with_its_staleness_and_not_missed_among_those_in_sync() -> None:
    observer = ReplicaStanding(
        node_id=THREE,
        role=ReplicaRole.OBSERVER,
        is_alive=True,
        end_offset=Offset(9),
        lag_records=1,
        staleness_ms=120,
        parent=TWO,
    )
    seen = PartitionReplicas(
        leader=ONE, leader_epoch=Epoch(4), high_watermark=Offset(10), replicas=(observer,)
    )
    plain = facts(partition(0, in_sync=(ONE, TWO)))
    assert plain.verdict() == "1 of 1 partitions under-replicated"
    told = replace(plain, replicas={TopicPartition("t", 0): seen})
    assert told.verdict() == HEALTHY
    (row,) = told.partition_rows()
    assert (row["replicas"], row["observers"]) == ([ONE, TWO], {"3": 120})
    assert [row["replicas"] for row in told.broker_rows()] == [1, 1, 0]


def test_all_replicas_in_sync_are_enough_whatever_min_insync_replicas_says() -> None:
    assert facts(partition(0), min_in_sync=4).verdict() == HEALTHY
    sick = facts(partition(0, in_sync=(ONE, TWO)), min_in_sync=4)
    assert [row["trouble"] for row in sick.partition_rows()] == ["below min.insync.replicas"]


def test_a_partition_that_refuses_writes_is_worse_than_one_that_lacks_a_replica() -> None:
    sick = facts(
        partition(0, in_sync=(ONE,)),
        partition(1, in_sync=(ONE, TWO)),
        partition(2, leader=None, in_sync=(ONE,)),
        min_in_sync=2,
    )
    assert sick.verdict() == (
        "1 of 3 partitions without a leader, 1 of 3 partitions below min.insync.replicas, "
        "3 of 3 partitions under-replicated"
    )
    assert [row["trouble"] for row in sick.partition_rows()] == [
        "below min.insync.replicas",
        "under-replicated",
        "no leader",
    ]


def test_a_broker_whose_disk_is_full_is_named_and_how_much_is_free() -> None:
    def disk(node_id: NodeId, usable_bytes: int, *, is_full: bool) -> LogDirDescription:
        return LogDirDescription(
            node_id=node_id,
            path="/d",
            error=ErrorCode.NONE,
            total_bytes=1000,
            usable_bytes=usable_bytes,
            replicas=(),
            is_full=is_full,
        )

    disks = {ONE: disk(ONE, 5, is_full=True), TWO: disk(TWO, -1, is_full=False)}
    found = replace(facts(partition(0)), disks=disks)
    assert found.verdict() == "1 of 3 brokers with a full disk"
    rows = [(row["free_bytes"], row["trouble"]) for row in found.broker_rows()]
    assert rows == [(5, "disk full: refuses records"), (None, None), (None, None)]


def test_a_replicas_broker_that_nobody_lists_is_down() -> None:
    missing = facts(partition(0), brokers=(broker(ONE), broker(TWO)))
    assert missing.down == [THREE]
    row = missing.broker_rows()[2]
    assert (row["node_id"], row["address"], row["up"], row["replicas"]) == (3, None, False, 1)


def test_lag_is_the_distance_to_the_leaders_end_and_a_brokers_that_of_its_slowest_replica() -> None:
    lagging = facts(
        partition(0),
        partition(1),
        quorums={0: quorum(n1=12, n2=10, n3=None), 1: quorum(n1=5, n2=5, n3=1)},
    )
    assert [row["lag"] for row in lagging.partition_rows()] == [
        {"1": 0, "2": 2, "3": None},
        {"1": 0, "2": 0, "3": 4},
    ]
    assert [row["lag"] for row in lagging.broker_rows()] == [0, 2, 4]


def test_where_the_leaders_say_nothing_the_lag_is_not_known() -> None:
    silent = facts(partition(0))
    assert [row["lag"] for row in silent.broker_rows()] == [None, None, None]
    assert silent.partition_rows()[0]["lag"] is None
    assert silent.metadata_row() is None


def test_groups_that_did_not_answer_are_not_said_to_be_none() -> None:
    assert facts(partition(0)).summary()["groups"] == {}
    description = ClusterDescription(cluster_id="c", controller_id=ONE, brokers=(broker(ONE),))
    assert ClusterFacts(description=description, topics=[], groups=None).summary()["groups"] is None
