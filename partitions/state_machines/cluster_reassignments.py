"""Topics whose partitions are wished to be held by other brokers, and once they are.

Each function makes one copy of a topic for all the changes of a command: there may be thousands.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    LeaderMove,
    PartitionId,
    Reassignment,
    TopicMetadata,
)
from tidemark.partitions.state_machines.cluster_wishes import check_partition
from tidemark.partitions.state_machines.placement import check_assignment
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId


def by_topic(changes: Iterable[Reassignment]) -> dict[UUID, list[Reassignment]]:
    """The same by the topics that they are about, all in the order in which they came."""
    of_topics: dict[UUID, list[Reassignment]] = {}
    for change in changes:
        of_topics.setdefault(change.topic_id, []).append(change)
    return of_topics


def check_reassignment(
    topic: TopicMetadata,
    change: Reassignment,
    brokers: Collection[NodeId],
    moves: Mapping[PartitionId, LeaderMove],
) -> Assignment:
    """The brokers that are to hold a partition once that wish has come true.

    `None` is back to those it was assigned to, and is refused where nothing is under way. A wish
    that is not fulfilled yet is replaced. Raises `RequestError`.
    """
    partition, replicas = change.partition, change.replicas
    check_partition(topic, partition)
    name = f"{topic.name}-{partition}"
    if replicas is None:
        if partition not in topic.wanted:
            raise RequestError(
                ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"the replicas of {name} are not being moved"
            )
        replicas = topic.assignments[partition]
    check_assignment(replicas, brokers, partition=partition)
    observing = set(replicas) & set(topic.observers.get(partition, ()))
    if observing:
        raise RequestError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"broker {min(observing)} observes {name}: remove the observer first",
        )
    move = moves.get(PartitionId(topic.id, partition))
    if move is not None and change.replicas is not None:
        raise RequestError(
            ErrorCode.REASSIGNMENT_IN_PROGRESS,
            f"the leader of {name} is being moved to broker {move.target}: wait until that is over",
        )
    return replicas


def reassigned(
    topic: TopicMetadata,
    changes: Iterable[Reassignment],
    brokers: Collection[NodeId],
    *,
    version: int,
    moves: Mapping[PartitionId, LeaderMove],
) -> TopicMetadata:
    """The topic once partitions are wished to be held by other brokers, from `version` on.

    Each change is checked on what those before it lead to. Raises `RequestError`.
    """
    wanted, wanted_at, leaving = _copies(topic)
    draft = replace(topic, wanted=wanted, wanted_at=wanted_at, leaving=leaving)
    for change in changes:
        replicas = check_reassignment(draft, change, brokers, moves)
        partition = change.partition
        before = {*wanted.get(partition, ()), *leaving.get(partition, ())}
        left = before - {*topic.assignments[partition], *replicas}
        wanted[partition], wanted_at[partition] = replicas, version
        leaving.pop(partition, None)
        if left:
            leaving[partition] = tuple(sorted(left))
    return draft


def finished(topic: TopicMetadata, changes: Iterable[Reassignment]) -> TopicMetadata:
    """The topic once groups have gone over as was wished; where it was another wish, as it is."""
    assignments, (wanted, wanted_at, leaving) = list(topic.assignments), _copies(topic)
    for change in changes:
        partition = change.partition
        wish = (wanted.get(partition), wanted_at.get(partition, -1))
        if change.replicas is None or wish != (change.replicas, change.at):
            continue
        assignments[partition] = change.replicas
        for each in (wanted, wanted_at, leaving):
            each.pop(partition, None)
    if len(wanted) == len(topic.wanted):
        return topic
    return replace(
        topic,
        assignments=tuple(assignments),
        wanted=wanted,
        wanted_at=wanted_at,
        leaving=leaving,
    )


def _copies(
    topic: TopicMetadata,
) -> tuple[dict[int, Assignment], dict[int, int], dict[int, Assignment]]:
    """What is wished of a topic's partitions, since when, and what earlier wishes have left."""
    return dict(topic.wanted), dict(topic.wanted_at), dict(topic.leaving)
