"""Coordinators: finding them, and the commits that those of groups keep."""

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final, TypeVar

from tidemark.client.codes import check, check_each, left_out, only, raise_first
from tidemark.client.connection import Connection
from tidemark.client.descriptions import BrokerDescription, CommittedOffset
from tidemark.client.limits import INT64_MAX, require_whole
from tidemark.client.lookups import by_topic
from tidemark.client.network import Network, address_of
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidemark.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tidemark.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tidemark.protocol.types import Epoch, NodeId, Offset, TopicPartition
from tidemark.protocol.values import dataclass

T = TypeVar("T")

GROUP: Final = 0
TRANSACTION: Final = 1
"""What has a coordinator, as FindCoordinator numbers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """In whose name a commit is made."""

    generation: int = -1
    member_id: str = ""
    instance_id: str | None = None


OUTSIDE: Final = Membership()
"""No member: allowed while the group has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMembership:
    """A group, and who commits for it."""

    group: str
    membership: Membership = OUTSIDE


async def find_coordinator(
    network: Network, name: str, *, kind: int = GROUP, seconds: float = math.inf
) -> BrokerDescription:
    """Ask any broker who coordinates the group, or the transactional id.

    Retriable `RequestError` while nobody does; `OSError` if that broker does not answer within so
    many seconds, or within any request's time.
    """
    what = f"{'group' if kind == GROUP else 'transactional id'} {name}"

    async def ask(connection: Connection) -> tuple[FindCoordinatorResponse, int]:
        version = connection.version(FindCoordinatorRequest)
        if version >= 4:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[name])
        else:
            request = FindCoordinatorRequest(key_type=kind, key=name)
        answer = await connection.request_within(request, FindCoordinatorResponse, seconds)
        return answer, version

    answer, version = await network.ask_any(ask)
    if version < 4:
        check(answer.error_code, what, answer.error_message)
        return BrokerDescription(node_id=NodeId(answer.node_id), host=answer.host, port=answer.port)
    for found in answer.coordinators:
        check(found.error_code, what, found.error_message)
        return BrokerDescription(node_id=NodeId(found.node_id), host=found.host, port=found.port)
    check(ErrorCode.COORDINATOR_NOT_AVAILABLE, what)
    raise AssertionError("check raises")


async def on_coordinator(
    network: Network,
    name: str,
    ask: Callable[[BrokerDescription, Connection], Awaitable[T]],
    *,
    kind: int = GROUP,
    final: Collection[ErrorCode] = (),
) -> T:
    """Ask the coordinator of a group or a transactional id, and the next one if it has moved."""

    async def attempt() -> T:
        coordinator = await find_coordinator(network, name, kind=kind)
        return await ask(coordinator, await network.pool.connection(address_of(coordinator)))

    return await network.retrying(attempt, final=final)


async def fetch_commits(
    connection: Connection, group: str, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, CommittedOffset]:
    """The group's commits, of these partitions or (None) all it has."""
    topics = None if partitions is None else by_topic(partitions)
    # Not while a transaction that commits offsets is open, where the broker can tell.
    stable = connection.version(OffsetFetchRequest) >= 7
    if connection.version(OffsetFetchRequest) >= 8:
        return await _fetch_commits_of_groups(connection, group, topics)
    answer = await connection.request(
        OffsetFetchRequest(
            group_id=group,
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=name, partition_indexes=indexes)
                for name, indexes in topics.items()
            ],
            require_stable=stable,
        ),
        OffsetFetchResponse,
    )
    check(answer.error_code, f"group {group}")
    return _commits(group, topics, answer.topics)


async def _fetch_commits_of_groups(
    connection: Connection, group: str, topics: Mapping[str, list[int]] | None
) -> dict[TopicPartition, CommittedOffset]:
    asked = OffsetFetchRequestGroup(
        group_id=group,
        topics=None
        if topics is None
        else [
            OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ],
    )
    answer = await connection.request(
        OffsetFetchRequest(groups=[asked], require_stable=True), OffsetFetchResponse
    )
    answered = only(answer.groups, f"group {group}")
    check(answered.error_code, f"group {group}")
    return _commits(group, topics, answered.topics)


def _commits(
    group: str,
    asked: Mapping[str, list[int]] | None,
    topics: Iterable[OffsetFetchResponseTopic | OffsetFetchResponseTopics],
) -> dict[TopicPartition, CommittedOffset]:
    # What is left out is not without a commit: its reader would begin anew.
    left = {TopicPartition(topic, each) for topic, some in (asked or {}).items() for each in some}
    commits: dict[TopicPartition, CommittedOffset] = {}
    for topic in topics:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            left.discard(topic_partition)
            check(partition.error_code, topic_partition)
            if partition.committed_offset >= 0:
                commits[topic_partition] = CommittedOffset(
                    offset=Offset(partition.committed_offset),
                    leader_epoch=Epoch(partition.committed_leader_epoch),
                    metadata=partition.metadata or None,
                )
    raise_first([left_out(f"{each} of group {group}") for each in sorted(left)])
    return commits


async def commit(
    connection: Connection,
    group: str,
    offsets: Mapping[TopicPartition, CommittedOffset],
    membership: Membership = OUTSIDE,
) -> None:
    """Commit; raises `RequestError` for the first partition that was refused, with the other
    refusals as its notes."""
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=(committed := offsets[TopicPartition(topic, index)]).offset,
                    committed_leader_epoch=committed.leader_epoch,
                    committed_metadata=committed.metadata or "",
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(offsets).items()
    ]
    has_instances = connection.version(OffsetCommitRequest) >= 7
    answer = await connection.request(
        OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=membership.generation,
            member_id=membership.member_id,
            group_instance_id=membership.instance_id if has_instances else None,
            topics=topics,
        ),
        OffsetCommitResponse,
    )
    codes = {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }
    check_each((code, each, None) for each, code in codes.items())
    raise_first([left_out(each) for each in offsets if each not in codes])


def as_commit(offset: int | CommittedOffset) -> CommittedOffset:
    """An offset as a commit without epoch and metadata; a commit as it is.

    Raises `TypeError` and `ValueError` for what is no offset.
    """
    if not isinstance(offset, CommittedOffset):
        offset = CommittedOffset(offset=Offset(offset))
    require_whole("a committed offset", offset.offset, most=INT64_MAX)
    return offset
