"""Wishes about leaders, replicas and brokers: taken whole, struck once, gone with their object."""

from dataclasses import replace
from uuid import UUID

import pytest

from tests.partitions.state_machines.clusters import create, on, refusal, with_brokers
from tests.partitions.state_machines.wishes import ORDERS, cluster, move, reassign, set_state, wish
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    CreatePartitions,
    DeleteTopic,
    EndMoves,
    FinishReassignments,
    SetObservers,
    UnregisterBroker,
)
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerState,
    LeaderMove,
    MoveOutcome,
    PartitionId,
    Reassignment,
    TopicMetadata,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NodeId


def topic(state: ClusterState) -> TopicMetadata:
    return state.topics["orders"]


def end(state: ClusterState, ended: LeaderMove, failure: str | None = None) -> EndMoves:
    outcome = MoveOutcome(
        topic_id=ended.topic_id,
        partition=ended.partition,
        target=ended.target,
        deadline_ms=ended.deadline_ms,
        failure=failure,
    )
    return EndMoves(at_version=state.version, outcomes=(outcome,))


def finish(state: ClusterState, partition: int, replicas: Assignment) -> FinishReassignments:
    at = topic(state).wanted_at.get(partition, -1)
    change = Reassignment(topic_id=ORDERS, partition=partition, replicas=replicas, at=at)
    return FinishReassignments(at_version=state.version, reassignments=(change,))


# Leaders


