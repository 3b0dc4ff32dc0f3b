"""Who is to read what: complete, balanced, and with as little moved as that takes."""

from collections.abc import Mapping
from itertools import product
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.partitions.state_machines.groups.consumer.clients import parts, topic_id
from tidemark.partitions.state_machines.groups.consumer.assignors import (
    ASSIGNORS,
    Assignor,
    Subscriber,
    Targets,
    range_,
    uniform,
)
from tidemark.partitions.state_machines.groups.topic_view import Partitions, TopicIdPartition

NAMES = ("clicks", "orders", "views")
Subscriptions = dict[str, frozenset[str]]

subscriptions = st.dictionaries(
    st.sampled_from("abcde"), st.frozensets(st.sampled_from(NAMES)), max_size=5
)
counts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 7), max_size=3)


def assign(
    assignor: Assignor,
    subscribed: Mapping[str, frozenset[str]],
    partitions: Mapping[str, int],
    before: Mapping[str, Partitions] | None = None,
) -> Targets:
    subscribers = {
        member: Subscriber(
            topics=frozenset(map(topic_id, names)),
            before=(before or {}).get(member, frozenset()),
        )
        for member, names in subscribed.items()
    }
    return assignor(subscribers, {topic_id(name): n for name, n in partitions.items()})


@pytest.mark.parametrize("assignor", ASSIGNORS.values(), ids=ASSIGNORS)
@given(subscribed=subscriptions, partitions=counts)
def test_each_partition_has_one_reader_that_subscribes_to_it(
    assignor: Assignor, subscribed: Subscriptions, partitions: dict[str, int]
) -> None:
    targets = assign(assignor, subscribed, partitions)
    assert targets.keys() == subscribed.keys()
    dealt = [partition for target in targets.values() for partition in target]
    assert len(dealt) == len(set(dealt))
    assert set(dealt) == {
        partition
        for name, count in partitions.items()
        if any(name in names for names in subscribed.values())
        for partition in parts(name, *range(count))
    }
    for member, target in targets.items():
        assert {partition.topic_id for partition in target} <= set(
            map(topic_id, subscribed[member])
        )


@given(subscribed=subscriptions, partitions=counts, later=subscriptions, grown=counts)
def test_uniform_is_as_even_as_subscriptions_allow(
    subscribed: Subscriptions,
    partitions: dict[str, int],
    later: Subscriptions,
    grown: dict[str, int],
) -> None:
    before = assign(uniform, subscribed, partitions)
    targets = assign(uniform, later, grown, before)
    loads = sorted(len(target) for target in targets.values())
    if later and len(set(later.values())) == 1:
        assert loads[-1] - loads[0] <= 1
    assert not any(chains(later, targets)), "no chain of moves makes it more even"


def chains(subscribed: Subscriptions, targets: Targets) -> list[tuple[str, str]]:
    """Pairs of members between which a chain of moves would make loads more even."""
    readers = {topic_id(name): name for name in NAMES}
    reach = {
        (giver, taker)
        for giver, taker in product(targets, repeat=2)
        if any(readers[partition.topic_id] in subscribed[taker] for partition in targets[giver])
    }
    for via in targets:
        reach |= {
            (giver, taker)
            for giver, taker in product(targets, repeat=2)
            if (giver, via) in reach and (via, taker) in reach
        }
    return [(a, b) for a, b in reach if len(targets[a]) - len(targets[b]) >= 2]


@given(subscribed=subscriptions, partitions=counts)
def test_uniform_moves_nothing_where_nothing_changes(
    subscribed: Subscriptions, partitions: dict[str, int]
) -> None:
    before = assign(uniform, subscribed, partitions)
    assert assign(uniform, subscribed, partitions, before) == before


@given(members=st.sets(st.sampled_from("abcdefgh"), min_size=1), partitions=counts)
def test_uniform_gives_a_newcomer_its_share_and_moves_nothing_else(
    members: set[str], partitions: dict[str, int]
) -> None:
    reads = frozenset(NAMES)
    before = assign(uniform, dict.fromkeys(members, reads), partitions)
    after = assign(uniform, dict.fromkeys({*members, "new"}, reads), partitions, before)
    for member in members:
        assert after[member] <= before[member]
    assert len(after["new"]) == sum(partitions.values()) // (len(members) + 1)


