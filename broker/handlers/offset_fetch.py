"""OffsetFetch: how far groups have read; one group up to version 7, several from 8 (trap G8)."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.partitions.state_machines.groups.offsets import Offsets
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.consumer_offsets import OffsetCommitValue
from tidemark.protocol.messages.offset_fetch import (
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

_SEVERAL_SINCE = 8
_GROUP_ERROR_SINCE = 2
_NO_COMMIT = OffsetCommitValue(offset=-1, metadata="", commit_timestamp=-1)

Asked = Sequence[OffsetFetchRequestTopic] | Sequence[OffsetFetchRequestTopics] | None
"""Topics with their partitions; None is everything that the group has commits of."""


def handle(node: Node, request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    if context.api_version >= _SEVERAL_SINCE:
        return OffsetFetchResponse(groups=[_group(node, group) for group in request.groups])
    try:
        offsets = node.coordinator.committed(request.group_id)
    except RequestError as error:
        return _failed(request, context, error.code)
    return OffsetFetchResponse(topics=_topics(request.topics, offsets))


def _failed(
    request: OffsetFetchRequest, context: RequestContext, code: ErrorCode
) -> OffsetFetchResponse:
    if context.api_version >= _GROUP_ERROR_SINCE:
        return OffsetFetchResponse(error_code=code)
    return OffsetFetchResponse(topics=_topics(request.topics, {}, code))


def _topics(
    asked: Asked, offsets: Offsets, code: ErrorCode = ErrorCode.NONE
) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=partition,
                    committed_offset=commit.offset,
                    committed_leader_epoch=commit.leader_epoch,
                    metadata=commit.metadata,
                    error_code=code,
                )
                for partition, commit in commits.items()
            ],
        )
        for name, commits in _found(asked, offsets)
    ]


def _group(node: Node, asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    try:
        offsets = node.coordinator.committed(asked.group_id)
    except RequestError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, topics=(), error_code=error.code)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=name,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=partition,
                        committed_offset=commit.offset,
                        committed_leader_epoch=commit.leader_epoch,
                        metadata=commit.metadata,
                    )
                    for partition, commit in commits.items()
                ],
            )
            for name, commits in _found(asked.topics, offsets)
        ],
    )


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
