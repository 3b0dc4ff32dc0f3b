"""OffsetFetch: how far groups have read; one group up to version 7, several from 8 (trap G8)."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple, TypeVar

from tidemark.broker.handlers.topic_ids import with_names
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.steps import distinct
from tidemark.partitions.state_machines.groups.offsets import Offsets
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.consumer_offsets import OffsetCommitValue
from tidemark.protocol.messages.offset_fetch import (
    NAMES_UNTIL,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tidemark.protocol.types import TopicPartition

P = TypeVar("P", OffsetFetchResponsePartition, OffsetFetchResponsePartitions)

_SEVERAL_SINCE = 8
_GROUP_ERROR_SINCE = 2
_NO_COMMIT = OffsetCommitValue(offset=-1, metadata="", commit_timestamp=-1)


class _Commit(NamedTuple):
    """What one partition is answered with."""

    code: ErrorCode = ErrorCode.NONE
    value: OffsetCommitValue = _NO_COMMIT


Found = Sequence[tuple[str, Mapping[int, _Commit]]]

Asked = Sequence[OffsetFetchRequestTopic] | Sequence[OffsetFetchRequestTopics] | None
"""Topics with their partitions; None is everything that the group has commits of."""


def handle(node: Node, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    if context.api_version >= _SEVERAL_SINCE:
        answer = _group if context.api_version <= NAMES_UNTIL else _group_by_ids
        asked = distinct(request.groups, question)
        groups = [answer(node, group, request.require_stable) for group in asked]
        return OffsetFetchResponse(groups=groups)
    try:
        offsets = node.coordinator.committed(request.group_id)
    except RequestError as error:
        return _failed(request, context, error.code)
    found = _stable(node, request.group_id, _found(request.topics, offsets), request.require_stable)
    return OffsetFetchResponse(topics=_topics(found))


def question(group: OffsetFetchRequestGroup) -> Hashable:
    """Equal for those that are answered once: of a group with everything, the answer may be far
    longer than what is asked."""
    return group.group_id if group.topics is None else id(group)


def _failed(
    request: OffsetFetchRequest, context: RequestContext, code: ErrorCode
) -> OffsetFetchResponse:
    if context.api_version >= _GROUP_ERROR_SINCE:
        return OffsetFetchResponse(error_code=code)
    found = _found(request.topics, {})
    nothing = [(name, dict.fromkeys(commits, _Commit(code))) for name, commits in found]
    return OffsetFetchResponse(topics=_topics(nothing))


def _topics(found: Found) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=name, partitions=_partitions(OffsetFetchResponsePartition, commits)
        )
        for name, commits in found
    ]


def _group(
    node: Node, asked: OffsetFetchRequestGroup, requires_stable: bool
) -> OffsetFetchResponseGroup:
    try:
        member_id, epoch = asked.member_id or "", asked.member_epoch
        refusal = node.coordinator.check_member(asked.group_id, member_id, epoch)
        if refusal is not ErrorCode.NONE:
            raise RequestError(refusal)
        offsets = node.coordinator.committed(asked.group_id)
    except RequestError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=(), error_code=error.code)
    found = _stable(node, asked.group_id, _found(asked.topics, offsets), requires_stable)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=name, partitions=_partitions(OffsetFetchResponsePartitions, commits)
            )
            for name, commits in found
        ],
    )


def _group_by_ids(
    node: Node, asked: OffsetFetchRequestGroup, requires_stable: bool
) -> OffsetFetchResponseGroup:
    """As `_group`, of topics that are asked for by their ids."""
    unknown: list[OffsetFetchRequestTopics] = []
    if asked.topics is not None:
        topics = with_names(node.topics, asked.topics)
        unknown = [each for each in topics if not each.name]
        asked = replace(asked, topics=[each for each in topics if each.name])
    answer = _group(node, asked, requires_stable)
    if answer.error_code:
        return answer
    found = ((each, node.topics.get(each.name)) for each in answer.topics)
    known = [replace(each, topic_id=topic.id) for each, topic in found if topic is not None]
    return replace(answer, topics=[*known, *map(_unknown_topic, unknown)])


def _unknown_topic(asked: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=asked.topic_id,
        partitions=_partitions(
            OffsetFetchResponsePartitions,
            dict.fromkeys(asked.partition_indexes, _Commit(ErrorCode.UNKNOWN_TOPIC_ID)),
        ),
    )


def _partitions(kind: type[P], commits: Mapping[int, _Commit]) -> list[P]:
    return [
        kind(
            partition_index=partition,
            committed_offset=commit.value.offset,
            committed_leader_epoch=commit.value.leader_epoch,
            metadata=commit.value.metadata,
            error_code=commit.code,
        )
        for partition, commit in commits.items()
    ]


def _stable(
    node: Node,
    group_id: str,
    found: Sequence[tuple[str, Mapping[int, OffsetCommitValue]]],
    requires_stable: bool,
) -> Found:
    """With `requires_stable`, an offset that an open transaction may yet replace is not told."""

    def look(partition: TopicPartition, value: OffsetCommitValue) -> _Commit:
        if requires_stable and node.coordinator.is_unstable(group_id, partition):
            return _Commit(ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return _Commit(value=value)

    return [
        (name, {each: look(TopicPartition(name, each), value) for each, value in commits.items()})
        for name, commits in found
    ]


def _found(asked: Asked, offsets: Offsets) -> list[tuple[str, Mapping[int, OffsetCommitValue]]]:
    """The commits by topic; a partition without one has offset -1, and that is no error."""
    if asked is not None:
        return [
            (
                topic.name,
                {
                    partition: offsets.get(TopicPartition(topic.name, partition), _NO_COMMIT)
                    for partition in topic.partition_indexes
                },
            )
            for topic in asked
        ]
    by_topic = groupby(sorted(offsets), key=lambda partition: partition.topic)
    return [
        (topic, {partition.partition: offsets[partition] for partition in partitions})
        for topic, partitions in by_topic
    ]
