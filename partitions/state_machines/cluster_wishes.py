"""What is wished of the cluster: which leaders are to move, and what is wanted of each broker.

Who leads is found out among the replicas of a partition and is not here. A wish is: it must not die
with the broker that took it. The leader of the group carries it out; then it is struck.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerState,
    LeaderMove,
    MoveOutcome,
    PartitionId,
    TopicMetadata,
    from_plain,
    plain,
)
from tidemark.partitions.state_machines.placement import check_assignment
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

_NOT_ACTIVE: Final = {
    BrokerState.DRAINING: "is drained: its leaders were moved away",
    BrokerState.DECOMMISSIONING: "is being decommissioned",
}


class Wishes:
    """The part of the cluster's state that says what should become of the rest."""

    def __init__(self) -> None:
        self._moves: dict[PartitionId, LeaderMove] = {}
        self._broker_states: dict[NodeId, BrokerState] = {}

    def copy(self) -> "Wishes":
        made = Wishes()
        made._moves, made._broker_states = dict(self._moves), dict(self._broker_states)
        return made

    @property
    def moves(self) -> Mapping[PartitionId, LeaderMove]:
        return self._moves

    def broker_state(self, node_id: NodeId) -> BrokerState:
        return self._broker_states.get(node_id, BrokerState.ACTIVE)

    # Commands: each raises `RequestError`, or returns what carries it out

    def add_moves(
        self, moves: Sequence[LeaderMove], topic_of: Callable[[LeaderMove], TopicMetadata]
    ) -> Callable[[], None]:
        added: dict[PartitionId, LeaderMove] = {}
        for move in moves:
            topic = topic_of(move)
            name = f"{topic.name}-{move.partition}"
            if move.id in self._moves or move.id in added:
                pending = self._moves.get(move.id) or added[move.id]
                raise _refused(
                    ErrorCode.REASSIGNMENT_IN_PROGRESS,
                    f"the leader of {name} is being moved to broker {pending.target}: wait until "
                    "that is over",
                )
            check_partition(topic, move.partition)
            assigned = topic.assignments[move.partition]
            if move.target not in assigned:
                raise _refused(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"broker {move.target} is no replica of {name}: those are "
                    f"{', '.join(map(str, assigned))}",
                )
            if move.target not in topic.wanted.get(move.partition, assigned):
                raise _refused(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"the replica of {name} on broker {move.target} is being moved away",
                )
            state = self.broker_state(move.target)
            if state is not BrokerState.ACTIVE:
                raise _refused(
                    ErrorCode.INVALID_REQUEST, f"broker {move.target} {_NOT_ACTIVE[state]}"
                )
            added[move.id] = move
        return lambda: self._moves.update(added)

    def end_moves(self, outcomes: Iterable[MoveOutcome]) -> Callable[[], None]:
        def carry_out() -> None:
            for outcome in outcomes:
                move = self._moves.get(outcome.id)
                if move is not None and _is_of(outcome, move):
                    del self._moves[outcome.id]

        return carry_out

    def set_broker_state(self, node_id: NodeId, state: BrokerState) -> Callable[[], None]:
        def carry_out() -> None:
            self._broker_states.pop(node_id, None)
            if state is not BrokerState.ACTIVE:
                self._broker_states[node_id] = state

        return carry_out

    # What goes away with what it was wished of

    def forget_broker(self, node_id: NodeId) -> None:
        self._broker_states.pop(node_id, None)

    def forget_topic(self, topic: TopicMetadata) -> None:
        for partition in range(topic.partitions):
            self._moves.pop(PartitionId(topic.id, partition), None)

    # As a part of a snapshot. Any: JSON's own values

    def body(self) -> dict[str, Any]:
        return {
            "moves": plain(tuple(self._moves.values())),
            "broker_states": plain(self._broker_states),
        }

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Wishes":
        wishes = cls()
        for each in body["moves"]:
            move = LeaderMove(**from_plain(each))
            wishes._moves[move.id] = move
        for node_id, state in body["broker_states"].items():
            wishes._broker_states[NodeId(int(node_id))] = BrokerState(state)
        return wishes


def _is_of(outcome: MoveOutcome, move: LeaderMove) -> bool:
    return (outcome.target, outcome.deadline_ms) == (move.target, move.deadline_ms)


def check_partition(topic: TopicMetadata, partition: int) -> None:
    if not 0 <= partition < topic.partitions:
        raise _refused(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"there is no {topic.name}-{partition}: the topic has {topic.partitions} partitions",
        )


def _with(
    before: Mapping[int, Assignment], partition: int, nodes: Assignment
) -> dict[int, Assignment]:
    """The same for all others; no entry for nobody."""
    after = {each: held for each, held in before.items() if each != partition}
    return {**after, partition: nodes} if nodes else after


def checked_observers(
    topic: TopicMetadata, partition: int, observers: Assignment, brokers: Iterable[NodeId]
) -> dict[int, Assignment]:
    """A topic's observers once those of that partition are these. Raises `RequestError`."""
    check_partition(topic, partition)
    if not observers:
        return _with(topic.observers, partition, ())
    check_assignment(observers, frozenset(brokers), partition=partition)
    voting = {*topic.replicas(partition)} & {*observers}
    if voting:
        raise _refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"broker {min(voting)} is a replica of {topic.name}-{partition} with a vote: it has "
            "all that an observer has",
        )
    return _with(topic.observers, partition, observers)


def _refused(code: ErrorCode, why: str) -> RequestError:
    return RequestError(code, why)
