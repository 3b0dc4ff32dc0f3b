"""The balancer of leaders, scene by scene."""

import time
from dataclasses import replace
from random import Random

import pytest

from tests.partitions.balancing.clusters import (
    NOW_MS,
    broker,
    brokers,
    carried_out,
    group,
    leaders,
    snapshot,
)
from tests.partitions.balancing.planning import (
    ALL_THE_WAY,
    EVERYWHERE,
    lopsided,
    moves,
    planned,
    refused,
    table,
    three_hundred_on_one,
)
from tidemark.partitions.balancing.leaders import Cause, plan
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.settings import Settings, Weights
from tidemark.partitions.balancing.snapshot import BrokerState, Snapshot
from tidemark.protocol.types import NodeId

# Evenness


def test_three_hundred_leaders_on_one_of_three_brokers_end_a_hundred_each() -> None:
    made = plan(three_hundred_on_one(), ALL_THE_WAY, Random(1))
    assert len(made.moves) == 200
    assert table(made, "Brokers") == (
        "broker  leaders  then  traffic  then\n"
        "1       300      100   100.0%   33.3%\n"
        "2       0        100   0.0%     33.3%\n"
        "3       0        100   0.0%     33.3%"
    )
    assert table(made, "Unevenness") == (
        "term                weight  before    after\n"
        "leaders misplaced   first   0         0\n"
        "leaders per broker  1       60000     0\n"
        "leaders per topic   0.5     20000     2\n"
        "traffic             1       0.666667  0\n"
        "preferred leaders   0.5     0.22      0.00222222\n"
        "in all                      70000.8   1.00111"
    )


def test_the_same_in_small_bites_while_groups_that_moved_cool_down() -> None:
    cluster, rounds = three_hundred_on_one(), 0
    settings = Settings()
    while (made := plan(cluster, settings, Random(rounds))).moves:
        cluster, rounds = carried_out(cluster, made.moves, after_ms=500), rounds + 1
    assert rounds == 40, "five at a time leave the one broker"
    assert leaders(cluster) == {1: 100, 2: 100, 3: 100}
    for topic in ("clicks", "orders", "views"):
        of_topic = [each for each in cluster.groups if each.partition.topic == topic]
        assert max(leaders(replace(cluster, groups=of_topic)).values()) <= 35


def test_an_even_cluster_is_let_be() -> None:
    made = planned(brokers(3), [group(f"t-{at}", (at, at % 3 + 1)) for at in (1, 2, 3)])
    assert not made.moves
    assert not made.refusals


def test_one_leader_more_than_another_broker_is_even() -> None:
    made = planned(brokers(2), [group("t-0", (1, 2))], Settings())
    assert not made.moves


def test_topics_are_spread_by_changing_places_where_numbers_are_even_already() -> None:
    made = planned(
        brokers(2),
        [group(f"a-{at}", (1, 2)) for at in (0, 1)] + [group(f"b-{at}", (2, 1)) for at in (0, 1)],
    )
    (first, second) = made.moves
    assert {str(first.partition)[0], str(second.partition)[0]} == {"a", "b"}
    assert first.step == second.step, "neither is worth it alone"
    assert made.after.count == made.after.topic == 0
    assert f"together with {second.partition}" in first.reason


def test_leaders_are_passed_on_along_a_chain_of_brokers() -> None:
    made = planned(
        brokers(3),
        [
            group("a-0", (1, 2)),
            group("b-0", (1, 2)),
            group("c-0", (1, 2)),
            group("d-0", (2, 3)),
            group("e-0", (2, 3)),
            group("f-0", (3,)),
        ],
    )
    assert len(made.moves) == 2
    assert [(move.source, move.target) for move in made.moves] == [(1, 2), (2, 3)]
    assert [after.leaders_after for after in made.brokers] == [2, 2, 2]


def test_traffic_is_spread_by_changing_places_and_leaves_numbers_even() -> None:
    made = planned(
        brokers(2),
        [
            group("hot-0", (1, 2), rate=9e6),
            group("warm-0", (1, 2), rate=7e6),
            group("cold-0", (2, 1), rate=1e3),
            group("cool-0", (2, 1), rate=2e3),
        ],
    )
    assert len(made.moves) == 2
    assert [after.leaders_after for after in made.brokers] == [2, 2]
    assert max(after.share_after for after in made.brokers) < 0.6
    assert "of the traffic" in made.moves[0].reason


def test_two_that_change_places_must_pay_together() -> None:
    """Their traffic differs by more than that of their brokers, which would be the wrong way."""
    made = planned(
        brokers(2),
        [
            group("t-0", (1, 2), rate=10e6),
            group("t-1", (1, 2), rate=10e6),
            group("t-2", (2, 1), rate=1e3),
            group("t-3", (2, 1), rate=13e6),
        ],
        Settings(weights=Weights(preferred=0.0)),
    )
    assert not made.moves


