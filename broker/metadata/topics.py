"""The topics of the cluster, and changes to them: created, altered, deleted.

A change is a command to the cluster's metadata, which every broker applies (`shown_topics.py`). Who
asked for it is answered when that is done on this broker.
"""

from collections.abc import Callable, Mapping, Sequence

from tidemark.broker.metadata.made_topics import MadeTopics
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.metadata.topic_creation import growth
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    CreatePartitions,
    DeleteTopic,
    SetObservers,
    SetTopicConfigs,
)
from tidemark.partitions.state_machines.cluster_values import Assignment, TopicMetadata
from tidemark.protocol.errors import ErrorCode, RequestError


class Topics(MadeTopics):
    """All topics. Made by `open_metadata`; used on the loop's thread.

    Every change raises `RequestError` if it is refused, NOT_CONTROLLER if this broker does not lead
    the metadata, and KAFKA_STORAGE_ERROR if the disk does not take it. A change that has begun may
    be finished though who asked for it has gone.
    """

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
            self._check_room(command.assignments, state.load)
            return command

        if validate_only:
            self._cluster.state.check(decide(self._cluster.state))
            return
        await self._propose(decide)
        await self._hosting.wait_settled(topic.id)
        await self._wait_leaders([self.by_id(topic.id) or topic])

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
