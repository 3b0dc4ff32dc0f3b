"""What people are told of groups that have lost something, or have no leader."""

from dataclasses import replace
from uuid import UUID

from tests.partitions.replication.cluster import KEY, Cluster
from tidemark.partitions.storage.state_db import Condition, PartitionKey
from tidemark.protocol.types import TopicPartition


def _of_no_leader(warnings: list[str]) -> list[str]:
    return [said for said in warnings if "had no leader" in said]


def test_groups_without_a_leader_are_told_of_in_one_line_and_not_again_at_once() -> None:
    cluster = Cluster(3)
    for number in range(7):
        topic = TopicPartition("orders", number)
        for broker in cluster.brokers.values():
            broker.open([1, 2, 3], key=PartitionKey(UUID(int=7), number), partition=topic)
    cluster.run(3)
    broker = cluster[1]
    assert broker.node.concerns.leaderless == 0
    cluster.kill(2)
    cluster.kill(3)
    cluster.run(12)
    (said,) = _of_no_leader(broker.warnings)
    assert said.startswith("7 groups here had no leader for up to 1")
    assert "orders-0, orders-1, orders-2, orders-3, orders-4, …; of 7 of them too few" in said
    assert broker.node.concerns.leaderless == 7
    cluster.run(40)
    assert len(_of_no_leader(broker.warnings)) == 1
    cluster.run(30)
    assert len(_of_no_leader(broker.warnings)) == 2


def test_who_has_a_leader_in_time_is_not_told_of() -> None:
    cluster = Cluster(3)
    for broker in cluster.brokers.values():
        broker.open([1, 2, 3])
    cluster.run(15)
    assert not any(_of_no_leader(broker.warnings) for broker in cluster.brokers.values())


def test_a_broker_that_starts_does_not_count_from_before_its_start() -> None:
    cluster = Cluster(3)
    for broker in cluster.brokers.values():
        broker.open([1, 2, 3])
    cluster.run(1)
    left = cluster.kill(1)
    cluster.run(30)
    back = cluster.start(1, *left)
    back.open([1, 2, 3])
    cluster.run(1)
    assert not _of_no_leader(back.warnings)


def test_a_group_that_comes_after_a_long_silence_is_missed_from_then_on() -> None:
    cluster = Cluster(1)
    broker = cluster[1]
    broker.node.tick(cluster.now)
    cluster.run(100)
    broker.open([1], now=cluster.now)
    cluster.run(1)
    assert broker.replica().is_leader
    assert not _of_no_leader(broker.warnings)


def test_that_all_count_again_is_told_once_the_last_that_was_opened_does() -> None:
    cluster = Cluster(3)
    later = PartitionKey(UUID(int=8), 0)
    for key, name in ((KEY, "orders"), (later, "later")):
        for broker in cluster.brokers.values():
            broker.open([1, 2, 3], key=key, partition=TopicPartition(name, 0))
    cluster.run(1)
    left = cluster.kill(1)
    cluster.run(1)
    back = cluster.start(1, *left)
    stored = back.state.partition_states()
    back.state.save([replace(stored[key], condition=Condition.DAMAGED) for key in (KEY, later)])
    first = back.open([1, 2, 3], partition=TopicPartition("orders", 0))
    cluster.run(2)
    assert (first.group.in_doubt, back.node.concerns.unclean) == (False, {})
    second = back.open([1, 2, 3], key=later, partition=TopicPartition("later", 0))
    cluster.run(0.5)
    assert not any("hold again" in said for said in back.warnings)
    cluster.run(6)
    assert not second.group.in_doubt
    assert [said for said in back.warnings if "hold again" in said] == [
        "all replicas here hold again what they may have lost, count and vote"
    ]


def test_it_is_said_where_all_had_to_vote_because_too_few_were_sure() -> None:
    cluster = Cluster(3)
    for broker in cluster.brokers.values():
        broker.open([1, 2, 3])
    cluster.run(1)
    left = {node: cluster.kill(node) for node in (1, 2, 3)}
    for node, (files, state) in left.items():
        broker = cluster.start(node, files, state)
        stored = state.partition_states()[KEY]
        if node != 3:
            state.save([replace(stored, condition=Condition.DAMAGED)])
        broker.open([1, 2, 3])
    cluster.run(9)
    assert not any(broker.replica().group.in_doubt for broker in cluster.brokers.values())
    said = [each for broker in cluster.brokers.values() for each in broker.warnings]
    (said_once,) = [each for each in said if "records may be gone" in each]
    assert said_once.startswith("1 groups are led here by the votes of all, because too few knew")
    assert said_once.endswith("orders-0")
