"""What every plan keeps to, whatever the cluster is like."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.balancing.any_cluster import ANY_SETTINGS, RATES, SEEDS, healthy_cluster
from tests.partitions.balancing.clusters import (
    NOW_MS,
    broker,
    brokers,
    carried_out,
    gives_up_leaders,
    group,
    in_another_order,
    leaders,
    naive_objective,
    snapshot,
    takes_leaders,
)
from tidemark.partitions.balancing.leaders import Plan, plan
from tidemark.partitions.balancing.settings import Settings, Weights
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId


@st.composite
def any_brokers(draw: st.DrawFn) -> list[Broker]:
    return [
        broker(
            number,
            state=draw(st.sampled_from([BrokerState.ACTIVE] * 5 + list(BrokerState))),
            is_alive=draw(st.integers(0, 7)) > 0,
            is_full=draw(st.integers(0, 7)) == 0,
            disk_ago_ms=draw(st.sampled_from([None] * 5 + [0, 9_999, 10_000, 299_999, 300_000])),
            has_told=draw(st.integers(0, 15)) > 0,
            up_ms=draw(st.sampled_from([1_000_000] * 5 + [0, 29_999, 30_000])),
        )
        for number in range(1, draw(st.integers(1, 6)) + 1)
    ]


@st.composite
def any_group(draw: st.DrawFn, name: str, nodes: Sequence[int]) -> Group:
    shuffled = draw(st.permutations(nodes))
    replicas = shuffled[: draw(st.integers(1, len(nodes)))]
    voters = [node for node in replicas if draw(st.integers(0, 9)) > 0] or replicas
    leader = draw(st.sampled_from(voters))
    lags = {node: draw(st.sampled_from([0] * 6 + [10_000, 10_001])) for node in voters}
    lags.pop(leader)
    lags.pop(draw(st.sampled_from([*nodes, *nodes])), None)
    moving = draw(st.integers(0, 9)) == 0 and len(voters) > 1
    made = group(
        name,
        replicas,
        leader,
        voters=voters,
        lags=lags,
        learners=[node for node in replicas if node not in voters],
        rate=draw(RATES),
        moved_ago_ms=draw(st.sampled_from([None, None, None, 0, 59_999, 60_000])),
        moving_to=next(node for node in voters if node != leader) if moving else None,
        is_changing=draw(st.integers(0, 9)) == 0,
    )
    return made._replace(leader=None, moving_to=None) if draw(st.integers(0, 15)) == 0 else made


@st.composite
def any_cluster(draw: st.DrawFn) -> Snapshot:
    members = draw(any_brokers())
    nodes = [int(each.node_id) for each in members]
    sizes = draw(st.lists(st.integers(1, 6), max_size=4))
    names = [f"t{topic}-{at}" for topic, size in enumerate(sizes) for at in range(size)]
    return snapshot(members, [draw(any_group(name, nodes)) for name in names])


@given(cluster=any_cluster(), settings=ANY_SETTINGS, seed=SEEDS)
def test_a_plan_makes_the_objective_better_or_has_no_moves(
    cluster: Snapshot, settings: Settings, seed: int
) -> None:
    made = plan(cluster, settings, Random(seed))
    before = naive_objective(cluster, settings)
    after = naive_objective(carried_out(cluster, made.moves, after_ms=0), settings)
    assert (made.before.misplaced, made.after.misplaced) == (before[0], after[0])
    assert made.before.total == pytest.approx(before[1], abs=1e-9)
    assert made.after.total == pytest.approx(after[1], abs=1e-9)
    assert bool(made.moves) == (after < before)
    if not made.moves:
        assert made.after == made.before
    assert all(move.reason for move in made.moves)
    assert all(refusal.sentence for refusal in made.refusals)


@given(cluster=any_cluster(), settings=ANY_SETTINGS, seed=SEEDS)
def test_a_plan_leaves_alone_what_must_be(cluster: Snapshot, settings: Settings, seed: int) -> None:
    made = plan(cluster, settings, Random(seed))
    of_broker = {each.node_id: each for each in cluster.brokers}
    of_group = {each.partition: each for each in cluster.groups}
    assert len({move.partition for move in made.moves}) == len(made.moves), "each once"
    for move in made.moves:
        moved, source = of_group[move.partition], of_broker[move.source]
        assert move.source == moved.leader != move.target
        assert not moved.is_moving
        assert not moved.is_changing
        assert takes_leaders(of_broker[move.target], cluster.now_ms, settings)
        assert move.target in moved.replicas
        assert move.target in moved.voters
        assert moved.lags[move.target] <= settings.lag_records_max
        if not gives_up_leaders(source, cluster.now_ms, settings):
            assert takes_leaders(source, cluster.now_ms, settings), "just started, or dead"
            assert moved.moved_ms is None or NOW_MS - moved.moved_ms >= settings.cool_down_ms
        else:
            assert source.is_alive


@given(cluster=any_cluster(), settings=ANY_SETTINGS, seed=SEEDS)
def test_no_more_leaders_are_on_the_move_than_may_be(
    cluster: Snapshot, settings: Settings, seed: int
) -> None:
    moving = [(g.leader, g.moving_to) for g in cluster.groups if g.moving_to is not None]
    planned = [(move.source, move.target) for move in plan(cluster, settings, Random(seed)).moves]
    if planned:
        assert len(moving) + len(planned) <= settings.moves_in_flight_max
    touched = Counter(node for move in [*moving, *planned] for node in move)
    for node in {node for move in planned for node in move}:
        assert touched[node] <= settings.broker_moves_in_flight_max


@given(cluster=any_cluster(), settings=ANY_SETTINGS, seed=SEEDS, shuffled=SEEDS)
def test_the_order_in_which_things_were_found_does_not_matter(
    cluster: Snapshot, settings: Settings, seed: int, shuffled: int
) -> None:
    other = in_another_order(cluster, Random(shuffled))
    assert plan(cluster, settings, Random(seed)) == plan(other, settings, Random(seed))


@pytest.mark.parametrize("seed", [33, 111, 138, 444, 476])
def test_every_move_says_why_also_one_that_is_left_of_several_steps(seed: int) -> None:
    lots = Random(seed)
    groups = [
        group(f"t{at % 3}-{at // 3}", some, lots.choice(some))
        for at in range(40)
        for some in [lots.sample(range(1, 10), lots.randint(1, 3))]
    ]
    made = plan(snapshot(brokers(9), groups), Settings().without_bounds(), Random(seed))
    assert made.moves
    assert all(move.reason for move in made.moves)


def settled(
    cluster: Snapshot, settings: Settings, seed: int, *, after_ms: int = 70_000
) -> tuple[Snapshot, Plan]:
    """Plan and carry out until nothing is left to do; the last plan has no moves."""
    lots = Random(seed)
    for _ in range(4 * len(cluster.groups) + 4):
        made = plan(cluster, settings, lots)
        if not made.moves:
            return cluster, made
        cluster = carried_out(cluster, made.moves, after_ms=after_ms)
    raise AssertionError("it never came to rest")


@given(cluster=any_cluster(), settings=ANY_SETTINGS, seed=SEEDS)
def test_plans_carried_out_again_and_again_come_to_rest(
    cluster: Snapshot, settings: Settings, seed: int
) -> None:
    still = [each._replace(moving_to=None) for each in cluster.groups]
    rested, _ = settled(replace(cluster, groups=still), settings, seed)
    # No lot wakes it up again.
    for other in range(5):
        assert not plan(rested, settings, Random(other)).moves


@given(cluster=healthy_cluster(), seed=SEEDS, hysteresis=st.sampled_from([0.02, 0.05, 0.3]))
def test_rates_wrong_within_the_hysteresis_never_make_it_worse_and_it_comes_to_rest(
    cluster: Snapshot, seed: int, hysteresis: float
) -> None:
    settings = Settings(hysteresis=hysteresis, weights=Weights(rate=300.0)).without_bounds()
    # A share is a group's rate by all of theirs, each of which may be wrong.
    error, lots = 0.99 * hysteresis / (2 + hysteresis), Random(seed)
    objective, quiet = naive_objective(cluster, settings), 0
    for _ in range(200):
        measured = [
            each._replace(
                bytes_in_per_second=each.bytes_in_per_second * (1 + lots.uniform(-error, error))
            )
            for each in cluster.groups
        ]
        made = plan(replace(cluster, groups=measured), settings, lots)
        quiet = 0 if made.moves else quiet + 1
        if quiet == 3:
            return
        cluster = carried_out(cluster, made.moves, after_ms=70_000)
        truly = naive_objective(cluster, settings)
        assert truly < objective or not made.moves
        objective = truly
    raise AssertionError("it never came to rest")


@given(cluster=healthy_cluster(full=True), seed=SEEDS)
def test_with_replicas_everywhere_all_ends_even_within_one(cluster: Snapshot, seed: int) -> None:
    made = plan(cluster, Settings().without_bounds(), Random(seed))
    after = carried_out(cluster, made.moves, after_ms=0)
    assert _spread(after) <= 1
    for topic in {each.partition.topic for each in after.groups}:
        of_topic = [each for each in after.groups if each.partition.topic == topic]
        assert _spread(replace(after, groups=of_topic)) <= 1


def _spread(of: Snapshot) -> int:
    led = leaders(of)
    numbers = [led[int(each.node_id)] for each in of.brokers]
    return max(numbers) - min(numbers)


@given(data=st.data(), seed=SEEDS)
def test_by_number_alone_no_arrangement_is_evener_than_what_is_found(
    data: st.DataObject, seed: int
) -> None:
    nodes = list(range(1, data.draw(st.integers(2, 5)) + 1))
    sets = data.draw(st.lists(st.sets(st.sampled_from(nodes), min_size=1, max_size=3), max_size=7))
    cluster = snapshot(
        brokers(len(nodes)), [group(f"t-{at}", sorted(some)) for at, some in enumerate(sets)]
    )
    settings = Settings(weights=Weights(topic=0.0, rate=0.0, preferred=0.0)).without_bounds()
    rested, _ = settled(cluster, settings, seed)

    def squares(led: Sequence[int]) -> int:
        return sum(count**2 for count in Counter(led).values())

    best = min((squares(choice) for choice in product(*sets)), default=0)
    assert squares([int(NodeId(each.leader or 0)) for each in rested.groups]) == best
