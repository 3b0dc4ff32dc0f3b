"""The topics of the cluster, and changes to them: created, altered, deleted.

A change is a command to the cluster's metadata, which every broker applies (`shown_topics.py`). Who
asked for it is answered when that is done on this broker.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metadata.controller import WAIT_SECONDS_MIN, Controller
from tidemark.broker.metadata.hosting import Hosting
from tidemark.broker.metadata.shown_topics import Cluster, ShownTopics
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.metadata.topic_creation import Placing, creation, growth, metadata_of
from tidemark.broker.replicas.opening import LEADER_SECONDS_MAX
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    SetObservers,
    SetTopicConfigs,
)
from tidemark.partitions.state_machines.cluster_values import Assignment, TopicMetadata
from tidemark.partitions.state_machines.topic_names import check_topic_name
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError


class Topics(ShownTopics):
    """All topics. Made by `open_metadata`; used on the loop's thread.

    Every change raises `RequestError` if it is refused, NOT_CONTROLLER if this broker does not lead
    the metadata, and KAFKA_STORAGE_ERROR if the disk does not take it. A change that has begun may
    be finished though who asked for it has gone.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        services: ReplicaServices,
        cluster: Cluster,
        hosting: Hosting,
        placing: Placing,
        controller: Controller,
    ) -> None:
        super().__init__(settings, services, cluster, hosting)
        self._placing = placing
        self._controller = controller

    def check_name(self, name: str) -> None:
        """Raises `RequestError` INVALID_TOPIC_EXCEPTION for a name no topic can have (trap M3)."""
        check_topic_name(name)

    async def create(self, wanted: NewTopic, *, validate_only: bool = False) -> Topic:
        """Make a topic, or with `validate_only` say what it would be like."""

        def decide(state: ClusterState) -> CreateTopic:
            now_ms = self._services.clock.now_ms()
            command = creation(wanted, self._settings, state, self._placing, now_ms=now_ms)
            self._check_room(len(command.assignments))
            return command

        command = decide(self._cluster.state)
        self._cluster.state.check(command)
        planned = Topic.of(metadata_of(command), self._defaults.values)
        await self._check_names_free(planned)
        if validate_only:
            return planned
        made = await self._propose(decide)
        assert isinstance(made, TopicMetadata)
        await self._hosting.wait_settled(made.id)
        topic = self.by_id(made.id) or planned
        await self._wait_leaders(topic)
        return topic

    async def ensure(self, wanted: NewTopic) -> Topic:
        """The topic of that name, made if it is not there: creation by first use (trap M2).

        Made by the broker that leads the metadata, it is as that one's settings say. Raises
        `RequestError` LEADER_NOT_AVAILABLE, on which every client asks again, while nobody leads.
        """
        topic = self._topics.get(wanted.name)
        if topic is not None:
            return topic
        try:
            if self._controller.is_here:
                return await self._create_in_time(wanted)
            await self._controller.create_topic(wanted.name)
        except RequestError as error:
            if error.code in (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT):
                raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, error.message) from error
            if error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
        topic = self._topics.get(wanted.name)
        if topic is None:
            raise RequestError(ErrorCode.LEADER_NOT_AVAILABLE, f"{wanted.name} is being made")
        await self._hosting.wait_settled(topic.id)
        await self._wait_leaders(topic)
        return self._topics.get(wanted.name) or topic

    async def _create_in_time(self, wanted: NewTopic) -> Topic:
        """`create`, but who is cut off from the majority is not waited for until it is back."""
        with trio.move_on_after(WAIT_SECONDS_MIN):
            return await self.create(wanted)
        raise RequestError(
            ErrorCode.REQUEST_TIMED_OUT, f"a majority has not heard of {wanted.name} in time"
        )

    async def _wait_leaders(self, topic: Topic) -> None:
        """Give the partitions of a new topic the time to elect their leaders."""
        missing = list(range(topic.partition_count))
        with trio.move_on_after(LEADER_SECONDS_MAX):
            while missing := [number for number in missing if not self._is_led(topic, number)]:
                await self._services.driver.wait_changed()

    def _is_led(self, topic: Topic, partition: int) -> bool:
        """Whether it is known who leads it, and this broker serves it if it is the one."""
        leader, _ = self._leader_of(PartitionKey(topic.id, partition))
        if leader != self._services.node_id:
            return leader is not None
        here = self._hosting.by_partition(topic.id).get(partition)
        return here is None or here.is_serving or not here.is_available

    async def ensure_own(self, name: str) -> Topic:
        """The topic that a coordinator of this cluster keeps its state in.

        Raises `RequestError` COORDINATOR_NOT_AVAILABLE, on which clients ask again.
        """
        try:
            return await self.ensure(NewTopic(name=name))
        except RequestError as error:
            if error.code is not ErrorCode.LEADER_NOT_AVAILABLE:
                raise
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error

    async def delete(self, topic: Topic) -> None:
        """Delete a topic; its files are removed in the background."""
        _refuse_internal(topic)

        def decide(state: ClusterState) -> DeleteTopic:
            return DeleteTopic(at_version=state.version, id=_current(state, topic).id)

        await self._propose(decide)
        await self._hosting.wait_settled(topic.id)

    async def change_configs(
        self,
        topic: Topic,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Replace a topic's own configs by what `change` makes of them."""

        def decide(state: ClusterState) -> SetTopicConfigs:
            current = _current(state, topic)
            return SetTopicConfigs(
                at_version=state.version, id=current.id, configs=dict(change(current.configs))
            )

        if validate_only:
            self._cluster.state.check(decide(self._cluster.state))
        else:
            await self._propose(decide)

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

        def decide(state: ClusterState) -> CreatePartitions:
            current = _current(state, topic)
            command = growth(current, count, assignments, state, self._placing)
            self._check_room(len(command.assignments))
            return command

        if validate_only:
            self._cluster.state.check(decide(self._cluster.state))
            return
        await self._propose(decide)
        await self._hosting.wait_settled(topic.id)
        await self._wait_leaders(self.by_id(topic.id) or topic)

    async def set_observers(self, topic: Topic, partition: int, observers: Assignment) -> None:
        """Name the brokers that observe a partition: they hold a copy, and have no vote."""

        def decide(state: ClusterState) -> SetObservers:
            return SetObservers(
                at_version=state.version,
                topic_id=_current(state, topic).id,
                partition=partition,
                replicas=observers,
            )

        await self._propose(decide)
        await self._hosting.wait_settled(topic.id)

    async def _propose(self, decide: Callable[[ClusterState], Command]) -> Applied:
        with self._refusals():
            return await self._cluster.propose(decide)

    def _check_room(self, added: int) -> None:
        if self.partition_count + added > self._settings.partitions_max:
            raise RequestError(
                ErrorCode.POLICY_VIOLATION,
                f"{added} more partitions would be over partitions.max, "
                f"{self._settings.partitions_max}: raise it, or delete topics",
            )

    async def _check_names_free(self, topic: Topic) -> None:
        """Refuse a topic while a directory is in its way: it may hold somebody's records."""
        if self._hosting.is_removing(topic.name):
            return
        directory = self._services.directory
        with self._refusals():
            there = await trio.to_thread.run_sync(directory.partitions)
            # It may have been made meanwhile, and then that is what there is to say.
            if topic.name in {each.topic for each in there} and topic.name not in self._topics:
                raise StorageError(
                    f"{directory.path} has a directory of a topic {topic.name} that this broker "
                    "does not know: move it away"
                )

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """What the disk does not take is an answer, too."""
        try:
            yield
        except (OSError, StorageError) as error:
            self._services.storage_failed(f"topics: {error}")
            raise RequestError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error


def _current(state: ClusterState, topic: Topic) -> TopicMetadata:
    """The topic as it is now that it is our turn. Raises `RequestError` if it has gone."""
    current = state.topic_by_id(topic.id)
    if current is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return current


def _refuse_internal(topic: Topic) -> None:
    if topic.is_internal:
        raise RequestError(
            ErrorCode.POLICY_VIOLATION,
            f"{topic.name} is the broker's own: its coordinators depend on it",
        )