def test_traffic_is_spread_within_a_topic() -> None:
    made = planned(
        brokers(2),
        [
            group("t-0", (1, 2), rate=9e6),
            group("t-1", (1, 2), rate=8e6),
            group("t-2", (2, 1), rate=1e6),
            group("t-3", (2, 1), rate=1e6),
        ],
    )
    assert len(made.moves) == 2
    assert max(after.share_after for after in made.brokers) < 0.6


def test_traffic_within_the_hysteresis_moves_nobody() -> None:
    rates = (1.1e6, 1e6)
    groups = [group(f"{at}-0", (1 + at % 2, 2 - at % 2), rate=rates[at % 2]) for at in range(20)]
    settings = replace(ALL_THE_WAY, weights=Weights(preferred=0.0))
    assert not planned(brokers(2), groups, settings).moves
    exact = replace(settings, hysteresis=0.0)
    assert planned(brokers(2), groups, exact).moves, "it was for the hysteresis alone"


def test_a_trickle_moves_nobody() -> None:
    groups = [
        group("hot-0", (1, 2), rate=50.0),
        group("warm-0", (1, 2), rate=40.0),
        group("cold-0", (2, 1)),
        group("cool-0", (2, 1)),
    ]
    quiet = replace(ALL_THE_WAY, weights=Weights(preferred=0.001))
    assert not planned(brokers(2), groups, quiet).moves
    loud = replace(quiet, quiet_bytes_per_second=1.0)
    assert planned(brokers(2), groups, loud).moves


def test_with_a_high_weight_traffic_comes_before_numbers() -> None:
    groups = [group("hot-0", (1, 2), rate=9e6)]
    groups += [group(f"{name}-0", (1, 2), rate=1e6) for name in "abc"]
    groups += [group(f"{name}-0", (2, 1), rate=1e6) for name in "defg"]
    by_number = planned(brokers(2), groups)
    by_rate = planned(brokers(2), groups, replace(ALL_THE_WAY, weights=Weights(rate=1000)))
    assert not by_number.moves
    assert by_rate.brokers[0].leaders_after == 2


def test_leaders_come_home_where_that_costs_no_evenness() -> None:
    made = planned(brokers(2), [group("a-0", (1, 2), 2), group("b-0", (2, 1), 1)])
    assert len(made.moves) == 2
    assert made.before.preferred > made.after.preferred == 0
    assert "is its preferred leader" in made.moves[0].reason


def test_all_on_the_preferred_leader_is_not_worth_unevenness() -> None:
    groups = [group(f"t-{at}", (1, 2), 1 + at % 2) for at in range(10)]
    assert not planned(brokers(2), groups).moves


# Brokers that are to lead nothing


@pytest.mark.parametrize("state", list(BrokerState)[1:], ids=lambda state: state.value)
def test_leaders_leave_a_broker_that_is_to_lead_nothing(state: BrokerState) -> None:
    groups = [group(f"t-{at}", EVERYWHERE, moved_ago_ms=1) for at in range(4)]
    made = planned([broker(1, state=state), broker(2), broker(3)], groups)
    assert [after.leaders_after for after in made.brokers] == [0, 2, 2]
    assert made.moves[0].reason == f"broker 1 is {state.value}"
    assert (made.before.misplaced, made.after.misplaced) == (4, 0)


def test_a_drained_broker_leads_on_while_nobody_else_can() -> None:
    groups = [group("t-0", (1, 2), lags={}), group("u-0", (1, 2))]
    made = planned([broker(1, state=BrokerState.DRAINED), broker(2)], groups)
    assert moves(made) == ["u-0 1->2"]
    (refusal,) = refused(made, Reason.OUT_OF_SYNC)
    assert refusal.sentence == (
        "stays on broker 1, drained: no other voter is in sync on a broker that takes leaders"
    )


# Over time


def test_a_broker_that_flaps_is_given_nothing_and_the_others_are_evened_out() -> None:
    cluster = snapshot(brokers(3), [group(f"t-{at}", EVERYWHERE) for at in range(30)])
    for second in range(0, 300, 10):
        three = broker(3, is_alive=second % 20 == 0)
        three = replace(three, up_since_ms=cluster.now_ms - 5_000)
        cluster = replace(cluster, brokers=(broker(1), broker(2), three))
        made = plan(cluster, Settings(), Random(second))
        cluster = carried_out(cluster, made.moves, after_ms=10_000)
    assert leaders(cluster) == {1: 15, 2: 15}


