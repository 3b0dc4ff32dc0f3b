"""What consumers ask of a coordinator, through the wire at any version."""

from collections.abc import Mapping
from uuid import UUID

from tests.broker.handlers.asking import ask
from tidemark.broker.handlers import (
    find_coordinator,
    heartbeat,
    join_group,
    offset_commit,
    offset_fetch,
    sync_group,
)
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.protocol.messages.find_coordinator import FindCoordinatorRequest
from tidemark.protocol.messages.heartbeat import HeartbeatRequest
from tidemark.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tidemark.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidemark.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from tidemark.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

GROUP = "group"
AT_ONCE = {
    "group_initial_rebalance_delay_ms": 0,
    "group_min_session_timeout_ms": 1,
    "offsets_topic_num_partitions": 2,
}
"""Settings with which groups form without a wait."""

Committed = OffsetFetchResponsePartition | OffsetFetchResponsePartitions


async def find(node: Node) -> None:
    """What every client does first; it makes the topic that groups are kept in."""
    await ask(find_coordinator.handle, node, FindCoordinatorRequest(key=GROUP), 3)


def join_request(member_id: str = "", *, session_ms: int = 10_000) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"topics")],
    )


async def join(node: Node, *, version: int = 9, session_ms: int = 10_000) -> JoinGroupResponse:
    """Join, and once more with the id that versions from 4 on give out first."""
    answer = await ask(join_group.handle, node, join_request(session_ms=session_ms), version)
    if version >= 4:
        request = join_request(answer.member_id, session_ms=session_ms)
        answer = await ask(join_group.handle, node, request, version)
    return answer


async def sync(
    node: Node, joined: JoinGroupResponse, *, version: int = 5, assignment: bytes = b"all"
) -> SyncGroupResponse:
    request = SyncGroupRequest(
        group_id=GROUP,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer" if version >= 5 else None,
        protocol_name="range" if version >= 5 else None,
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
    )
    return await ask(sync_group.handle, node, request, version)


async def beat(node: Node, joined: JoinGroupResponse, *, version: int = 4) -> int:
    request = HeartbeatRequest(
        group_id=GROUP, generation_id=joined.generation_id, member_id=joined.member_id
    )
    answer = await ask(heartbeat.handle, node, request, version)
    return answer.error_code


async def create_topic(node: Node, name: str = "orders") -> None:
    await node.topics.ensure(NewTopic(name=name, partitions=2))


def topic_id(node: Node, name: str) -> UUID:
    topic = node.topics.get(name)
    return UUID(int=404) if topic is None else topic.id


def name_of(node: Node, topic_id: UUID) -> str:
    topic = node.topics.by_id(topic_id)
    return "unknown" if topic is None else topic.name


async def commit(
    node: Node,
    offsets: Mapping[int, int],
    *,
    topic: str = "orders",
    version: int = 9,
    metadata: str | None = "note",
    member: JoinGroupResponse | None = None,
) -> dict[int, int]:
    """Commit offsets by partition; the error codes by partition."""
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=-1 if member is None else member.generation_id,
        member_id="" if member is None else member.member_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id(node, topic),
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition,
                        committed_offset=offset,
                        committed_leader_epoch=3,
                        committed_metadata=metadata,
                    )
                    for partition, offset in offsets.items()
                ],
            )
        ],
    )
    answer = await ask(offset_commit.handle, node, request, version)
    return {p.partition_index: p.error_code for t in answer.topics for p in t.partitions}


async def fetch(
    node: Node, partitions: list[int] | None, *, topic: str = "orders", version: int = 9
) -> dict[tuple[str, int], Committed]:
    """The commits by topic and partition; all of the group's where None is asked for."""
    if version >= 8:
        several = [
            OffsetFetchRequestTopics(
                name=topic, topic_id=topic_id(node, topic), partition_indexes=partitions or []
            )
        ]
        topics = None if partitions is None else several
        group = OffsetFetchRequestGroup(group_id=GROUP, topics=topics)
        request = OffsetFetchRequest(groups=[group])
    else:
        one = [OffsetFetchRequestTopic(name=topic, partition_indexes=partitions or [])]
        request = OffsetFetchRequest(group_id=GROUP, topics=None if partitions is None else one)
    answer = await ask(offset_fetch.handle, node, request, version)
    found: dict[tuple[str, int], Committed] = {}
    for each in answer.topics:
        found.update({(each.name, commit.partition_index): commit for commit in each.partitions})
    for group_found in answer.groups:
        for one_of in group_found.topics:
            name, commits = one_of.name or name_of(node, one_of.topic_id), one_of.partitions
            found.update({(name, commit.partition_index): commit for commit in commits})
    return found
