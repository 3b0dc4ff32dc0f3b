"""One topic, and what is asked for when one is to be made."""

from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Final
from uuid import UUID

from tidemark.broker.replicas.replica import Replica, ReplicaSpec
from tidemark.partitions.state_machines.cluster_values import Assignment, TopicMetadata
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

BROKER_DEFAULT: Final = -1
_partition_of: Final = attrgetter("partition")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be made; -1 is what the broker has as default.

    With `assignments`, one for each partition, the two numbers are not looked at.
    """

    name: str
    partitions: int = BROKER_DEFAULT
    replication_factor: int = BROKER_DEFAULT
    assignments: tuple[Assignment, ...] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic as it is now; a change makes another value.

    `defaults` are the broker's, for what the topic does not set itself. `replicas` are those that
    are open on this broker, in the order of their partitions; none if the topic was only looked at
    and not made.
    """

    metadata: TopicMetadata
    defaults: Mapping[str, str]
    config: TopicConfig
    replicas: Sequence[Replica] = ()

    @classmethod
    def of(
        cls, metadata: TopicMetadata, defaults: Mapping[str, str], replicas: Sequence[Replica] = ()
    ) -> "Topic":
        """Raises `RequestError` INVALID_CONFIG for configs that cannot be."""
        config = TopicConfig.from_overrides(metadata.configs, defaults)
        return cls(metadata=metadata, defaults=defaults, config=config, replicas=replicas)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def id(self) -> UUID:
        return self.metadata.id

    @property
    def partition_count(self) -> int:
        return self.metadata.partitions

    @property
    def replication_factor(self) -> int:
        return self.metadata.replication_factor

    @property
    def overrides(self) -> Mapping[str, str]:
        """The configs that the topic sets itself."""
        return self.metadata.configs

    @property
    def is_internal(self) -> bool:
        return self.name in INTERNAL_TOPICS

    def replica(self, partition: int) -> Replica | None:
        """The one on this broker, if there is one, and it is open."""
        # Where the broker holds all of them each is at its own place. Else there may be thousands
        # all the same, and somebody asks for each.
        at = partition
        if not 0 <= at < len(self.replicas) or self.replicas[at].partition != partition:
            at = bisect_left(self.replicas, partition, key=_partition_of)
        if at < len(self.replicas) and self.replicas[at].partition == partition:
            return self.replicas[at]
        return None

    def specs(self, node_id: NodeId, *, without: Container[int] = ()) -> list[ReplicaSpec]:
        """What that broker has to open of its partitions, but for those that are open.

        Who votes in a group is in its log; the voters named here are its first.
        """
        return [
            ReplicaSpec(
                topic=self.name,
                topic_id=self.id,
                partition=partition,
                config=self.config,
                voters=self.metadata.assignments[partition],
            )
            for partition in self.hosted(node_id, without=without)
        ]

    def hosted(
        self,
        node_id: NodeId,
        *,
        without: Container[int] = (),
        partitions: Iterable[int] | None = None,
    ) -> Iterator[int]:
        """The partitions that that broker has to hold, but for those; of all, or of `partitions`,
        which have to be the topic's."""
        is_host = self.metadata.is_host
        for partition in range(self.partition_count) if partitions is None else partitions:
            if partition not in without and is_host(node_id, partition):
                yield partition