def test_leaders_are_even_again_after_each_broker_was_restarted() -> None:
    """Drained, stopped, and back: none leads anything while it is down."""
    groups = [
        group(f"t-{at}", (1 + at % 3, 1 + (at + 1) % 3, 1 + (at + 2) % 3)) for at in range(30)
    ]
    cluster, members = snapshot(brokers(3), groups), brokers(3)
    lots = Random(1)

    def settle(seconds: int) -> Snapshot:
        now = cluster
        for _ in range(seconds):
            now = replace(now, brokers=tuple(members))
            now = carried_out(now, plan(now, Settings(), lots).moves, after_ms=1_000)
        return now

    for at in range(3):
        well = members[at]
        members[at] = replace(well, state=BrokerState.DRAINING)
        cluster = settle(10)
        assert leaders(cluster)[at + 1] == 0
        members[at] = replace(well, is_alive=False)
        cluster = settle(5)
        members[at] = replace(well, up_since_ms=cluster.now_ms)
        cluster = settle(35)
    cluster = settle(60)
    assert leaders(cluster) == {1: 10, 2: 10, 3: 10}


# At the edges


def test_a_cluster_of_nothing_has_a_plan() -> None:
    assert not plan(snapshot([], []), Settings(), Random(1)).moves


def test_a_leader_that_nobody_knows_is_nobodys_load() -> None:
    made = planned(brokers(2), [group("t-0", (9, 1, 2))])
    assert not made.moves
    assert refused(made, Reason.NO_LEADER)


def test_ten_thousand_groups_are_planned_for_in_a_moment() -> None:
    """0.2 s of this machine's processor; a search that looks at all pairs would take minutes."""
    lots = Random(1)
    groups = []
    for at in range(10_000):
        replicas = lots.sample(range(1, 11), 3)
        rate = 1e4 * lots.paretovariate(1.2)
        groups.append(group(f"t{at % 200}-{at // 200}", replicas, rate=rate))
    cluster = snapshot(brokers(10), groups)
    started = time.process_time()
    made = plan(cluster, Settings(), lots)
    assert time.process_time() - started < 2
    assert len(made.moves) == Settings().moves_in_flight_max


def test_a_counter_that_went_backwards_is_no_traffic() -> None:
    assert group("t-0", (1,), rate=-5.0).bytes_per_second == 0


def test_the_order_of_groups_and_brokers_means_nothing() -> None:
    cluster = three_hundred_on_one()
    made = plan(cluster, Settings(), Random(1))
    for other in (
        replace(cluster, groups=cluster.groups[::-1]),
        replace(cluster, brokers=cluster.brokers[::-1]),
    ):
        assert plan(other, Settings(), Random(1)) == made
    assert plan(cluster, Settings(), Random(2)) != made, "the lot decides between equals"


def test_a_plan_is_of_its_moment() -> None:
    """The same groups, once they have cooled down."""
    cluster = snapshot(brokers(2), lopsided(moved_ago_ms=20_000))
    later = replace(cluster, now_ms=NOW_MS + 40_000)
    assert not plan(cluster, Settings(), Random(1)).moves
    assert plan(later, Settings(), Random(1)).moves


def test_leaders_that_only_have_to_leave_are_the_only_ones_to_move() -> None:
    members = [broker(1, state=BrokerState.DRAINING), broker(2), broker(3)]
    groups = [group(f"t-{at}", (2, 3)) for at in range(10)]
    uneven = snapshot(members, [*groups, group("u-0", (1, 2, 3))])
    made = plan(uneven, Settings(), Random(1), only_empties=True)
    assert [(str(move.partition), move.cause) for move in made.moves] == [("u-0", Cause.EMPTY)]
    assert len(plan(uneven, Settings(), Random(1)).moves) > 1


def test_a_move_says_what_it_is_for_above_all() -> None:
    by_number = [group(f"t-{at}", (1, 2)) for at in range(2)]
    home = [group("t-0", (2, 1), 1), group("t-1", (1, 2), 2)]
    weights = Weights(rate=0, preferred=0.9)
    for groups, cause in ((by_number, Cause.COUNT), (home, Cause.PREFERRED)):
        made = plan(snapshot(brokers(2), groups), Settings(weights=weights), Random(1))
        assert {move.cause for move in made.moves} == {cause}


def test_a_leader_that_is_being_handed_over_counts_though_nobody_leads_for_a_moment() -> None:
    """Else another one would be sent there, and there would be one too many."""
    groups = [group(f"t-{at}", (1, 2), 1) for at in range(3)]
    between = groups[0]._replace(leader=None, moving_to=NodeId(2))
    assert moves(planned(brokers(2), [between, *groups[1:]])) == []


def test_a_broker_that_is_left_alone_is_shown_with_what_it_leads() -> None:
    made = planned([broker(1), broker(2, up_ms=1)], [group("t-0", (2, 1)), group("t-1", (1, 2))])
    assert [(each.leaders_before, each.leaders_after) for each in made.brokers] == [(1, 1), (1, 1)]
