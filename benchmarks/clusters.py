"""Topics on three brokers, with who leads what known when the load begins."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from confluent_kafka.admin import AdminClient, NewTopic

from tidemark.client.blocking import open_client
from tidemark.protocol.types import TopicPartition
from tidemark.testing.process_cluster import ProcessCluster

REPLICAS: Final = 3
_LEADERS_SECONDS_MAX: Final = 30.0


def create(
    cluster: ProcessCluster,
    topic: str,
    partitions: int,
    configs: Mapping[str, str],
    assignment: Mapping[int, list[int]] | None = None,
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    if assignment is None:
        new = NewTopic(topic, partitions, REPLICAS, config=dict(configs))
    else:
        replicas = [assignment[n] for n in range(partitions)]
        new = NewTopic(topic, partitions, replica_assignment=replicas, config=dict(configs))
    for created in admin.create_topics([new]).values():
        created.result(60)


def leaders_of(
    cluster: ProcessCluster, topic: str, *, seconds_max: float = _LEADERS_SECONDS_MAX
) -> dict[int, int]:
    """Who leads each partition, once all have a leader."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    deadline = time.monotonic() + seconds_max
    while True:
        partitions = admin.list_topics(topic, timeout=_LEADERS_SECONDS_MAX).topics[topic].partitions
        leaders = {number: partition.leader for number, partition in partitions.items()}
        if leaders and min(leaders.values()) > 0:
            return leaders
        if time.monotonic() > deadline:
            left = sum(leader < 1 for leader in leaders.values())
            raise RuntimeError(f"{left} partitions of {topic} have no leader")
        time.sleep(0.05)


def lead_as_preferred(cluster: ProcessCluster, *topics: str) -> None:
    """Have the first replica of each partition lead it: on a busy machine others were elected."""
    for topic in topics:
        partitions = [TopicPartition(topic, number) for number in leaders_of(cluster, topic)]
        with open_client(cluster.bootstrap) as client:
            elected = client.run(
                client.admin.elect_leaders, partitions, timeout_seconds=_LEADERS_SECONDS_MAX
            )
        for each in elected:
            if each.error is not None and not each.was_needless:
                raise each.error