@given(members=st.sets(st.sampled_from("abcdefgh"), min_size=2), partitions=counts)
def test_uniform_deals_out_what_a_leaver_had_and_moves_nothing_else(
    members: set[str], partitions: dict[str, int]
) -> None:
    reads = frozenset(NAMES)
    before = assign(uniform, dict.fromkeys(members, reads), partitions)
    left = sorted(members)[1:]
    after = assign(uniform, dict.fromkeys(left, reads), partitions, before)
    for member in left:
        assert before[member] <= after[member]


def test_what_two_had_before_one_has_then() -> None:
    reads = frozenset({"orders"})
    before = {"a": parts("orders", 0, 1), "b": parts("orders", 0, 1)}
    targets = assign(uniform, {"a": reads, "b": reads}, {"orders": 2}, before)
    assert sorted(map(len, targets.values())) == [1, 1]
    assert targets["a"] | targets["b"] == parts("orders", 0, 1)


def test_uniform_finds_the_way_through_others() -> None:
    # Only b can take what a has too much of, and only c what b has then.
    subscribed = {
        "a": frozenset({"clicks"}),
        "b": frozenset({"clicks", "orders"}),
        "c": frozenset({"orders"}),
    }
    before = {"a": parts("clicks", 0, 1, 2), "b": parts("orders", 0, 1)}
    targets = assign(uniform, subscribed, {"clicks": 3, "orders": 2}, before)
    assert sorted(len(target) for target in targets.values()) == [1, 2, 2]


def test_uniform_evens_out_who_has_most_by_who_has_what_others_can_read() -> None:
    reads = {"a": frozenset({"clicks", "orders"}), "b": frozenset({"clicks", "orders"})}
    reads["c"] = frozenset({"orders"})
    before = {"a": parts("clicks", 0, 1, 2, 3), "b": parts("orders", 0, 1, 2)}
    targets = assign(uniform, reads, {"clicks": 4, "orders": 3}, before)
    assert sorted(len(target) for target in targets.values()) == [2, 2, 3]


def test_uniform_stops_where_nobody_has_what_others_can_read() -> None:
    reads = {"a": frozenset({"clicks", "orders"}), "b": frozenset({"clicks", "orders"})}
    reads["c"] = frozenset({"orders"})
    before = {"a": parts("clicks", 0, 1, 2, 3), "b": parts("clicks", 4, 5) | parts("orders", 0)}
    targets = assign(uniform, reads, {"clicks": 6, "orders": 1}, before)
    assert {member: len(target) for member, target in targets.items()} == {"a": 3, "b": 3, "c": 1}


@settings(deadline=None)
@given(order=st.permutations(["a", "b", "c", "d"]))
def test_the_result_does_not_hang_on_the_order_of_the_members(order: list[str]) -> None:
    reads = frozenset(NAMES)
    partitions = {"orders": 7, "clicks": 3}
    for assignor in (uniform, range_):
        assert assign(assignor, dict.fromkeys(order, reads), partitions) == assign(
            assignor, dict.fromkeys("abcd", reads), partitions
        )


def test_range_gives_the_same_numbers_of_every_topic_to_the_same_member() -> None:
    reads = frozenset({"orders", "clicks"})
    targets = assign(range_, {"a": reads, "b": reads}, {"orders": 5, "clicks": 5})
    assert targets["a"] == parts("orders", 0, 1) | parts("clicks", 0, 1)
    assert targets["b"] == parts("orders", 2, 3, 4) | parts("clicks", 2, 3, 4)


def test_range_gives_a_static_member_the_same_run_under_another_id() -> None:
    topic = topic_id("orders")

    def targets(first: str) -> Targets:
        subscribers = {
            first: Subscriber(topics=frozenset({topic}), instance_id="one"),
            "m": Subscriber(topics=frozenset({topic}), instance_id="two"),
        }
        return range_(subscribers, {topic: 2})

    assert targets("a")["a"] == targets("z")["z"]


def test_twenty_members_and_two_hundred_partitions_are_dealt_out_evenly() -> None:
    topic = UUID(int=1)
    subscribers = {f"m{n}": Subscriber(topics=frozenset({topic})) for n in range(20)}
    targets = uniform(subscribers, {topic: 200})
    assert {len(target) for target in targets.values()} == {10}
    assert TopicIdPartition(topic, 199) in {each for target in targets.values() for each in target}
