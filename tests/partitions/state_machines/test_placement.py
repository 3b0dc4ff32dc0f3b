"""Placement: even, distinct, over racks, and the same for the same draws."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.state_machines.cluster_values import Assignment
from tidemark.partitions.state_machines.placement import (
    Candidate,
    Load,
    check_assignment,
    check_same_factor,
    place,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId


def brokers(*racks: str | None) -> list[Candidate]:
    """One broker for each rack named, numbered from 1."""
    return [
        Candidate(node_id=NodeId(number), rack=rack) for number, rack in enumerate(racks, start=1)
    ]


def placed(
    candidates: Sequence[Candidate],
    partitions: int,
    replicas: int,
    *,
    seed: int = 0,
    load: Sequence[Assignment] = (),
    existing: Sequence[Assignment] = (),
) -> tuple[Assignment, ...]:
    return place(
        candidates,
        partitions=partitions,
        replicas=replicas,
        load=Load.of(load),
        existing=existing,
        draw=Random(seed).random,
    )


def spread(counts: Counter[NodeId], candidates: Sequence[Candidate]) -> int:
    """How much more the fullest has than the emptiest."""
    numbers = [counts[each.node_id] for each in candidates]
    return max(numbers) - min(numbers)


SEEDS = st.integers(0, 2**32)
PARTITIONS = st.integers(1, 40)


@given(
    rack_count=st.integers(1, 5),
    rack_size=st.integers(1, 4),
    replicas=st.integers(1, 7),
    first=PARTITIONS,
    then=st.integers(0, 10),
    seed=SEEDS,
)
def test_replicas_and_leaders_are_balanced_within_one_over_equal_racks(
    rack_count: int, rack_size: int, replicas: int, first: int, then: int, seed: int
) -> None:
    candidates = brokers(*[f"r{number % rack_count}" for number in range(rack_count * rack_size)])
    replicas = min(replicas, len(candidates))
    made = placed(candidates, first, replicas, seed=seed)
    load = Load.of(made)
    assert spread(load.replicas, candidates) <= 1
    assert spread(load.leaders, candidates) <= 1
    if then:
        more = placed(candidates, then, replicas, seed=seed + 1, load=made, existing=made)
        grown = Load.of([*made, *more])
        assert spread(grown.replicas, candidates) <= 1
        assert spread(grown.leaders, candidates) <= 2, "what is there already is not moved"


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9),
    replicas=st.integers(1, 9),
    partitions=PARTITIONS,
    seed=SEEDS,
)
def test_replicas_are_on_distinct_brokers_in_as_many_racks_as_there_are(
    racks: list[str | None], replicas: int, partitions: int, seed: int
) -> None:
    candidates = brokers(*racks)
    replicas = min(replicas, len(candidates))
    rack_of = {each.node_id: each.rack for each in candidates}
    made = placed(candidates, partitions, replicas, seed=seed)
    assert len(made) == partitions
    for assignment in made:
        assert len(assignment) == replicas == len(set(assignment))
        assert len({rack_of[node] for node in assignment}) == min(replicas, len(set(racks)))
    assert made == placed(candidates, partitions, replicas, seed=seed)


def test_many_small_topics_are_spread_too() -> None:
    candidates = brokers("a", "a", "b", "b")
    made: list[Assignment] = []
    for seed in range(40):
        made += placed(candidates, 1, 2, seed=seed, load=made)
    assert spread(Load.of(made).replicas, candidates) <= 1
    assert spread(Load.of(made).leaders, candidates) <= 2


def test_the_lot_decides_where_the_first_goes() -> None:
    candidates = brokers(None, None, None)
    assert {placed(candidates, 1, 1, seed=seed)[0][0] for seed in range(50)} == {1, 2, 3}


def test_dead_brokers_are_the_last_resort() -> None:
    candidates = [
        Candidate(node_id=NodeId(number), is_alive=number not in (2, 3)) for number in range(1, 5)
    ]
    assert all(set(each) == {1, 4} for each in placed(candidates, 10, 2))
    assert all(set(each) > {1, 4} for each in placed(candidates, 10, 3))


def test_leaders_are_passed_on_where_choosing_one_by_one_is_not_enough() -> None:
    """One small rack and a large one: its broker holds every partition and need not lead most."""
    candidates = brokers("small", "large", "large", "large")
    leaders = Load.of(placed(candidates, 12, 2)).leaders
    assert sorted(leaders.values()) == [3, 3, 3, 3]


@pytest.mark.parametrize(("replicas", "words"), [(0, "0 replicas"), (4, "4 replicas on 3 brokers")])
def test_trap_m9_more_replicas_than_brokers_are_refused(replicas: int, words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        placed(brokers(None, None, None), 1, replicas)
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


def test_one_broker_has_room_for_one_replica() -> None:
    with pytest.raises(RequestError, match=r"3 replicas on 1 broker: ask for 1, or for -1"):
        placed(brokers(None), 1, 3)


NODES = [NodeId(number) for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: check_assignment((), NODES, partition=7), "partition 7 needs at least one"),
        (
            lambda: check_assignment((NODES[0], NODES[0]), NODES, partition=7),
            r"of partition 7 on \[1, 1\]: name each broker once",
        ),
        (
            lambda: check_assignment((NODES[0], NodeId(9)), NODES, partition=7),
            r"of partition 7 on \[1, 9\]: there is no broker 9, only 1, 2, 3",
        ),
        (lambda: check_same_factor([(NODES[0],), (NODES[0], NODES[1])]), "of 1 and of 2"),
    ],
)
def test_an_assignment_that_cannot_be_is_refused(check: Callable[[], None], words: str) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        check()
    assert caught.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
