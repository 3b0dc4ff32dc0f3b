from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.client.assignment import (
    ASSIGNORS,
    Assignment,
    Members,
    assign_cooperative_sticky,
    assign_range,
    assign_round_robin,
    assign_sticky,
)
from tidemark.protocol.consumer_protocol import Subscription
from tidemark.protocol.types import TopicPartition


def readers(*names: str, topics: tuple[str, ...] = ("a", "b")) -> dict[str, Subscription]:
    return {name: Subscription(topics=topics) for name in names}


def shown(assignment: Assignment) -> dict[str, str]:
    return {member: " ".join(map(str, owned)) for member, owned in assignment.items()}


def owning(members: Members, assignment: Assignment, generation: int) -> dict[str, Subscription]:
    """The members as they join again after an assignment."""
    return {
        name: Subscription(
            topics=subscription.topics,
            owned=frozenset(assignment.get(name, ())),
            generation=generation,
        )
        for name, subscription in members.items()
    }


def test_range_gives_neighbours_of_each_topic_and_the_first_one_more() -> None:
    assert shown(assign_range(readers("m1", "m2"), {"a": 3, "b": 3})) == {
        "m1": "a-0 a-1 b-0 b-1",
        "m2": "a-2 b-2",
    }


def test_round_robin_goes_through_all_topics_in_turn() -> None:
    assert shown(assign_round_robin(readers("m1", "m2"), {"a": 3, "b": 3})) == {
        "m1": "a-0 a-2 b-1",
        "m2": "a-1 b-0 b-2",
    }


def test_round_robin_passes_over_who_does_not_read_the_topic() -> None:
    members = {**readers("m1", topics=("a",)), **readers("m2", topics=("a", "b"))}
    assert shown(assign_round_robin(members, {"a": 1, "b": 2})) == {"m1": "a-0", "m2": "b-0 b-1"}


def test_more_members_than_partitions_leave_some_without() -> None:
    for assign in (assign_range, assign_round_robin, assign_sticky):
        loads = [len(owned) for owned in assign(readers("x", "y", "z"), {"a": 2}).values()]
        assert sorted(loads) == [0, 1, 1]


def test_static_members_come_first_and_keep_their_place_under_a_new_member_id() -> None:
    def assigned(member_id: str) -> list[TopicPartition]:
        members: Mapping[str, Subscription] = {
            "aaa": Subscription(topics=("a",)),
            member_id: Subscription(topics=("a",), instance_id="static"),
        }
        return assign_range(members, {"a": 3})[member_id]

    assert assigned("zzz") == assigned("bbb") == [TopicPartition("a", 0), TopicPartition("a", 1)]


def test_a_topic_that_does_not_exist_is_nobodys() -> None:
    for assignor in ASSIGNORS.values():
        assert shown(assignor.assign(readers("m"), {})) == {"m": ""}


def test_sticky_moves_no_more_than_balance_needs() -> None:
    members, counts = readers("m1", "m2"), {"a": 4, "b": 4}
    before = assign_sticky(members, counts)
    after = assign_sticky(owning(readers("m1", "m2", "m3"), before, 1), counts)
    kept = sum(len(set(before[m]) & set(after[m])) for m in before)
    assert sorted(len(owned) for owned in after.values()) == [2, 3, 3]
    assert kept == 6


def test_a_partition_that_moves_is_left_out_until_its_owner_has_let_go() -> None:
    counts = {"a": 2}
    before = {"m1": [TopicPartition("a", 0), TopicPartition("a", 1)]}
    members = owning(readers("m1", "m2", topics=("a",)), before, 1)
    first = assign_cooperative_sticky(members, counts)
    assert shown(first) == {"m1": "a-0", "m2": ""}
    second = assign_cooperative_sticky(owning(members, first, 2), counts)
    assert shown(second) == {"m1": "a-0", "m2": "a-1"}


def test_of_two_owners_the_one_with_the_newer_generation_is_believed() -> None:
    claimed = frozenset({TopicPartition("a", 0)})
    members = {
        "old": Subscription(topics=("a",), owned=claimed, generation=3),
        "new": Subscription(topics=("a",), owned=claimed, generation=4),
    }
    assert shown(assign_cooperative_sticky(members, {"a": 1})) == {"old": "", "new": "a-0"}


@st.composite
def groups(draw: st.DrawFn) -> tuple[dict[str, Subscription], dict[str, int]]:
    counts = draw(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 7), max_size=4))
    owners = st.sets(st.builds(TopicPartition, st.sampled_from("abcd"), st.integers(0, 8)))
    members = draw(
        st.dictionaries(
            st.sampled_from(["m1", "m2", "m3", "m4"]),
            st.builds(
                Subscription,
                topics=st.sets(st.sampled_from("abcd")).map(lambda topics: tuple(sorted(topics))),
                owned=owners.map(frozenset),
                generation=st.integers(0, 2),
            ),
            min_size=1,
        )
    )
    return members, counts


@settings(max_examples=40)
@given(group=groups())
def test_every_partition_that_somebody_reads_is_given_to_one_who_does(
    group: tuple[dict[str, Subscription], dict[str, int]],
) -> None:
    members, counts = group
    wanted = {topic for subscription in members.values() for topic in subscription.topics}
    everything = sorted(
        TopicPartition(topic, partition)
        for topic in counts
        if topic in wanted
        for partition in range(counts[topic])
    )
    for assign in (assign_range, assign_round_robin, assign_sticky):
        assignment = assign(members, counts)
        assert sorted(tp for owned in assignment.values() for tp in owned) == everything
        for member, owned in assignment.items():
            assert all(tp.topic in members[member].topics for tp in owned)


@settings(max_examples=40)
@given(group=groups())
def test_cooperation_comes_to_rest_and_is_then_complete_and_balanced(
    group: tuple[dict[str, Subscription], dict[str, int]],
) -> None:
    members, counts = group
    assignment = assign_cooperative_sticky(members, counts)
    for generation in range(3, 6):
        members = owning(members, assignment, generation)
        assignment = assign_cooperative_sticky(members, counts)
    again = assign_cooperative_sticky(owning(members, assignment, 9), counts)
    assert again == assignment == assign_sticky(members, counts)
    for member, owned in assignment.items():
        for tp in owned:
            for other in members:
                if tp.topic in members[other].topics:
                    assert len(owned) - len(assignment[other]) < 2, (member, other)
