"""MoveLeaders: wishes are taken where the metadata are led, and waited for where they were made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio

from tidemark.broker.handlers.change import Change
from tidemark.broker.moves.door import Answer, Asked, Taken
from tidemark.broker.moves.outcomes import Wish
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.replicas.leadership import NOBODY
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.cluster_values import PartitionId
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.move_leaders import (
    LeaderMove,
    MovedLeader,
    MoveLeadersRequest,
    MoveLeadersResponse,
)
from tidemark.protocol.types import NodeId, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.node import Node

LATE_SECONDS: Final = 5.0
"""How long after its deadline a move may be waited for: until somebody leads the metadata, say."""


async def handle(
    node: Node, request: MoveLeadersRequest, _context: RequestContext
) -> MoveLeadersResponse:
    """On the leader of the metadata: what is taken has a deadline, and is not over yet."""
    steps = Steps()
    asked = await steps.each(request.moves, _asked)
    answers = await node.moves.door.take(
        asked,
        request.reason,
        timeout_ms=request.timeout_ms,
        validate_only=request.validate_only,
    )
    moves = await steps.each(zip(asked, answers, strict=True), lambda each: _taken(*each))
    return MoveLeadersResponse(moves=moves)


def _asked(move: LeaderMove) -> Asked:
    return Asked(TopicPartition(move.topic, move.partition), NodeId(move.target))


def _taken(asked: Asked, answer: Answer) -> MovedLeader:
    topic, partition = asked.partition.topic, asked.partition.partition
    if isinstance(answer, Taken):
        return MovedLeader(topic=topic, partition=partition, deadline_ms=answer.move.deadline_ms)
    return MovedLeader(
        topic=topic,
        partition=partition,
        error_code=answer.code,
        error_message=answer.message,
    )


async def wait_over(
    node: Node, request: MoveLeadersRequest, taken: MoveLeadersResponse
) -> MoveLeadersResponse:
    """On the broker that was asked: what has become of the moves that were taken."""
    moves, steps = list(taken.moves), Steps()
    if not request.validate_only:
        with trio.move_on_after(max(request.timeout_ms, 0) / 1000 + LATE_SECONDS):
            for at, asked in enumerate(request.moves):
                if moves[at].error_code == ErrorCode.NONE:
                    moves[at] = await _over(node, asked, moves[at])
                await steps.did(1)
    return replace(
        taken,
        moves=await steps.each(moves, lambda each: _with_leader(node, each, request.validate_only)),
    )


async def _over(node: Node, asked: LeaderMove, taken: MovedLeader) -> MovedLeader:
    topic = node.topics.get(asked.topic)
    if topic is None:
        return replace(taken, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, deadline_ms=-1)
    wish = Wish(PartitionId(topic.id, asked.partition), NodeId(asked.target), taken.deadline_ms)
    outcome = await node.moves.outcomes.wait(wish)
    if outcome is None:
        leads = node.brokers.leader_of(PartitionKey(topic.id, asked.partition))[0] == asked.target
        return taken if leads else _unknown(taken)
    return replace(
        taken,
        error_code=(
            ErrorCode.NONE if outcome.failure is None else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        ),
        error_message=outcome.failure,
        deadline_ms=-1,
        attempts=outcome.attempts,
        catch_up_us=outcome.catch_up_us,
        pause_us=outcome.pause_us,
    )


def _unknown(taken: MovedLeader) -> MovedLeader:
    return replace(
        taken,
        error_code=ErrorCode.REQUEST_TIMED_OUT,
        error_message="what became of it, only looking will tell",
    )


def _with_leader(node: Node, moved: MovedLeader, validate_only: bool) -> MovedLeader:
    is_open = moved.error_code == ErrorCode.NONE and moved.deadline_ms != -1
    if is_open and not validate_only:
        moved = _unknown(moved)
    topic = node.topics.get(moved.topic)
    leader = None
    if topic is not None:
        leader = node.brokers.leader_of(PartitionKey(topic.id, moved.partition))[0]
    return replace(moved, leader=NOBODY if leader is None else leader)


CHANGE: Final = Change(
    handle=handle, response=MoveLeadersResponse, may_repeat=True, afterwards=wait_over
)
