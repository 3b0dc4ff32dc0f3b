"""Where replicas go when a broker leaves."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.balancing.clusters import broker, brokers, group, in_another_order, snapshot
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.replicas import ReplicaPlan, plan_decommission
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId

SETTINGS = Settings()
SEEDS = st.integers(0, 2**32)


def left(members: list[Broker], groups: list[Group], node: int, seed: int = 1) -> ReplicaPlan:
    return plan_decommission(snapshot(members, groups), SETTINGS, NodeId(node), Random(seed))


def held(made: ReplicaPlan) -> dict[int, int]:
    return {int(each.node_id): each.replicas_after for each in made.brokers}


def in_racks(*racks: str | None) -> list[Broker]:
    return [broker(number, rack=rack) for number, rack in enumerate(racks, start=1)]


# Leaving


def test_a_leaving_brokers_replicas_are_shared_out_evenly() -> None:
    groups = [group(f"t-{at}", (1, 2 + at % 3), size=100) for at in range(12)]
    made = left(brokers(4), groups, 1)
    assert not made.refusals
    assert held(made) == {1: 0, 2: 8, 3: 8, 4: 8}
    assert made.size_bytes == 1200
    assert made.moves[0].reason == "broker 1 leaves"


def test_a_broker_that_is_marked_says_so() -> None:
    members = [broker(1, state=BrokerState.DECOMMISSIONING), broker(2), broker(3)]
    made = left(members, [group("t-0", (1, 2))], 1)
    assert made.moves[0].reason == "broker 1 is being decommissioned"


def test_a_replica_goes_to_a_rack_that_has_none() -> None:
    members = in_racks("a", "b", "b", "c")
    busy = [group(f"busy-{at}", (4,)) for at in range(9)]
    made = left(members, [group("t-0", (1, 2)), *busy], 1)
    assert [move.after for move in made.moves] == [(2, 4)], "full as broker 4 is"


def test_evenness_in_number_crowds_no_rack() -> None:
    members = in_racks("b", "a", "a", "b", "a", "b")
    busy = [group(f"busy-{at}", (6,)) for at in range(9)]
    made = left(members, [group("t-0", (1, 2, 3, 4)), *busy], 1)
    assert [move.target for move in made.moves] == [6], "full as it is, the other is in rack a"


def test_brokers_without_a_rack_count_as_one_rack() -> None:
    members = in_racks("a", None, None, "b")
    made = left(members, [group("t-0", (1, 2)), *[group(f"u-{at}", (4,)) for at in range(9)]], 1)
    assert set(made.moves[0].after) == {2, 4}


@pytest.mark.parametrize("seed", range(2, 6))
def test_bytes_decide_between_brokers_that_hold_equally_many(seed: int) -> None:
    groups = [
        group("big-0", (1,), size=1000),
        group("small-0", (1,), size=10),
        group("there-0", (2,), size=500),
        group("here-0", (3,), size=1),
    ]
    made = left(brokers(3), groups, 1, seed)
    assert {str(m.partition): m.target for m in made.moves} == {"big-0": 3, "small-0": 2}
    assert {int(b.node_id): b.bytes_after for b in made.brokers} == {1: 0, 2: 510, 3: 1001}


def test_who_takes_over_is_not_always_the_one_to_lead() -> None:
    groups = [group(f"t-{at}", (1, 2, 3)) for at in range(9)]
    made = left(brokers(4), groups, 1)
    assert {frozenset(move.after) for move in made.moves} == {frozenset({2, 3, 4})}
    assert Counter(move.after[0] for move in made.moves) == {2: 3, 3: 3, 4: 3}


def test_with_too_few_brokers_it_cannot_leave() -> None:
    made = left(brokers(3), [group(f"t-{at}", (1, 2, 3)) for at in range(2)], 1)
    assert not made.moves
    (refusal,) = made.refusals
    assert (refusal.reason, refusal.groups) == (Reason.TOO_FEW_BROKERS, 2)
    assert refusal.sentence == (
        "it has 3 replicas, and without broker 1 there are 2 brokers to hold them"
    )


def test_who_observes_a_group_gets_no_other_replica_of_it() -> None:
    watched = group("t-0", (1, 2, 3))._replace(observers=(NodeId(4),))
    (move,) = left(brokers(5), [watched], 1).moves
    assert move.target == 5
    (refusal,) = left(brokers(4), [watched], 1).refusals
    assert refusal.reason is Reason.TOO_FEW_BROKERS
    assert refusal.sentence.endswith("to hold them; broker 4 could, if it did not observe it")


@pytest.mark.parametrize(
    "fourth",
    [broker(4, is_alive=False), broker(4, state=BrokerState.DRAINING), broker(4, is_full=True)],
    ids=["dead", "draining", "full"],
)
def test_brokers_that_may_be_stopped_or_are_full_get_no_replicas(fourth: Broker) -> None:
    made = left([*brokers(3), fourth], [group("t-0", (1, 2, 3))], 1)
    assert [r.reason for r in made.refusals] == [Reason.TOO_FEW_BROKERS]


def test_a_group_without_a_majority_in_sync_cannot_be_changed() -> None:
    made = left(brokers(4), [group("t-0", (1, 2, 3), lags={})], 1)
    assert not made.moves
    (refusal,) = made.refusals
    assert refusal.sentence == (
        "it has 1 of 3 voters in sync on brokers to count on (1), and needs 2"
    )


def test_a_group_in_motion_is_left_for_later() -> None:
    made = left(brokers(3), [group("t-0", (1, 2), is_changing=True)], 1)
    assert [r.reason for r in made.refusals] == [Reason.IN_MOTION]


def test_a_broker_that_is_not_there_cannot_leave() -> None:
    assert [r.sentence for r in left(brokers(2), [], 5).refusals] == ["there is no broker 5"]


# Whatever the cluster


@st.composite
def any_cluster(draw: st.DrawFn, *, replicas_max: int = 3) -> Snapshot:
    count = draw(st.integers(2, 7))
    members = [
        broker(
            number,
            rack=draw(st.sampled_from([None, "a", "b", "c"])),
            is_alive=draw(st.integers(0, 9)) > 0,
            state=draw(st.sampled_from([BrokerState.ACTIVE] * 9 + list(BrokerState))),
        )
        for number in range(1, count + 1)
    ]
    groups = []
    for topic, size in enumerate(draw(st.lists(st.integers(1, 8), max_size=4))):
        for at in range(size):
            replicas = draw(st.permutations(range(1, count + 1)))[
                : draw(st.integers(1, min(replicas_max, count)))
            ]
            groups.append(group(f"t{topic}-{at}", replicas, size=draw(st.integers(0, 1000))))
    return snapshot(members, groups)


@given(cluster=any_cluster(), seed=SEEDS)
def test_every_move_is_of_one_replica_to_a_broker_that_stays(cluster: Snapshot, seed: int) -> None:
    by_id = {each.node_id: each for each in cluster.brokers}
    made = plan_decommission(cluster, SETTINGS, NodeId(1), Random(seed))
    assert len({move.partition for move in made.moves}) == len(made.moves)
    for move in made.moves:
        assert {*move.before} - {*move.after} == {move.source}
        assert {*move.after} - {*move.before} == {move.target}
        assert len(move.after) == len(move.before)
        assert by_id[move.target].is_alive
        assert by_id[move.target].state is BrokerState.ACTIVE
        assert move.reason
    stay = [each for each in cluster.groups if NodeId(1) in each.replicas]
    assert len(stay) == len(made.moves) + sum(each.groups for each in made.refusals)


@given(cluster=any_cluster(replicas_max=5), seed=SEEDS)
def test_no_replica_goes_to_a_rack_with_more_of_its_group_than_another_has(
    cluster: Snapshot, seed: int
) -> None:
    """With four in one of two racks and one in the other, a rack's failure costs the majority."""
    racks = {each.node_id: each.rack for each in cluster.brokers}
    takers = {e.node_id for e in cluster.brokers if e.is_alive and e.state is BrokerState.ACTIVE}
    for move in plan_decommission(cluster, SETTINGS, NodeId(1), Random(seed)).moves:
        beside = Counter(racks[node] for node in move.before if node != move.source)
        others = takers - {*move.before}
        assert beside[racks[move.target]] == min(beside[racks[node]] for node in others)


@given(cluster=any_cluster(), seed=SEEDS, shuffled=SEEDS)
def test_the_order_in_which_things_were_found_does_not_matter(
    cluster: Snapshot, seed: int, shuffled: int
) -> None:
    other = in_another_order(cluster, Random(shuffled))
    one, two = (
        plan_decommission(each, SETTINGS, NodeId(1), Random(seed)) for each in (cluster, other)
    )
    assert one == two
