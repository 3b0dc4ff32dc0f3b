"""Taking wishes for other replicas, on the broker that leads the cluster's metadata.

Each partition is taken or refused by itself. What is known to stand in the way is refused with a
sentence; whether the brokers can hold what they are to hold, only copying it will tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from tidemark.broker.steps import Steps, portions
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import Command, ReassignPartitions
from tidemark.partitions.state_machines.cluster_reassignments import check_reassignment
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerState,
    Reassignment,
    TopicMetadata,
)
from tidemark.partitions.state_machines.cluster_wishes import check_partition
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

IsAlive = Callable[[NodeId], bool]
IsFull = Callable[[NodeId], bool]
"""Whether a broker has said that its disk takes no records."""


class Asked(NamedTuple):
    """A partition, and who is to hold it, the preferred leader first; `None`: who did before."""

    topic: str
    partition: int
    replicas: Assignment | None


class Cluster(Protocol):
    """The cluster's metadata, and the way to change them."""

    @property
    def state(self) -> ClusterState: ...
    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied: ...


class Door:
    """Where wishes come in; only for the leader of the metadata."""

    def __init__(self, cluster: Cluster, is_alive: IsAlive, is_full: IsFull) -> None:
        self._cluster = cluster
        self._is_alive = is_alive
        self._is_full = is_full

    async def take(
        self, asked: Sequence[Asked], *, may_change_factor: bool = True
    ) -> list[RequestError | None]:
        """For each, in their order, why it is refused; `None` where it is wished, or so already.

        Raises `RequestError` if nothing could be written down.
        """
        answers, steps = list[RequestError | None](), Steps()
        times = Counter((each.topic, each.partition) for each in asked)
        for portion in portions(asked):
            try:
                answers += await self._take(portion, times, may_change_factor)
            except RequestError as error:
                if answers.count(None) == 0:
                    raise
                # Those before it are wished for.
                answers += [error] * (len(asked) - len(answers))
                break
            await steps.did(len(portion))
        return answers

    async def _take(
        self,
        asked: Sequence[Asked],
        times: Mapping[tuple[str, int], int],
        may_change_factor: bool,
    ) -> list[RequestError | None]:
        """`times`: how often each partition is named, in all."""
        answers: list[RequestError | None] = []

        def decide(state: ClusterState) -> ReassignPartitions:
            decided = list(self._decided(state, asked, times, may_change_factor))
            answers[:] = [each if isinstance(each, RequestError) else None for each in decided]
            changes = tuple(each for each in decided if isinstance(each, Reassignment))
            return ReassignPartitions(at_version=state.version, reassignments=changes)

        if decide(self._cluster.state).reassignments:
            await self._cluster.propose(decide)
        return answers

    def _decided(
        self,
        state: ClusterState,
        asked: Sequence[Asked],
        times: Mapping[tuple[str, int], int],
        may_change_factor: bool,
    ) -> Iterator[Reassignment | RequestError | None]:
        for each in asked:
            try:
                if times[each.topic, each.partition] > 1:
                    raise RequestError(
                        ErrorCode.INVALID_REQUEST,
                        f"{each.topic}-{each.partition} is named more than once",
                    )
                if _is_so_already(state, each):
                    yield None
                    continue
                yield change_of(
                    state,
                    each,
                    self._is_alive,
                    self._is_full,
                    may_change_factor=may_change_factor,
                )
            except RequestError as error:
                yield error


def change_of(
    state: ClusterState,
    asked: Asked,
    is_alive: IsAlive,
    is_full: IsFull,
    *,
    may_change_factor: bool = True,
) -> Reassignment:
    """The wish that is asked for. Raises `RequestError` where it could not come true."""
    topic = state.topic(asked.topic)
    if topic is None:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {asked.topic}")
    check_partition(topic, asked.partition)
    change = Reassignment(topic_id=topic.id, partition=asked.partition, replicas=asked.replicas)
    check_reassignment(topic, change, state.brokers, state.wishes.moves)
    if asked.replicas is not None:
        before = topic.assignments[asked.partition]
        if not may_change_factor and len(asked.replicas) != len(before):
            raise RequestError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{topic.name}-{asked.partition} has {len(before)} replicas, and "
                f"{len(asked.replicas)} were asked for: that change was not allowed",
            )
        for node in asked.replicas:
            if node not in before:
                _check_newcomer(state, node, is_alive, is_full)
        _check_majorities(topic, asked.partition, asked.replicas, is_alive)
    return change


def _is_so_already(state: ClusterState, asked: Asked) -> bool:
    """Whether a partition is held by just these, in this order, and nothing else is wished of it.

    Tools ask for that again and again. A wish costs the group an epoch, and its writes a pause,
    also where it changes nothing.
    """
    topic = state.topic(asked.topic)
    return (
        topic is not None
        and 0 <= asked.partition < len(topic.assignments)
        and asked.replicas == topic.assignments[asked.partition]
        and asked.partition not in topic.wanted
    )


def _check_newcomer(state: ClusterState, node: NodeId, is_alive: IsAlive, is_full: IsFull) -> None:
    """That a broker can be sent a copy."""
    if not is_alive(node):
        raise _impossible(f"broker {node} cannot be reached: start it, or choose another one")
    if state.wishes.broker_state(node) is BrokerState.DECOMMISSIONING:
        raise _impossible(f"broker {node} is being decommissioned: choose another one")
    if is_full(node):
        raise _impossible(
            f"the disk of broker {node} is full: make room on it, or choose another one"
        )


def _check_majorities(
    topic: TopicMetadata, partition: int, replicas: Assignment, is_alive: IsAlive
) -> None:
    name, before = f"{topic.name}-{partition}", topic.assignments[partition]
    for held_by, when in ((before, "now"), (replicas, "then")):
        alive = [node for node in held_by if is_alive(node)]
        if len(alive) <= len(held_by) // 2:
            named = ", ".join(map(str, alive)) or "none"
            raise _impossible(
                f"{name} is {when} on brokers {', '.join(map(str, held_by))}, of which "
                f"{named} can be reached: without a majority nothing can be written or changed"
            )


def _impossible(why: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, why)