def test_a_move_is_there_until_its_own_outcome_strikes_it() -> None:
    state = cluster()
    state.apply(wish(state, move(2), move(4, partition=1)))
    assert set(state.wishes.moves) == {PartitionId(ORDERS, 0), PartitionId(ORDERS, 1)}
    state.apply(end(state, move(2, deadline_ms=8)))
    state.apply(end(state, move(3)))
    assert len(state.wishes.moves) == 2, "the outcome of an earlier move is not this one's"
    state.apply(end(state, move(2), failure="broker 2 is behind"))
    assert list(state.wishes.moves.values()) == [move(4, partition=1)]
    state.apply(end(state, move(2)))  # said twice, as after a lost answer


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (move(4), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (move(1, partition=2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (move(1, partition=-1), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (replace(move(1), topic_id=UUID(int=7)), ErrorCode.UNKNOWN_TOPIC_ID),
    ],
)
def test_one_impossible_move_refuses_all(bad: LeaderMove, code: ErrorCode) -> None:
    state = cluster()
    assert refusal(state, wish(state, move(3, partition=1), bad)) is code


def test_two_moves_of_one_leader_are_one_too_many() -> None:
    state = cluster()
    twice = wish(state, move(2), move(3))
    assert refusal(state, twice) is ErrorCode.REASSIGNMENT_IN_PROGRESS
    state.apply(wish(state, move(2)))
    again = wish(state, move(3))
    assert refusal(state, again) is ErrorCode.REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize("wanted", [BrokerState.DRAINING, BrokerState.DECOMMISSIONING])
def test_no_leader_moves_to_a_broker_that_is_to_lead_nothing(wanted: BrokerState) -> None:
    state = cluster()
    state.apply(set_state(state, 2, wanted))
    assert refusal(state, wish(state, move(2))) is ErrorCode.INVALID_REQUEST
    state.apply(set_state(state, 2, BrokerState.ACTIVE))
    state.apply(wish(state, move(2)))


def test_a_deleted_topics_moves_go_with_it() -> None:
    state = cluster()
    state.apply(wish(state, move(2)))
    state.apply(DeleteTopic(at_version=state.version, id=ORDERS))
    assert not state.wishes.moves


# Replicas


def test_both_the_old_and_the_new_replicas_are_hosts_until_the_change_is_finished() -> None:
    state = cluster()
    state.apply(reassign(state, 0, on(4, 2)))
    assert topic(state).assignments[0] == on(1, 2, 3)
    assert topic(state).hosts(0) == {1, 2, 3, 4}
    assert topic(state).hosts(1) == {2, 3, 4}
    state.apply(finish(state, 0, on(4, 3)))
    assert topic(state).wanted, "that is not what is wanted by now"
    state.apply(finish(state, 0, on(4, 2)))
    assert topic(state).assignments == (on(4, 2), on(2, 3, 4))
    assert topic(state).hosts(0) == {4, 2}
    assert not topic(state).wanted


def test_a_change_is_cancelled_by_going_back_and_keeps_its_hosts_until_then() -> None:
    state = cluster()
    nothing = reassign(state, 0, None)
    assert refusal(state, nothing) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    state.apply(reassign(state, 0, on(4)))
    state.apply(reassign(state, 0, None))
    assert topic(state).wanted == {0: on(1, 2, 3)}
    state.apply(finish(state, 0, on(1, 2, 3)))
    assert topic(state).assignments[0] == on(1, 2, 3)


def test_who_may_vote_by_a_wish_that_was_replaced_keeps_its_replica_until_the_next_is_true() -> (
    None
):
    state = cluster()
    state.apply(reassign(state, 0, on(4)))
    state.apply(reassign(state, 0, None))  # the group may have gone over to broker 4 by now
    assert topic(state).hosts(0) == {1, 2, 3, 4}
    assert topic(state).replicas(0) == on(1, 2, 3, 4)
    state.apply(reassign(state, 0, on(1, 2)))
    assert topic(state).hosts(0) == {1, 2, 3, 4}
    state.apply(finish(state, 0, on(1, 2)))
    assert topic(state).hosts(0) == {1, 2}
    assert not topic(state).leaving


def test_a_wish_is_struck_by_its_own_outcome_and_not_by_that_of_an_equal_one_before() -> None:
    state = cluster()
    state.apply(reassign(state, 0, on(4)))
    late = finish(state, 0, on(4))
    state.apply(reassign(state, 0, on(1)))
    state.apply(reassign(state, 0, on(4)))
    state.apply(replace(late, at_version=state.version))
    assert topic(state).wanted == {0: on(4)}
    assert topic(state).hosts(0) == {1, 2, 3, 4}
    assert ClusterState.decode(state.encode()).topics == state.topics


def test_replicas_do_not_move_while_the_leader_does_but_may_move_back() -> None:
    state = cluster()
    state.apply(wish(state, move(2)))
    assert refusal(state, reassign(state, 0, on(4))) is ErrorCode.REASSIGNMENT_IN_PROGRESS
    state.apply(end(state, move(2)))
    state.apply(reassign(state, 0, on(3)))
    assert refusal(state, wish(state, move(2))) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    state.apply(wish(state, move(3)))
    state.apply(reassign(state, 0, None))


@pytest.mark.parametrize("replicas", [on(), on(1, 1), on(1, 9)], ids=str)
def test_replicas_are_moved_to_known_brokers_each_once(replicas: Assignment) -> None:
    state = cluster()
    assert refusal(state, reassign(state, 0, replicas)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_partitions_may_be_added_while_replicas_move() -> None:
    state = cluster()
    state.apply(reassign(state, 1, on(1)))
    grown = CreatePartitions(at_version=state.version, id=ORDERS, assignments=(on(1, 2, 3),))
    state.apply(grown)
    assert topic(state).wanted == {1: on(1)}


def test_a_broker_that_replicas_move_to_is_not_forgotten() -> None:
    state = cluster()
    state.apply(create(state, "other", number=2))
    state.apply(reassign(state, 1, on(2, 3)))
    state.apply(finish(state, 1, on(2, 3)))
    forget = UnregisterBroker(at_version=state.version, node_id=NodeId(4))
    state.check(forget)
    state.apply(reassign(state, 0, on(4)))
    again = replace(forget, at_version=state.version)
    assert refusal(state, again) is ErrorCode.INVALID_REQUEST


# Observers


def test_observers_are_hosts_and_no_replicas() -> None:
    state = cluster()

    def observe(*nodes: int, partition: int = 0) -> SetObservers:
        return SetObservers(
            at_version=state.version, topic_id=ORDERS, partition=partition, replicas=on(*nodes)
        )

    assert refusal(state, observe(3)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refusal(state, observe(9)) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert refusal(state, observe(4, partition=5)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    state.apply(observe(4))
    assert topic(state).hosts(0) == {1, 2, 3, 4}
    assert refusal(state, reassign(state, 0, on(1, 4))) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    state.apply(observe())
    assert not topic(state).observers


# Brokers


def test_what_is_wanted_of_a_broker_is_forgotten_with_it() -> None:
    state = with_brokers(1, 2)
    assert refusal(state, set_state(state, 3, BrokerState.DRAINING)) is (
        ErrorCode.BROKER_ID_NOT_REGISTERED
    )
    state.apply(set_state(state, 2, BrokerState.DECOMMISSIONING))
    assert ClusterState.decode(state.encode()).wishes.broker_state(NodeId(2)) is (
        BrokerState.DECOMMISSIONING
    )
    state.apply(UnregisterBroker(at_version=state.version, node_id=NodeId(2)))
    assert state.wishes.broker_state(NodeId(2)) is BrokerState.ACTIVE


def test_a_snapshot_from_before_there_were_wishes_is_read() -> None:
    state = cluster()
    old = state.encode().replace(b'"format":3', b'"format":2')
    old = old.replace(b',"wishes":{"broker_states":{},"moves":[]}', b"")
    for empty in (b',"wanted":{}', b',"wanted_at":{}', b'"observers":{},', b'"leaving":{},'):
        old = old.replace(empty, b"")
    assert b"wishes" not in old
    assert b"wanted" not in old
    assert ClusterState.decode(old).encode() == state.encode()
