"""Which brokers observe, where a number of observers is asked for."""

from tidemark.partitions.state_machines.observer_placement import (
    ObserverCandidate,
    place_observers,
)
from tidemark.protocol.types import NodeId


def broker(
    number: int, rack: str | None = None, *, observed: int = 0, alive: bool = True
) -> ObserverCandidate:
    return ObserverCandidate(node_id=NodeId(number), rack=rack, is_alive=alive, observed=observed)


def place(
    *candidates: ObserverCandidate, held: tuple[int, ...], now: tuple[int, ...] = (), wanted: int
) -> list[int]:
    return list(
        place_observers(
            candidates,
            held=tuple(map(NodeId, held)),
            now=tuple(map(NodeId, now)),
            wanted=wanted,
        )
    )


def test_observers_go_where_no_replica_is_near() -> None:
    brokers = [broker(1, "a"), broker(2, "a"), broker(3, "b"), broker(4, "c")]
    assert place(*brokers, held=(1, 3), wanted=1) == [4]
    assert place(*brokers, held=(1, 3), wanted=2) == [4, 2]


def test_of_equals_the_one_that_observes_least() -> None:
    brokers = [broker(1), broker(2, observed=3), broker(3, observed=1)]
    assert place(*brokers, held=(1,), wanted=1) == [3]


def test_those_that_observe_stay_and_no_more_than_there_are_brokers_for() -> None:
    brokers = [broker(1), broker(2), broker(3), broker(4, alive=False)]
    assert place(*brokers, held=(1,), now=(3,), wanted=3) == [3, 2]
    assert place(*brokers, held=(1,), now=(4,), wanted=1) == [4], "it may come back"


def test_one_that_is_no_broker_any_more_or_got_a_vote_goes() -> None:
    assert place(broker(1), broker(2), broker(3), held=(1, 3), now=(9, 3), wanted=1) == [2]


def test_less_are_wanted_than_before() -> None:
    assert place(broker(1), broker(2), broker(3), held=(1,), now=(3, 2), wanted=1) == [3]
    assert place(broker(1), broker(2), held=(1,), now=(2,), wanted=0) == []
