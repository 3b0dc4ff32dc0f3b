"""CreateTopics: each topic by itself, so that one that cannot be does not fail the others."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from tidemark.broker.handlers.change import Change
from tidemark.broker.metadata.config_resources import ConfigEntry, topic_entries, unset_entries
from tidemark.broker.metadata.rounds import deadline_of
from tidemark.broker.metadata.topic import NewTopic, Topic
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import Steps, distinct
from tidemark.partitions.state_machines.cluster_values import Assignment
from tidemark.partitions.state_machines.config_table import check_new
from tidemark.partitions.state_machines.topic_configs import TOPIC_SETTINGS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidemark.protocol.types import NodeId

_NOT_GIVEN = -1


async def handle(
    node: Node, request: CreateTopicsRequest, _context: RequestContext
) -> CreateTopicsResponse:
    """Creates what can be created, or with `validate_only` says what could (trap M9)."""
    times = Counter(topic.name for topic in request.topics)
    # What is named more than once gets one answer, which is an error.
    asked = {topic.name: topic for topic in request.topics}
    answers = dict[str, Topic | RequestError]()
    wanted, steps = list[NewTopic](), Steps()
    for topic in asked.values():
        try:
            if times[topic.name] > 1:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"{topic.name} is named more than once"
                )
            wanted.append(_new_topic(topic))
        except RequestError as error:
            answers[topic.name] = error
        await steps.did(1)
    made = await node.topics.create_all(
        wanted,
        validate_only=request.validate_only,
        deadline=deadline_of(request.timeout_ms),
    )
    answers.update((each.name, answer) for each, answer in zip(wanted, made, strict=True))
    topics = list[CreatableTopicResult]()
    for name in asked:
        topics.append(_result(node, name, answers[name]))
        await steps.did(1 + len(topics[-1].configs or ()))
    return CreateTopicsResponse(topics=topics)


def _new_topic(topic: CreatableTopic) -> NewTopic:
    configs = {}
    for config in topic.configs:
        if config.value is None:
            raise RequestError(
                ErrorCode.INVALID_CONFIG,
                f"{config.name} has no value: leave it out for the default",
            )
        configs[config.name] = config.value
    check_new(TOPIC_SETTINGS, configs)
    partitions, replicas = topic.num_partitions, topic.replication_factor
    if topic.assignments and (partitions, replicas) != (_NOT_GIVEN, _NOT_GIVEN):
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            "with assignments, the numbers of partitions and replicas are left at -1",
        )
    return NewTopic(
        name=topic.name,
        partitions=partitions,
        replication_factor=replicas,
        assignments=_in_order(topic.assignments) if topic.assignments else None,
        configs=configs,
    )


def _in_order(assignments: Sequence[CreatableReplicaAssignment]) -> tuple[Assignment, ...]:
    """By partition. Raises `RequestError` unless they number all partitions, each once."""
    by_index = {each.partition_index: each.broker_ids for each in assignments}
    if sorted(by_index) != list(range(len(assignments))):
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "assign each partition from 0 on, once"
        )
    return tuple(tuple(map(NodeId, by_index[index])) for index in range(len(assignments)))


def _result(node: Node, name: str, made: Topic | RequestError) -> CreatableTopicResult:
    if isinstance(made, RequestError):
        return _refused(name, made)
    return _success(node, made)


def _refused(name: str, error: RequestError) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=error.code, error_message=error.message)


def _success(node: Node, topic: Topic) -> CreatableTopicResult:
    unset = unset_entries(node.topics.defaults)
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.id,
        num_partitions=topic.partition_count,
        replication_factor=topic.replication_factor,
        configs=[_config(entry) for entry in topic_entries(topic, unset)],
    )


def _config(entry: ConfigEntry) -> CreatableTopicConfigs:
    return CreatableTopicConfigs(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_secret,
    )


def refuse(request: CreateTopicsRequest, error: RequestError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[_refused(name, error) for name in distinct(topic.name for topic in request.topics)]
    )


CHANGE: Final = Change(handle=handle, refuse=refuse, response=CreateTopicsResponse)
