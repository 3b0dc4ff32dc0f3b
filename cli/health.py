"""How a cluster is, from what it says of itself: pure, so that every verdict can be tested."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidemark.cli.output import Json
from tidemark.client import (
    ClusterDescription,
    GroupListing,
    LogDirDescription,
    PartitionDescription,
    PartitionReplicas,
    QuorumDescription,
    ReplicaStanding,
    TopicDescription,
    TopicPartition,
)
from tidemark.protocol.types import NodeId

HEALTHY: Final = "healthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What there is to say of a cluster at one moment.

    `quorums` has the partitions whose leaders told how far their replicas are; Kafka's brokers tell
    that of no topic. `metadata` is the same of the cluster's own log. `groups` is None where the
    brokers did not say in time.
    """

    description: ClusterDescription
    topics: Sequence[TopicDescription]
    groups: Sequence[GroupListing] | None = ()
    quorums: Mapping[TopicPartition, QuorumDescription] = field(default_factory=dict)
    metadata: QuorumDescription | None = None
    replicas: Mapping[TopicPartition, PartitionReplicas] = field(default_factory=dict)
    """Of the partitions whose brokers tell which of their replicas only observe."""
    min_in_sync: Mapping[str, int] = field(default_factory=dict)
    """`min.insync.replicas` by topic, where it is known."""
    disks: Mapping[NodeId, LogDirDescription] = field(default_factory=dict)
    """The fullest data directory of each broker that told."""

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionDescription]]:
        for topic in self.topics:
            for partition in topic.partitions:
                yield TopicPartition(topic.name, partition.partition), partition

    @property
    def node_ids(self) -> list[NodeId]:
        """The brokers there are, and those that are only named as somebody's replica."""
        named = {node_id for _, partition in self.partitions() for node_id in partition.replicas}
        return sorted(named.union(broker.node_id for broker in self.description.brokers))

    @property
    def down(self) -> list[NodeId]:
        up = {broker.node_id for broker in self.description.brokers if not broker.is_fenced}
        return [node_id for node_id in self.node_ids if node_id not in up]

    @property
    def full(self) -> list[NodeId]:
        """Brokers that refuse records, because their disks are full."""
        return [node_id for node_id, disk in sorted(self.disks.items()) if disk.is_full]

    @property
    def leaderless(self) -> int:
        return sum(partition.leader is None for _, partition in self.partitions())

    @property
    def under_replicated(self) -> int:
        return sum(self._is_under_replicated(at, each) for at, each in self.partitions())

    @property
    def below_min_in_sync(self) -> int:
        """Partitions that are led, and refuse what is to be acknowledged by all."""
        return sum(self._is_below_min_in_sync(at, each) for at, each in self.partitions())

    def _is_below_min_in_sync(self, at: TopicPartition, partition: PartitionDescription) -> bool:
        # More than there are is all of them (KIP-966).
        wanted = min(self.min_in_sync.get(at.topic, 0), len(self._voters(at, partition)))
        return partition.leader is not None and len(partition.in_sync) < wanted

    def _trouble(self, at: TopicPartition, partition: PartitionDescription) -> str | None:
        if partition.leader is None:
            return "no leader"
        if self._is_below_min_in_sync(at, partition):
            return "below min.insync.replicas"
        return "under-replicated" if self._is_under_replicated(at, partition) else None

    def _is_under_replicated(self, at: TopicPartition, partition: PartitionDescription) -> bool:
        return len(partition.in_sync) < len(self._voters(at, partition))

    def _voters(self, at: TopicPartition, partition: PartitionDescription) -> list[NodeId]:
        """Brokers count observers among the replicas, but never among those in sync."""
        observers = {each.node_id for each in self._observers(at)}
        return [node_id for node_id in partition.replicas if node_id not in observers]

    def _observers(self, at: TopicPartition) -> Sequence[ReplicaStanding]:
        found = self.replicas.get(at)
        return () if found is None else found.observers

    def verdict(self) -> str:
        """`healthy`, or in one line what is the matter, the worst first."""
        partitions = sum(1 for _ in self.partitions())
        troubles = [
            _some(self.leaderless, partitions, "partitions", "without a leader"),
            "no controller" if self.description.controller_id is None else None,
            _some(len(self.down), len(self.node_ids), "brokers", "down"),
            _some(len(self.full), len(self.node_ids), "brokers", "with a full disk"),
            _some(self.below_min_in_sync, partitions, "partitions", "below min.insync.replicas"),
            _some(self.under_replicated, partitions, "partitions", "under-replicated"),
        ]
        return ", ".join(filter(None, troubles)) or HEALTHY

    def summary(self) -> dict[str, Json]:
        groups = None if self.groups is None else Counter(g.state or "any" for g in self.groups)
        return {
            "health": self.verdict(),
            "cluster": self.description.cluster_id,
            "controller": self.description.controller_id,
            "brokers": len(self.node_ids),
            "topics": len(self.topics),
            "partitions": sum(1 for _ in self.partitions()),
            "under_replicated": self.under_replicated,
            "under_min_isr": self.below_min_in_sync,
            "leaderless": self.leaderless,
            "groups": groups
            if groups is None
            else {state.lower(): count for state, count in sorted(groups.items())},
        }

    def broker_rows(self) -> list[dict[str, Json]]:
        known = {broker.node_id: broker for broker in self.description.brokers}
        leaders = Counter(partition.leader for _, partition in self.partitions())
        replicas = Counter(n for at, each in self.partitions() for n in self._voters(at, each))
        lags = self._largest_lags()
        return [
            {
                "node_id": node_id,
                "address": known[node_id].address if node_id in known else None,
                "rack": known[node_id].rack if node_id in known else None,
                "up": node_id not in self.down,
                "controller": node_id == self.description.controller_id,
                "leaders": leaders[node_id],
                "replicas": replicas[node_id],
                "lag": lags.get(node_id),
                "free_bytes": self._free_bytes(node_id),
                "trouble": self._trouble_of(node_id),
            }
            for node_id in self.node_ids
        ]

    def _free_bytes(self, node_id: NodeId) -> int | None:
        disk = self.disks.get(node_id)
        return None if disk is None or disk.usable_bytes < 0 else disk.usable_bytes

    def _trouble_of(self, node_id: NodeId) -> str | None:
        if node_id in self.down:
            return "down"
        return "disk full: refuses records" if node_id in self.full else None

    def _largest_lags(self) -> dict[NodeId, int]:
        """How far behind each broker's slowest replica is, where any of its leaders knows."""
        largest: dict[NodeId, int] = {}
        for quorum in self.quorums.values():
            for node_id, lag in quorum.lag().items():
                if lag is not None:
                    largest[node_id] = max(lag, largest.get(node_id, 0))
        return largest

    def partition_rows(self) -> list[dict[str, Json]]:
        return [
            {
                "topic": at.topic,
                "partition": at.partition,
                "leader": partition.leader,
                "epoch": partition.leader_epoch,
                "replicas": self._voters(at, partition),
                "in_sync": partition.in_sync,
                "offline": partition.offline,
                "observers": {str(each.node_id): each.staleness_ms for each in self._observers(at)},
                **_progress(self.quorums.get(at)),
                "trouble": self._trouble(at, partition),
            }
            for at, partition in self.partitions()
        ]

    def metadata_row(self) -> dict[str, Json] | None:
        """Who keeps the cluster's metadata, where the cluster says it."""
        quorum = self.metadata
        if quorum is None:
            return None
        return {
            "leader": quorum.leader,
            "epoch": quorum.leader_epoch,
            "voters": [replica.node_id for replica in quorum.voters],
            "observers": [replica.node_id for replica in quorum.observers],
            **_progress(quorum),
        }


def _progress(quorum: QuorumDescription | None) -> dict[str, Json]:
    if quorum is None:
        return {"high_watermark": None, "lag": None}
    lag = {str(node_id): behind for node_id, behind in quorum.lag().items()}
    return {"high_watermark": quorum.high_watermark, "lag": lag}


def _some(count: int, total: int, what: str, how: str) -> str | None:
    return f"{count} of {total} {what} {how}" if count else None
