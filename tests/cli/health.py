"""A cluster of three brokers as its health is judged by."""

import uuid

from tidemark.cli.health import ClusterFacts
from tidemark.client import (
    BrokerDescription,
    ClusterDescription,
    PartitionDescription,
    QuorumDescription,
    TopicDescription,
    TopicPartition,
)
from tidemark.protocol.types import Epoch, NodeId

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
ALL = (ONE, TWO, THREE)


def broker(node_id: NodeId, *, is_fenced: bool = False) -> BrokerDescription:
    return BrokerDescription(node_id=node_id, host="h", port=9000 + node_id, is_fenced=is_fenced)


def partition(
    number: int, *, leader: NodeId | None = ONE, in_sync: tuple[NodeId, ...] = ALL
) -> PartitionDescription:
    return PartitionDescription(
        partition=number, leader=leader, leader_epoch=Epoch(4), replicas=ALL, in_sync=in_sync
    )


def facts(
    *partitions: PartitionDescription,
    brokers: tuple[BrokerDescription, ...] = (broker(ONE), broker(TWO), broker(THREE)),
    controller: NodeId | None = ONE,
    quorums: dict[int, QuorumDescription] | None = None,
    min_in_sync: int = 1,
) -> ClusterFacts:
    topic = TopicDescription(
        name="t", topic_id=uuid.UUID(int=1), is_internal=False, partitions=partitions
    )
    return ClusterFacts(
        description=ClusterDescription(cluster_id="c", controller_id=controller, brokers=brokers),
        topics=[topic],
        quorums={TopicPartition("t", at): value for at, value in (quorums or {}).items()},
        min_in_sync={"t": min_in_sync},
    )
