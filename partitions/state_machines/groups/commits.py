"""OffsetCommit: who may commit in a group's name (trap G7), and what is written."""

from typing import Final

from tidemark.partitions.state_machines.groups.effects import ReplyWhenStored, Turn
from tidemark.partitions.state_machines.groups.group import ClassicGroup
from tidemark.partitions.state_machines.groups.kinds import AnyGroup, is_dead, is_empty
from tidemark.partitions.state_machines.groups.records import offset_record
from tidemark.partitions.state_machines.groups.requests import (
    Commit,
    CommitAnswer,
    GroupState,
    OffsetToCommit,
)
from tidemark.partitions.state_machines.groups.topic_view import TopicIdPartition, TopicView
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode

_RECORD_BYTES: Final = 100
"""What a record of a commit takes, without the names in it."""


def commit(group: AnyGroup, request: Commit, topics: TopicView, token: Token, turn: Turn) -> None:
    """Write the offsets; the answer waits until they are durable."""
    error = check(group, request, topics)
    if error is not ErrorCode.NONE:
        turn.reply(token, CommitAnswer(error=error))
        return
    if request.generation >= 0 and request.producer is None and isinstance(group, ClassicGroup):
        group.expect_heartbeat(group.members[request.member_id], turn.at.ticks_ms)
    bytes_max = turn.settings.offset_metadata_bytes_max
    too_large = {
        partition: ErrorCode.OFFSET_METADATA_TOO_LARGE
        for partition, offset in request.offsets.items()
        if not _fits(offset, bytes_max)
    }
    if _bytes_of(request) > turn.settings.commit_bytes_max:
        error = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        turn.reply(token, CommitAnswer(error=error, refused_partitions=too_large))
        return
    records = [
        offset_record(request, partition, offset, turn.at.wall_ms)
        for partition, offset in request.offsets.items()
        if partition not in too_large
    ]
    answer = CommitAnswer(refused_partitions=too_large)
    if records:
        turn.persist(records, ReplyWhenStored(token, answer), request.producer)
    else:
        turn.reply(token, answer)


def check(group: AnyGroup, request: Commit, topics: TopicView) -> ErrorCode:
    """Whether this client may commit now: NONE, or why not."""
    if is_dead(group):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if request.generation < 0 and is_empty(group):
        # An administrator, or a consumer that assigns itself: nobody else is there to disturb.
        return ErrorCode.NONE
    if request.producer is not None and _names_no_member(request):
        # A client from before KIP-447: the transactional id has to fence it.
        return ErrorCode.NONE
    error = group.check_member(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if isinstance(group, ClassicGroup):
        return _check_generation(group, request)
    member = group.members[request.member_id]
    if not (request.knows_member_epochs or member.is_classic):
        return ErrorCode.UNSUPPORTED_VERSION
    error = member.check_epoch(request.generation)
    if error is ErrorCode.STALE_MEMBER_EPOCH and member.has_held(
        _by_id(request, topics), since=request.generation
    ):
        # It has not heard of its new epoch, and nobody else has read these meanwhile (KIP-1251).
        return ErrorCode.NONE
    return error


def _by_id(request: Commit, topics: TopicView) -> list[TopicIdPartition]:
    """The partitions of which offsets are committed; none if not all are known."""
    found = []
    for partition in request.offsets:
        facts = topics.find(partition.topic)
        if facts is None:
            return []
        found.append(TopicIdPartition(facts.id, partition.partition))
    return found


def _check_generation(group: ClassicGroup, request: Commit) -> ErrorCode:
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE and request.producer is None:
        # It knows the generation but not yet its part in it, so what it commits is another's.
        return ErrorCode.REBALANCE_IN_PROGRESS
    # While preparing, the members of the last generation commit what they have done before they
    # join the next.
    return ErrorCode.NONE


def _names_no_member(request: Commit) -> bool:
    is_nobody = not request.member_id and request.instance_id is None
    return is_nobody and request.generation < 0


def _bytes_of(request: Commit) -> int:
    """What it takes in the log, at most: each record says the group's name."""
    each_bytes = _RECORD_BYTES + len(request.group_id.encode())
    names_bytes = sum(
        len(partition.topic) + len(offset.metadata.encode())
        for partition, offset in request.offsets.items()
    )
    return each_bytes * len(request.offsets) + names_bytes


def _fits(offset: OffsetToCommit, bytes_max: int) -> bool:
    return len(offset.metadata.encode()) <= bytes_max
