"""Taking wishes for other leaders, on the broker that leads the cluster's metadata.

What can be known here that stands in the way is refused with a sentence; how far a replica has
come, only the leader of its group knows, and refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

import trio

from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.broker.node import Clock
from tidemark.broker.steps import Steps, portions
from tidemark.partitions.balancing.by_hand import PreferredPlan, plan_preferred, why_not_moves
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.partitions.state_machines import cluster_values
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import MoveLeaders
from tidemark.partitions.state_machines.cluster_values import LeaderMove, PartitionId
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass

_STATES: Final = {
    cluster_values.BrokerState.ACTIVE: BrokerState.ACTIVE,
    cluster_values.BrokerState.DRAINING: BrokerState.DRAINING,
    cluster_values.BrokerState.DECOMMISSIONING: BrokerState.DECOMMISSIONING,
}
_CODES: Final[Mapping[Reason, ErrorCode]] = {
    Reason.UNKNOWN: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    Reason.DEAD: ErrorCode.BROKER_NOT_AVAILABLE,
    Reason.LEADS_NOTHING: ErrorCode.INELIGIBLE_REPLICA,
    Reason.FULL_DISK: ErrorCode.INELIGIBLE_REPLICA,
    Reason.NOT_A_REPLICA: ErrorCode.INVALID_REPLICA_ASSIGNMENT,
    Reason.LEARNER: ErrorCode.INELIGIBLE_REPLICA,
    Reason.OUT_OF_SYNC: ErrorCode.INELIGIBLE_REPLICA,
    Reason.NO_LEADER: ErrorCode.LEADER_NOT_AVAILABLE,
    Reason.IN_MOTION: ErrorCode.REASSIGNMENT_IN_PROGRESS,
    Reason.NOT_NEEDED: ErrorCode.ELECTION_NOT_NEEDED,
}
_SETTINGS: Final = Settings()
LEADER_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 0.02


class Asked(NamedTuple):
    """A partition, and who is to lead it."""

    partition: TopicPartition
    target: NodeId


@dataclass(frozen=True, slots=True)
class Taken:
    """A wish that is in the metadata now, perhaps since before it was asked for again."""

    move: LeaderMove


Answer = Taken | RequestError


class Door:
    """Where wishes come in; only for the leader of the metadata."""

    def __init__(
        self,
        cluster: ClusterLog,
        brokers: Brokers,
        clock: Clock,
        *,
        is_full: Callable[[NodeId], bool],
    ) -> None:
        """`is_full`: whether a broker has said that its disk takes no records."""
        self._cluster = cluster
        self._brokers = brokers
        self._clock = clock
        self._is_full = is_full

    async def take(
        self, asked: Sequence[Asked], reason: str, *, timeout_ms: int, validate_only: bool
    ) -> list[Answer]:
        """An answer for each, in their order: a wish, or why there is none.

        Raises `RequestError` if they could not all be written down; those that were stay, and are
        found when they are asked for again. With `validate_only` nothing is written.
        """
        await self.wait_leaders([each.partition for each in asked])
        answers, steps, seen = list[Answer](), Steps(), set[TopicPartition]()
        for portion in portions(asked):
            again = seen.intersection(each.partition for each in portion)
            answers += await self._take(portion, again, reason, timeout_ms, validate_only)
            seen.update(each.partition for each in portion)
            await steps.did(len(portion))
        return answers

    async def _take(
        self,
        asked: Sequence[Asked],
        again: Set[TopicPartition],
        reason: str,
        timeout_ms: int,
        validate_only: bool,
    ) -> list[Answer]:
        answers: list[Answer] = []

        def decide(state: ClusterState) -> MoveLeaders:
            answers[:] = self._answers(state, asked, again, reason, timeout_ms)
            moves = tuple(_new(answers, state))
            return MoveLeaders(at_version=state.version, moves=moves)

        command = decide(self._cluster.state)
        if command.moves and not validate_only:
            await self._cluster.propose(decide)
        return answers

    async def wait_leaders(self, partitions: Sequence[TopicPartition]) -> None:
        """Until each was led by somebody, but not long: an election, or the news of it, may be on
        its way. What has no leader then has none."""
        steps = Steps()
        with trio.move_on_after(LEADER_SECONDS):
            for partition in partitions:
                while self._is_leaderless(partition):  # noqa: ASYNC110 # heartbeats tell, nobody says when
                    await trio.sleep(_LOOK_SECONDS)
                await steps.did(1)

    def _is_leaderless(self, partition: TopicPartition) -> bool:
        state = self._cluster.state
        return any(
            self._group(state, each).leader is None for each in _existing(state, [partition])
        )

    def plan_preferred(self, partitions: Sequence[TopicPartition] | None) -> PreferredPlan:
        """Which leaders would go home, of these partitions or of all; and why others would not."""
        return plan_preferred(self._view(self._cluster.state, partitions), _SETTINGS, partitions)

    def existing(self, partitions: Sequence[TopicPartition] | None) -> Sequence[TopicPartition]:
        """Those of these that there are; `None` is all."""
        state = self._cluster.state
        return _all(state) if partitions is None else _existing(state, partitions)

    def _answers(
        self,
        state: ClusterState,
        asked: Sequence[Asked],
        again: Set[TopicPartition],
        reason: str,
        timeout_ms: int,
    ) -> Iterable[Answer]:
        """`again`: partitions that were named before these."""
        deadline_ms = self._clock.now_ms() + max(timeout_ms, 0)
        view = self._view(state, [each.partition for each in asked])
        why_not = why_not_moves(view, _SETTINGS)
        seen = set(again)
        for each in asked:
            if each.partition in seen:
                yield RequestError(
                    ErrorCode.INVALID_REQUEST, f"{each.partition} is named more than once"
                )
                continue
            seen.add(each.partition)
            wished = _wished(state, each)
            why = why_not(each.partition, each.target)
            if wished is not None:
                yield Taken(wished)
            elif why is not None:
                code = _CODES.get(why.reason, ErrorCode.INVALID_REQUEST)
                if why.reason is Reason.UNKNOWN and self.existing([each.partition]):
                    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT  # it is the broker that is unknown
                yield RequestError(code, why.sentence)
            else:
                topic = state.topics[each.partition.topic]
                yield Taken(
                    LeaderMove(
                        topic_id=topic.id,
                        partition=each.partition.partition,
                        target=each.target,
                        deadline_ms=deadline_ms,
                        reason=reason,
                    )
                )

    def _view(self, state: ClusterState, partitions: Sequence[TopicPartition] | None) -> Snapshot:
        """What is known here. That followers keep up is taken for granted."""
        brokers = [
            Broker(
                node_id=node,
                rack=broker.rack,
                state=_STATES[state.wishes.broker_state(node)],
                is_alive=self._brokers.is_alive(node),
                is_full=self._is_full(node),
            )
            for node, broker in state.brokers.items()
        ]
        groups = [self._group(state, partition) for partition in self.existing(partitions)]
        return Snapshot(now_ms=self._clock.now_ms(), brokers=brokers, groups=groups)

    def _group(self, state: ClusterState, partition: TopicPartition) -> Group:
        topic, number = state.topics[partition.topic], partition.partition
        assigned = topic.assignments[number]
        move = state.wishes.moves.get(PartitionId(topic.id, number))
        return Group(
            partition=partition,
            replicas=assigned,
            leader=self._brokers.leader_of(PartitionKey(topic.id, number))[0],
            voters=assigned,
            lags=dict.fromkeys(assigned, 0),
            moving_to=None if move is None else move.target,
            is_changing=number in topic.wanted,
        )


def _wished(state: ClusterState, asked: Asked) -> LeaderMove | None:
    """The same wish, if there is one: who was cut off asks again."""
    topic = state.topic(asked.partition.topic)
    if topic is None:
        return None
    move = state.wishes.moves.get(PartitionId(topic.id, asked.partition.partition))
    return move if move is not None and move.target == asked.target else None


def _new(answers: Iterable[Answer], state: ClusterState) -> Iterable[LeaderMove]:
    for answer in answers:
        if isinstance(answer, Taken) and answer.move.id not in state.wishes.moves:
            yield answer.move


def _all(state: ClusterState) -> list[TopicPartition]:
    return [
        TopicPartition(topic.name, number)
        for topic in state.topics.values()
        for number in range(topic.partitions)
    ]


def _existing(state: ClusterState, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
    found = []
    for partition in dict.fromkeys(partitions):
        topic = state.topic(partition.topic)
        if topic is not None and 0 <= partition.partition < topic.partitions:
            found.append(partition)
    return found
