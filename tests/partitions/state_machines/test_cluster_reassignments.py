"""Many partitions that are wished to be held by other brokers, in one command."""

import sys
from dataclasses import replace
from types import FrameType
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    CreateTopic,
    FinishReassignments,
    ReassignPartitions,
    RegisterBroker,
)
from tidemark.partitions.state_machines.cluster_reassignments import finished, reassigned
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerAddress,
    Reassignment,
    TopicMetadata,
)
from tidemark.partitions.state_machines.placement import Load
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId

BROKERS = [NodeId(number) for number in range(1, 6)]
TOPIC_ID = UUID(int=1)
PARTITIONS = 4

ASSIGNMENTS = st.permutations(BROKERS).flatmap(
    lambda nodes: st.integers(1, 3).map(lambda count: tuple(nodes[:count]))
)
CHANGES = st.lists(
    st.builds(
        Reassignment,
        topic_id=st.just(TOPIC_ID),
        partition=st.integers(0, PARTITIONS),
        replicas=ASSIGNMENTS | st.none(),
        at=st.integers(-1, 3),
    ),
    max_size=6,
)


def on(partition: int, *, after: int = 0) -> Assignment:
    return tuple(BROKERS[(partition + after + place) % len(BROKERS)] for place in range(3))


def cluster(partitions: int) -> ClusterState:
    state = ClusterState()
    for node in BROKERS:
        state.apply(
            RegisterBroker(
                at_version=state.version,
                node_id=node,
                directory_id=UUID(int=node),
                incarnation=1,
                listeners={},
                peer=BrokerAddress("127.0.0.1", 1),
                rack=None,
            )
        )
    state.apply(
        CreateTopic(
            at_version=state.version,
            name="waves",
            id=TOPIC_ID,
            assignments=tuple(map(on, range(partitions))),
            configs={},
            created_ms=0,
        )
    )
    return state


def wished(topic: TopicMetadata, changes: list[Reassignment], version: int) -> TopicMetadata:
    return reassigned(topic, changes, BROKERS, version=version, moves={})


@given(rounds=st.lists(st.tuples(st.booleans(), CHANGES), max_size=5))
def test_many_changes_at_once_come_to_what_they_come_to_one_by_one(
    rounds: list[tuple[bool, list[Reassignment]]],
) -> None:
    one_by_one = at_once = cluster(PARTITIONS).topics["waves"]
    for version, (is_finished, changes) in enumerate(rounds):
        if is_finished:
            at_once = finished(at_once, changes)
            for each in changes:
                one_by_one = finished(one_by_one, [each])
        else:
            taken = list[Reassignment]()
            for each in changes:
                try:
                    one_by_one = wished(one_by_one, [each], version)
                except RequestError:
                    with pytest.raises(RequestError):
                        wished(at_once, [*taken, each], version)
                else:
                    taken.append(each)
            at_once = wished(at_once, taken, version)
        assert at_once == one_by_one


def begun(partitions: int) -> tuple[ClusterState, list[Reassignment]]:
    """All partitions of a topic are being moved by one broker; and how that is ended."""
    state = cluster(partitions)
    changes = [
        Reassignment(topic_id=TOPIC_ID, partition=number, replicas=on(number, after=1))
        for number in range(partitions)
    ]
    at = state.version
    state.apply(ReassignPartitions(at_version=at, reassignments=tuple(changes)))
    return state, [replace(each, at=at) for each in changes]


def test_what_brokers_hold_is_counted_on_when_partitions_have_moved() -> None:
    state, ended = begun(50)
    for some in (ended[:7], ended[20:]):
        state.apply(FinishReassignments(at_version=state.version, reassignments=tuple(some)))
        assert state.load == Load.of(state.topics["waves"].assignments)


@pytest.mark.parametrize("at_once", [1, 500])
def test_what_a_partition_s_change_costs_does_not_depend_on_how_many_there_are(
    at_once: int,
) -> None:
    """A topic of ten thousand partitions was gone through for each of them: for minutes, on the
    loop of every broker."""
    small, large = (_calls_to_finish(partitions, 500, at_once) for partitions in (500, 2000))
    assert large < 1.1 * small


def _calls_to_finish(partitions: int, count: int, at_once: int) -> int:
    """The calls that are made when so many partitions' changes are ended."""
    state, ended = begun(partitions)
    commands = [tuple(ended[first : first + at_once]) for first in range(0, count, at_once)]
    calls = 0

    def count_calls(_: FrameType, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_calls)
    try:
        for some in commands:
            state.apply(FinishReassignments(at_version=state.version, reassignments=some))
    finally:
        sys.setprofile(before)
    return calls
