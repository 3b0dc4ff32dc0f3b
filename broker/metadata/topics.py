"""The topics of a broker: found by name or id, created, altered, deleted.

Changes are made one at a time, and each is a command in `state.db` before anything follows from it.
That command is the commit point; files follow it. A crash leaves one of these:

Creating a topic, or more partitions of one:
1. before the command is recorded: nothing has happened;
2. after it: the topic is there. The next start makes the directories and opens the epochs that are
   missing, as it does for every partition. Whether the client was told makes no difference.

Deleting a topic:
1. before the command is recorded: nothing has happened;
2. after it, before all directories are renamed: the topic is gone, and the next start, which finds
   the deletion among the commands, renames the rest before it opens anything. They cannot belong to
   a later topic of that name: a change waits for the one before it;
3. after that: the next start removes what was renamed.
Commands are folded into a snapshot only by a start, and only after it has done 2.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.cluster_store import ClusterStore
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.metadata.topic_creation import Placing, creation, growth, metadata_of
from tidemark.broker.replicas.opening import open_replicas
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.state_machines.cluster_commands import (
    AllocateProducerIds,
    DeleteTopic,
    ProducerIdBlock,
    SetTopicConfigs,
)
from tidemark.partitions.state_machines.cluster_values import Assignment, TopicMetadata
from tidemark.partitions.state_machines.topic_configs import ConfigChange, altered
from tidemark.partitions.state_machines.topic_names import (
    CONSUMER_OFFSETS,
    check_topic_name,
)
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.types import NodeId, TopicPartition


class Topics:
    """All topics. Made by `open_topics`; used on the loop's thread.

    Every change raises `RequestError` if it is refused, and KAFKA_STORAGE_ERROR if the disk does
    not take it. A change that has begun is finished, whatever becomes of who asked for it.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        services: ReplicaServices,
        store: ClusterStore,
        placing: Placing,
    ) -> None:
        self._settings = settings
        self._services = services
        self._store = store
        self._placing = placing
        self._topics: dict[str, Topic] = {}
        self._changing = trio.Lock()
        self.has_leftovers = trio.Event()
        """Set when directories wait to be removed."""

    # Finding

    def get(self, name: str) -> Topic | None:
        return self._topics.get(name)

    def by_id(self, topic_id: UUID) -> Topic | None:
        metadata = self._store.state.topic_by_id(topic_id)
        return None if metadata is None else self._topics.get(metadata.name)

    def replica(self, name: str, partition: int) -> Replica | None:
        topic = self._topics.get(name)
        if topic is None or not 0 <= partition < len(topic.replicas):
            return None
        return topic.replicas[partition]

    def __iter__(self) -> Iterator[Topic]:
        """All topics as they are now, the oldest first; changes meanwhile do not disturb."""
        return iter(list(self._topics.values()))

    @property
    def cluster_id(self) -> str:
        assert self._store.state.cluster_id is not None, "opening a store founds the cluster"
        return self._store.state.cluster_id

    @property
    def partition_count(self) -> int:
        return sum(topic.partition_count for topic in self._topics.values())

    # Checking

    def check_name(self, name: str) -> None:
        """Raises `RequestError` INVALID_TOPIC_EXCEPTION for a name no topic can have (trap M3)."""
        check_topic_name(name)

    # Changing

    async def create(self, wanted: NewTopic, *, validate_only: bool = False) -> Topic:
        """Make a topic, or with `validate_only` say what it would be like."""
        async with self._changing:
            command = creation(
                wanted,
                self._settings,
                self._store.state,
                self._placing,
                now_ms=self._services.clock.now_ms(),
            )
            self._store.state.check(command)
            topic = Topic.of(metadata_of(command), self._settings.topic_defaults)
            self._check_room(topic.partition_count)
            with self._refusals():
                await trio.to_thread.run_sync(self._check_names_free, topic)
            if not validate_only:
                with self._refusals(), trio.CancelScope(shield=True):
                    await self._store.commit(command)
                    topic = await self._open(topic)
        return topic

    async def ensure(self, wanted: NewTopic) -> Topic:
        """The topic of that name, made if it is not there: creation by first use (trap M2)."""
        try:
            return self._topics.get(wanted.name) or await self.create(wanted)
        except RequestError as error:
            existing = self._topics.get(wanted.name)
            if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and existing is not None:
                return existing
            raise

    async def ensure_consumer_offsets(self) -> Topic:
        """The topic that committed offsets are kept in."""
        return await self.ensure(NewTopic(name=CONSUMER_OFFSETS))

    async def delete(self, topic: Topic) -> None:
        """Delete a topic; its files are removed in the background."""
        _refuse_internal(topic)
        async with self._changing:
            topic = self._current(topic)
            command = DeleteTopic(at_version=self._store.state.version, id=topic.id)
            keys = [spec.key for spec in topic.specs()]
            with self._refusals(), trio.CancelScope(shield=True):
                await self._store.commit(command, forget=keys)
                self._retire(topic)
                await trio.to_thread.run_sync(move_away, self._services.directory, topic.metadata)
                self.has_leftovers.set()

    async def set_configs(
        self, topic: Topic, configs: dict[str, str], *, validate_only: bool = False
    ) -> None:
        """Replace all of a topic's own configs."""
        async with self._changing:
            await self._set_configs(self._current(topic), configs, validate_only)

    async def alter_configs(
        self, topic: Topic, changes: Iterable[ConfigChange], *, validate_only: bool = False
    ) -> None:
        """Change single configs of a topic, all of them or none (trap M11)."""
        async with self._changing:
            topic = self._current(topic)
            configs = altered(topic.overrides, changes, topic.defaults)
            await self._set_configs(topic, configs, validate_only)

    async def create_partitions(
        self,
        topic: Topic,
        count: int,
        assignments: Sequence[Assignment] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Give a topic more partitions, `count` in all; `assignments` say where the new ones go."""
        _refuse_internal(topic)
        async with self._changing:
            topic = self._current(topic)
            command = growth(topic.metadata, count, assignments, self._store.state, self._placing)
            self._store.state.check(command)
            self._check_room(count - topic.partition_count)
            if validate_only:
                return
            with self._refusals(), trio.CancelScope(shield=True):
                await self._store.commit(command)
                await self._open(self._from_state(topic))

    async def allocate_producer_ids(self, count: int) -> ProducerIdBlock:
        """Producer ids that no producer has had before."""
        async with self._changing:
            command = AllocateProducerIds(
                at_version=self._store.state.version,
                node_id=NodeId(self._settings.node_id),
                count=count,
            )
            with self._refusals():
                block = await self._store.commit(command)
        assert isinstance(block, ProducerIdBlock)
        return block

    # How

    def _check_room(self, added: int) -> None:
        if self.partition_count + added > self._settings.partitions_max:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"{added} more partitions would be over partitions.max, "
                f"{self._settings.partitions_max}: raise it, or delete topics",
            )

    def _check_names_free(self, topic: Topic) -> None:
        """Raises `StorageError` if a directory is in the way: it may hold somebody's records."""
        directory = self._services.directory
        if topic.name in {partition.topic for partition in directory.partitions()}:
            raise StorageError(
                f"{directory.path} has a directory of a topic {topic.name} that this broker does "
                "not know: move it away"
            )

    async def _open(self, topic: Topic) -> Topic:
        """Open those of its partitions that are not open, and show the topic.

        If that fails, the topic is there all the same, with the partitions it had: it can be
        deleted, and the next start opens it.
        """
        self._topics[topic.name] = topic
        specs = topic.specs(first=len(topic.replicas))
        added = await open_replicas(self._services, specs, are_new=True)
        opened = Topic.of(topic.metadata, topic.defaults, [*topic.replicas, *added])
        self._topics[topic.name] = opened
        return opened

    async def load(self) -> None:
        """Open all topics of the state, their partitions in one go."""
        defaults = self._settings.topic_defaults
        topics = [Topic.of(metadata, defaults) for metadata in self._store.state.topics.values()]
        specs = [spec for topic in topics for spec in topic.specs()]
        replicas = iter(await open_replicas(self._services, specs))
        for topic in topics:
            own = [next(replicas) for _ in range(topic.partition_count)]
            self._topics[topic.name] = Topic.of(topic.metadata, defaults, own)

    async def _set_configs(
        self, topic: Topic, configs: dict[str, str], validate_only: bool
    ) -> None:
        command = SetTopicConfigs(
            at_version=self._store.state.version, id=topic.id, configs=configs
        )
        self._store.state.check(command)
        if validate_only:
            return
        with self._refusals():
            await self._store.commit(command)
        changed = self._from_state(topic)
        self._topics[topic.name] = changed
        for replica in changed.replicas:
            replica.apply_config(changed.config)

    def _from_state(self, topic: Topic) -> Topic:
        """The topic with what the state says now, and the replicas it had."""
        metadata = self._store.state.topics[topic.name]
        return Topic.of(metadata, topic.defaults, topic.replicas)

    def _current(self, topic: Topic) -> Topic:
        """The topic as it is now that it is our turn. Raises `RequestError` if it has gone."""
        current = self.by_id(topic.id)
        if current is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return current

    def _retire(self, topic: Topic) -> None:
        del self._topics[topic.name]
        self._services.metrics.forget_topic(topic.name)
        for replica in topic.replicas:
            log = replica.retire(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if log is not None:
                log.abandon()

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What the disk does not take is an answer, too."""
        try:
            yield
        except (OSError, StorageError) as error:
            self._services.storage_failed(f"topics: {error}")
            raise RequestError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error


def move_away(directory: DataDirectory, topic: TopicMetadata) -> None:
    """Rename the directories of a deleted topic. Blocking."""
    partitions = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
    directory.mark_deleted(partitions, topic.id)


def _refuse_internal(topic: Topic) -> None:
    if topic.is_internal:
        raise RequestError(
            ErrorCode.POLICY_VIOLATION, f"{topic.name} is the broker's own: groups depend on it"
        )
