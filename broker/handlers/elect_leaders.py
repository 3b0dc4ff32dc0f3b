"""ElectLeaders: leaders go to the replicas that are to lead first, as moves of leaders.

Kafka's other kind, the election of a replica that lacks what was acknowledged, is refused: a
partition here is led by one that holds all of it, or by nobody until one is back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import trio

from tidemark.broker.handlers.change import Change
from tidemark.broker.moves.door import Asked, Door, Taken
from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps, distinct, portions
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.state_machines.cluster_values import PartitionId
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError, shortened
from tidemark.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from tidemark.protocol.types import TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.node import Node

PREFERRED: Final = 0
"""The replica that is to lead first."""
UNCLEAN: Final = 1
"""Any that lives."""
MOVE_MS_MIN: Final = 10_000
_CODES: Final[Mapping[Reason, ErrorCode]] = {
    Reason.UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    Reason.NOT_NEEDED: ErrorCode.ELECTION_NOT_NEEDED,
    Reason.NO_LEADER: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
    Reason.IN_MOTION: ErrorCode.REASSIGNMENT_IN_PROGRESS,
}
_NO_NEWS: Final = frozenset(
    # A partition that was deleted meanwhile was not asked for by its name.
    {ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
_REASON: Final = "its preferred leader was elected"
_NO_UNCLEAN: Final = (
    "it has no leader because no replica is there that surely holds all that was acknowledged: "
    "start the brokers that do. One that may lack some of it is not elected"
)

Results = dict[TopicPartition, PartitionResult]


async def handle(
    node: Node, request: ElectLeadersRequest, _context: RequestContext
) -> ElectLeadersResponse:
    """On the leader of the metadata: what has no error is on its way."""
    partitions = _named(request)
    if request.election_type == PREFERRED:
        results = await _elect_preferred(node, partitions, request.timeout_ms)
    elif request.election_type == UNCLEAN:
        results = await _refuse_unclean(node, partitions)
    else:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"there is no election of type {request.election_type}"
        )
    if partitions is None:
        # Who asks for all wants to hear of those that had a reason to change.
        results = {
            at: result for at, result in results.items() if result.error_code not in _NO_NEWS
        }
    return ElectLeadersResponse(replica_election_results=_by_topic(results))


def _named(request: ElectLeadersRequest) -> Sequence[TopicPartition] | None:
    if request.topic_partitions is None:
        return None
    return [
        TopicPartition(topic.topic, partition)
        for topic in request.topic_partitions
        for partition in topic.partitions
    ]


async def _elect_preferred(
    node: Node, partitions: Sequence[TopicPartition] | None, timeout_ms: int
) -> Results:
    door, results, steps = node.moves.door, Results(), Steps()
    await door.wait_leaders(partitions or ())
    asked = door.existing(None) if partitions is None else distinct(partitions)
    for portion in portions(asked):
        results.update(await _elect_portion(door, portion, timeout_ms))
        await steps.did(len(portion))
    return results


async def _elect_portion(
    door: Door, partitions: Sequence[TopicPartition], timeout_ms: int
) -> Results:
    plan = door.plan_preferred(partitions)
    results = {
        refusal.partition: _result(
            refusal.partition.partition,
            _CODES.get(refusal.reason, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
            refusal.sentence,
        )
        for refusal in plan.refusals
        if refusal.partition is not None
    }
    # Where the preferred one cannot lead, the next best is not what was asked for.
    asked = [
        Asked(move.partition, move.target) for move in plan.moves if move.partition not in results
    ]
    # However soon the client wants its answer: the leaders have time to go.
    timeout_ms = max(timeout_ms, MOVE_MS_MIN)
    answers = await door.take(asked, _REASON, timeout_ms=timeout_ms, validate_only=False)
    for (at, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, Taken):
            results[at] = PartitionResult(partition_id=at.partition)
        else:
            results[at] = _result(at.partition, answer.code, answer.message)
    return results


async def _refuse_unclean(node: Node, partitions: Sequence[TopicPartition] | None) -> Results:
    results, steps = Results(), Steps()
    for at in node.moves.door.existing(partitions):
        topic = node.topics.get(at.topic)
        leader = None
        if topic is not None:
            leader = node.brokers.leader_of(PartitionKey(topic.id, at.partition))[0]
        results[at] = (
            _result(at.partition, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, _NO_UNCLEAN)
            if leader is None
            else _result(at.partition, ErrorCode.ELECTION_NOT_NEEDED, f"broker {leader} leads it")
        )
        await steps.did(1)
    for at in partitions or ():
        unknown = _result(
            at.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {at}"
        )
        results.setdefault(at, unknown)
        await steps.did(1)
    return results


def _result(partition: int, code: ErrorCode, why: str | None) -> PartitionResult:
    why = why and shortened(why)
    return PartitionResult(partition_id=partition, error_code=code, error_message=why)


def _by_topic(results: Results) -> Sequence[ReplicaElectionResult]:
    topics: dict[str, list[PartitionResult]] = {}
    for at, result in results.items():
        topics.setdefault(at.topic, []).append(result)
    return [
        ReplicaElectionResult(topic=topic, partition_result=each) for topic, each in topics.items()
    ]


def refuse(request: ElectLeadersRequest, error: RequestError) -> ElectLeadersResponse:
    """Each partition says it too: the first version has no place for one error for all."""
    results = {at: _result(at.partition, error.code, error.message) for at in _named(request) or ()}
    return ElectLeadersResponse(error_code=error.code, replica_election_results=_by_topic(results))


async def wait_over(
    node: Node, request: ElectLeadersRequest, taken: ElectLeadersResponse
) -> ElectLeadersResponse:
    """On the broker that was asked: what has become of those that were on their way.

    A client that waits for nothing is told what is tried.
    """
    if request.timeout_ms <= 0:
        return taken
    results = dict(_results(taken))
    moving = [at for at, result in results.items() if result.error_code == ErrorCode.NONE]
    results.update({at: _late(at) for at in moving})
    steps = Steps()
    with trio.move_on_after(request.timeout_ms / 1000):
        for at in moving:
            results[at] = await _over(node, at)
            await steps.did(1)
    return replace(taken, replica_election_results=_by_topic(results))


def _results(response: ElectLeadersResponse) -> Iterable[tuple[TopicPartition, PartitionResult]]:
    for topic in response.replica_election_results:
        for result in topic.partition_result:
            yield TopicPartition(topic.topic, result.partition_id), result


async def _over(node: Node, at: TopicPartition) -> PartitionResult:
    topic = node.topics.get(at.topic)
    if topic is None:
        return _result(at.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it was deleted")
    wish = node.moves.outcomes.newest(PartitionId(topic.id, at.partition))
    outcome = None if wish is None else await node.moves.outcomes.wait(wish)
    if outcome is None or outcome.failure is None:
        return PartitionResult(partition_id=at.partition)
    return _result(at.partition, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, outcome.failure)


def _late(at: TopicPartition) -> PartitionResult:
    return _result(at.partition, ErrorCode.REQUEST_TIMED_OUT, "its leader is still on its way")


CHANGE: Final = Change(
    handle=handle,
    refuse=refuse,
    response=ElectLeadersResponse,
    may_repeat=True,
    afterwards=wait_over,
)
