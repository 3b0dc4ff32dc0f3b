"""The topics of the cluster, and changes to them: created, altered, deleted.

A change is a command to the cluster's metadata, which every broker applies (`shown_topics.py`). Who
asked for it is answered when that is done on this broker.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tidemark.broker.metadata.made_topics import MadeTopics
from tidemark.broker.metadata.rounds import in_rounds
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
from tidemark.partitions.state_machines.throttle_configs import check_throttled_replicas
from tidemark.protocol.errors import ErrorCode, RequestError


class Growth(NamedTuple):
    """What a topic is to have, in all; `assignments` say where the new partitions go."""

    topic: Topic
    partitions: int
    assignments: Sequence[Assignment] | None = None


class Topics(MadeTopics):
    """All topics. Made by `open_metadata`; used on the loop's thread.

    Every change raises `RequestError` if it is refused, NOT_CONTROLLER if this broker does not lead
    the metadata, and KAFKA_STORAGE_ERROR if the disk does not take it. A change that has begun may
    be finished though who asked for it has gone.
    """

    async def delete(self, topic: Topic) -> None:
        """Delete a topic; its files are removed in the background."""
        (refused,) = await self.delete_all([topic])
        if refused is not None:
            raise refused

    async def delete_all(
        self, topics: Sequence[Topic], *, deadline: float = math.inf
    ) -> list[RequestError | None]:
        """Delete topics, many at a time; for each, in this order, why not. The deadline is as that
        of `create_all`."""
        decisions = [partial(_deletion, topic) for topic in topics]
        gone = await in_rounds(decisions, self._propose_topics, self._settled, deadline=deadline)
        return [_refusal(each) for each in gone]

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
            configs = dict(change(current.configs))
            # A list that was taken before they were checked keeps nothing else from being changed.
            check_throttled_replicas(dict(configs.items() - current.configs.items()))
            return SetTopicConfigs(at_version=state.version, id=current.id, configs=configs)

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
        """Give a topic more partitions."""
        wanted = Growth(topic, count, assignments)
        (refused,) = await self.grow_all([wanted], validate_only=validate_only)
        if refused is not None:
            raise refused

    async def grow_all(
        self,
        wanted: Sequence[Growth],
        *,
        validate_only: bool = False,
        deadline: float = math.inf,
    ) -> list[RequestError | None]:
        """Give topics more partitions, many topics at a time; for each, in this order, why not. The
        deadline is as that of `create_all`."""
        decisions = [partial(self._growth, each) for each in wanted]
        if validate_only:
            return [_refusal(each) for each in await self._drafted(decisions)]
        return [_refusal(each) for each in await self._make(decisions, deadline)]

    def _growth(self, wanted: Growth, state: ClusterState) -> CreatePartitions:
        _refuse_internal(wanted.topic)
        current = _current(state, wanted.topic)
        command = growth(
            current,
            wanted.partitions,
            wanted.assignments,
            state,
            self._placing,
            partitions_max=self._settings.partitions_max,
        )
        self._check_room(command.assignments, state.load)
        return command

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


def _deletion(topic: Topic, state: ClusterState) -> DeleteTopic:
    _refuse_internal(topic)
    return DeleteTopic(at_version=state.version, id=_current(state, topic).id)


def _refusal(result: object) -> RequestError | None:
    return result if isinstance(result, RequestError) else None


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
