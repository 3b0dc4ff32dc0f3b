"""The topics of the cluster as this broker shows them: found by name or id, as the metadata say.

Every broker applies every change: at once it shows the topic as it is now, and soon after it opens
or gives up the replicas that it hosts (`hosting.py`).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.hosting import Hosting
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.metadata.topic_defaults import TopicDefaults, topic_defaults
from tidemark.broker.replicas.leadership import NotLeader
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.replication.concerns import Concerns
from tidemark.partitions.state_machines.cluster import Applied, C, ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    FinishReassignments,
    ReassignPartitions,
    SetObservers,
    SetTopicConfigs,
)
from tidemark.partitions.state_machines.cluster_machine import Outcome
from tidemark.partitions.state_machines.cluster_reassignments import by_topic
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import TopicPartition


class Cluster(Protocol):
    """The cluster's metadata, and the way to change it."""

    @property
    def state(self) -> ClusterState: ...

    def listen(self, listener: Callable[[Outcome], None]) -> None: ...

    def when_changed(self, callback: Callable[[], None]) -> None: ...

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied: ...

    async def propose_topics(
        self, decisions: Sequence[Callable[[ClusterState], C]]
    ) -> list[TopicMetadata | RequestError]: ...


class ShownTopics:
    """All topics as they are now, and who is told when they change."""

    def __init__(
        self,
        settings: BrokerSettings,
        services: ReplicaServices,
        cluster: Cluster,
        hosting: Hosting,
    ) -> None:
        self._settings = settings
        self._services = services
        self._cluster = cluster
        self._hosting = hosting
        self._leader_of = services.driver.leader_of
        self._topics: dict[str, Topic] = {}
        # By name and partition: what every produce and fetch looks up.
        self._here: dict[str, Mapping[int, Replica]] = {}
        self._defaults = self._current_defaults()
        self._default_values = self._defaults.values
        configs = cluster.state.broker_configs
        self._followed = (configs, configs.revision)
        self._when_deleted: list[Callable[[str], None]] = []
        self._when_changed: list[Callable[[], None]] = []
        cluster.listen(self._applied)
        cluster.when_changed(self._follow_defaults)
        hosting.changed = self._show_again
        self.reload()

    # Finding

    def get(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def by_id(self, topic_id: UUID) -> Topic | None:
        metadata = self._cluster.state.topic_by_id(topic_id)
        return None if metadata is None else self._topics.get(metadata.name)

    @property
    def concerns(self) -> Concerns:
        """Groups here of which somebody should hear."""
        return self._services.driver.node.concerns

    def has(self, partition: TopicPartition) -> bool:
        """Whether there is such a partition, wherever it is."""
        topic = self._topics.get(partition.topic)
        return topic is not None and 0 <= partition.partition < topic.partition_count

    def replica(self, name: str, partition: int) -> Replica | None:
        """The replica on this broker, if there is one, and it is open."""
        here = self._here.get(name)
        return None if here is None else here.get(partition)

    def replica_here(self, name: str, partition: int) -> Replica:
        """The replica on this broker. Raises `RequestError` if there is none."""
        replica = self.replica(name, partition)
        if replica is None:
            raise self.why_not_here(name, partition)
        return replica

    def why_not_here(self, name: str, partition: int) -> RequestError:
        """What to answer about a partition that has no replica here."""
        topic = self._topics.get(name)
        if topic is None or not 0 <= partition < topic.partition_count:
            return RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        leader, epoch = self._leader_of(PartitionKey(topic.id, partition))
        return NotLeader(f"{name}-{partition}", leader=leader, epoch=epoch)

    def __iter__(self) -> Iterator[Topic]:
        """All topics as they are now, the oldest first; changes meanwhile do not disturb."""
        return iter(list(self._topics.values()))

    @property
    def partition_count(self) -> int:
        return sum(topic.partition_count for topic in self._topics.values())

    # Following the metadata

    def when_deleted(self, callback: Callable[[str], None]) -> None:
        """Have `callback` called with the name of each topic that is deleted from now on."""
        self._when_deleted.append(callback)

    def when_changed(self, callback: Callable[[], None]) -> None:
        """Have `callback` called after topics came, went or grew, from now on."""
        self._when_changed.append(callback)

    def reload(self) -> None:
        """Show, and host, what the state says as a whole: at a start, and after a snapshot."""
        state = self._cluster.state
        for name, topic in list(self._topics.items()):
            if state.topic_by_id(topic.id) is None:
                self._gone(name, topic.metadata)
        # In the state's order, which is that of their creation.
        self._topics, before = {}, self._topics
        for metadata in state.topics.values():
            self._show(metadata)
            if metadata.name in before:
                self._hosting.reconfigure(self._topics[metadata.name])
                self._hosting.rehost(self._topics[metadata.name])
            else:
                self._hosting.open(self._topics[metadata.name])
        self._tell_of_change()

    def _tell_of_change(self) -> None:
        for callback in self._when_changed:
            callback()

    @property
    def defaults(self) -> TopicDefaults:
        """What topics have that do not set it themselves, on this broker."""
        return self._defaults

    def _current_defaults(self) -> TopicDefaults:
        configs = self._cluster.state.broker_configs
        return topic_defaults(self._settings, self._services.node_id, configs)

    def _follow_defaults(self) -> None:
        """Have all topics go by what was set for this broker, or for all, if it has changed."""
        configs = self._cluster.state.broker_configs
        if self._followed == (configs, configs.revision):
            return
        self._followed = (configs, configs.revision)
        self._defaults = self._current_defaults()
        before, self._default_values = self._default_values, self._defaults.values
        if self._default_values != before:
            for topic in self:
                self._show(topic.metadata)
                self._hosting.reconfigure(self._topics[topic.name])

    def _applied(self, outcome: Outcome) -> None:
        command = outcome.command
        if isinstance(command, ReassignPartitions | FinishReassignments):
            for topic_id, changes in by_topic(command.reassignments).items():
                changed = self._cluster.state.topic_by_id(topic_id)
                if changed is not None:
                    named = {each.partition for each in changes}
                    # What is said of others, that are not there, is passed over.
                    self._rehost(changed, named.intersection(range(changed.partitions)))
        if not isinstance(outcome.result, TopicMetadata):
            return
        metadata = outcome.result
        match outcome.command:
            case CreateTopic() | CreatePartitions():
                self._show(metadata)
                self._hosting.open(self._topics[metadata.name])
                self._tell_of_change()
            case SetTopicConfigs():
                self._show(metadata)
                self._hosting.reconfigure(self._topics[metadata.name])
            case SetObservers(partition=partition):
                self._rehost(metadata, (partition,))
            case DeleteTopic():
                self._gone(metadata.name, metadata)
                self._tell_of_change()

    def _rehost(self, metadata: TopicMetadata, partitions: Collection[int]) -> None:
        """Other brokers are to hold them than before; this one among them, perhaps."""
        self._show(metadata)
        self._hosting.rehost(self._topics[metadata.name], partitions)

    def _show(self, metadata: TopicMetadata) -> None:
        here = self._hosting.by_partition(metadata.id)
        self._topics[metadata.name] = Topic.of(
            metadata,
            self._default_values,
            [here[partition] for partition in sorted(here)],
        )
        self._here[metadata.name] = here

    def _show_again(self, topic_id: UUID) -> None:
        metadata = self._cluster.state.topic_by_id(topic_id)
        if metadata is not None:
            self._show(metadata)

    def _gone(self, name: str, metadata: TopicMetadata) -> None:
        del self._topics[name], self._here[name]
        self._hosting.remove(metadata)
        self._services.metrics.forget_topic(name)
        for callback in self._when_deleted:
            callback(name)
