"""From whom observers pull: what is near first, spread, and never in a circle."""

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.replication.observer_tree import CHILDREN, parents_of
from tidemark.protocol.types import NodeId

VOTERS = (1, 2, 3)


def parents(
    observer: int,
    observers: Sequence[int],
    *,
    voters: Sequence[int] = VOTERS,
    racks: Mapping[int, str] | None = None,
) -> list[int]:
    return list(
        parents_of(
            NodeId(observer),
            voters=tuple(map(NodeId, voters)),
            observers=tuple(map(NodeId, observers)),
            rack_of=(racks or {}).get,
        )
    )


def test_without_racks_the_voters_get_their_children_first_and_the_preferred_leader_last() -> None:
    observers = (4, 5, 6, 7, 8, 9, 10, 11, 12)
    firsts = [parents(each, observers)[0] for each in observers]
    assert firsts == [2, 3, 1, 2, 3, 1, 4, 4, 5]


def test_of_several_in_a_far_rack_one_pulls_from_afar_and_the_others_from_it() -> None:
    racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "b", 7: "b"}
    observers = (4, 5, 6, 7)
    firsts = [parents(each, observers, racks=racks)[0] for each in observers]
    assert firsts == [2, 4, 4, 5]


def test_a_voter_in_the_rack_is_the_first_choice() -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "b", 5: "b", 6: "b"}
    observers = (4, 5, 6)
    assert [parents(each, observers, racks=racks)[0] for each in observers] == [2, 2, 4]


def test_everybody_it_may_pull_from_stands_in_for_the_first() -> None:
    assert sorted(parents(6, (4, 5, 6))) == [1, 2, 3, 4, 5]
    assert parents(4, (4,), voters=(1,)) == [1]


@given(
    voters=st.lists(st.integers(1, 9), min_size=1, max_size=5, unique=True),
    observers=st.lists(st.integers(10, 30), min_size=1, max_size=12, unique=True),
    racks=st.dictionaries(st.integers(1, 30), st.sampled_from("abc")),
)
def test_there_are_no_circles_whoever_is_chosen(
    voters: list[int], observers: list[int], racks: dict[int, str]
) -> None:
    for at, observer in enumerate(observers):
        chosen = parents(observer, observers, voters=voters, racks=racks)
        assert set(chosen) == {*voters, *observers[:at]}
        assert len(chosen) == len(set(chosen))


@given(
    count=st.integers(1, 12),
    racks=st.dictionaries(st.integers(1, 30), st.sampled_from("ab")),
)
def test_no_observer_has_more_children_than_it_should(count: int, racks: dict[int, str]) -> None:
    observers = tuple(range(10, 10 + count))
    firsts = [parents(each, observers, racks=racks)[0] for each in observers]
    for observer in observers[:-1]:
        assert firsts.count(observer) <= 2 * CHILDREN, "so many from its rack, so many from others"
