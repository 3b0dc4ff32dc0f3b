"""A cluster of broker processes that loses a leader while a client produces.

Every client's `test_failover` is the same story: it sends numbered values to three partitions with
its idempotent producer; after a third of them the broker that leads partition 0 is killed; all the
rest must be acknowledged all the same, and reading from the start gives each value once, in order.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.testing.process_cluster import ProcessCluster

PARTITIONS: Final = 3
COUNT: Final = 1_500
KILL_AT: Final = 500
_SECONDS_MAX: Final = 20.0


def value_of(number: int) -> bytes:
    return b"%08d" % number


def partition_of(number: int) -> int:
    return number % PARTITIONS


def create(cluster: ProcessCluster, topic: str) -> None:
    """Three replicas of each partition, two of which must hold what is acknowledged."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(topic, PARTITIONS, len(cluster.brokers), config={"min.insync.replicas": "2"})
    admin.create_topics([new])[topic].result(20)


def kill_leader(cluster: ProcessCluster, topic: str) -> int:
    """`kill -9` of the broker that leads partition 0; which it was."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    deadline = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < deadline:
        leader = admin.list_topics(topic, timeout=10).topics[topic].partitions[0].leader
        if leader in cluster.brokers and cluster.brokers[leader].is_running:
            cluster.brokers[leader].kill()
            return leader
        time.sleep(0.05)
    raise AssertionError("partition 0 has no leader")


def check_all_there(values: Iterable[tuple[int, bytes]]) -> None:
    """`values` are partitions and values, in the order in which they were read from each."""
    read: dict[int, list[bytes]] = {}
    for partition, value in values:
        read.setdefault(partition, []).append(value)
    expected: dict[int, list[bytes]] = {}
    for number in range(COUNT):
        expected.setdefault(partition_of(number), []).append(value_of(number))
    assert read == expected
