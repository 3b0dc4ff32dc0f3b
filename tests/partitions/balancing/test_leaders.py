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
from tidemark.partitions.balancing.explain import Table, explain
from tidemark.partitions.balancing.leaders import Cause, Plan, plan
from tidemark.partitions.balancing.refusals import Reason, Refusal
from tidemark.partitions.balancing.settings import Settings, Weights
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId

EVERYWHERE = (1, 2, 3)
ALL_THE_WAY = Settings().without_bounds()


def planned(members: list[Broker], groups: list[Group], settings: Settings = ALL_THE_WAY) -> Plan:
    return plan(snapshot(members, groups), settings, Random(1))


def moves(made: Plan) -> list[str]:
    return [f"{move.partition} {move.source}->{move.target}" for move in made.moves]


def refused(made: Plan, reason: Reason) -> list[Refusal]:
    return [refusal for refusal in made.refusals if refusal.reason is reason]


def table(made: Plan, title: str) -> str:
    (found,) = [each for each in explain(made) if each.title == title]
    return "\n".join(found.lines())


def three_hundred_on_one() -> Snapshot:
    groups = [
        group(f"{topic}-{at}", (1 + at % 3, 1 + (at + 1) % 3, 1 + (at + 2) % 3), 1, rate=20_000.0)
        for topic in ("clicks", "orders", "views")
        for at in range(100)
    ]
    return snapshot(brokers(3), groups)


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
    loud = replace(quiet, quiet_bytes_per_s=1.0)
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


# Who is let be


def lopsided(**of_group: object) -> list[Group]:
    """Four led by broker 1, with replicas on 2 as well."""
    return [group(f"t-{at}", (1, 2), **of_group) for at in range(4)]  # type: ignore[arg-type]


def test_a_lopsided_pair_is_evened_out() -> None:
    assert len(planned(brokers(2), lopsided()).moves) == 2


@pytest.mark.parametrize(
    ("target", "reason", "sentence"),
    [
        (broker(2, is_alive=False), Reason.DEAD, "broker 2 is not alive"),
        (
            broker(2, up_ms=12_000),
            Reason.JUST_STARTED,
            "broker 2 started 12 s ago and is left alone for 30 s",
        ),
        (
            broker(2, state=BrokerState.DRAINED),
            Reason.LEADS_NOTHING,
            "broker 2 is drained",
        ),
        (
            broker(2, state=BrokerState.DECOMMISSIONING),
            Reason.LEADS_NOTHING,
            "broker 2 is being decommissioned",
        ),
    ],
    ids=["dead", "just started", "drained", "being decommissioned"],
)
def test_a_broker_that_takes_no_leaders_says_why(
    target: Broker, reason: Reason, sentence: str
) -> None:
    made = planned([broker(1), target], lopsided())
    assert not made.moves
    (refusal,) = refused(made, reason)
    assert (refusal.sentence, refusal.target, refusal.groups) == (sentence, 2, 4)


def test_a_broker_that_takes_no_leaders_is_no_room_to_be_filled() -> None:
    """Its emptiness must not hide that the others are uneven."""
    groups = [group(f"t-{at}", EVERYWHERE) for at in range(6)]
    made = planned([broker(1), broker(2), broker(3, is_alive=False)], groups)
    assert [after.leaders_after for after in made.brokers] == [3, 3, 0]
    assert made.after.count == 0


def test_leaders_of_a_broker_that_just_started_stay() -> None:
    made = planned([broker(1, up_ms=5_000), broker(2)], lopsided())
    assert not made.moves


def test_a_group_whose_leader_just_changed_is_let_be() -> None:
    made = planned(brokers(2), lopsided(moved_ago_ms=20_000))
    assert not made.moves
    (refusal,) = refused(made, Reason.COOL_DOWN)
    assert refusal.groups == 4
    assert refusal.sentence == (
        "from broker 1 to 2 would gain 8.94: its leader changed 20 s ago and is let be for 60 s"
    )


def test_a_group_on_the_move_counts_where_it_goes_to() -> None:
    groups = lopsided()
    groups[0] = group("t-0", (1, 2), moving_to=2)
    made = planned(brokers(2), groups)
    assert len(made.moves) == 1
    assert made.moves[0].partition != groups[0].partition


def test_a_group_whose_replicas_change_is_let_be() -> None:
    made = planned(brokers(2), [g._replace(is_changing=True) for g in lopsided()])
    assert not made.moves
    (refusal,) = refused(made, Reason.IN_MOTION)
    assert refusal.sentence.endswith("its replicas are being changed")


@pytest.mark.parametrize(
    ("changed", "reason", "why"),
    [
        ({"lags": {2: 10_001}}, Reason.OUT_OF_SYNC, "is 10001 records behind, and 10000 are"),
        ({"lags": {}}, Reason.OUT_OF_SYNC, "broker 2 has not said how far it is"),
        ({"voters": (1,), "learners": (2,)}, Reason.LEARNER, "it is a learner"),
        ({"voters": (1,)}, Reason.NOT_A_REPLICA, "broker 2 is none of its voters"),
    ],
    ids=["behind", "unknown", "learner", "no voter"],
)
def test_a_replica_that_cannot_lead_at_once_is_no_target(
    changed: dict[str, object], reason: Reason, why: str
) -> None:
    made = planned(brokers(2), lopsided(**changed))
    assert not made.moves
    (refusal,) = refused(made, reason)
    assert why in refusal.sentence
    assert (refusal.target, refusal.groups) == (2, 4)


def test_only_voters_lead() -> None:
    """Even one that follows as closely as can be."""
    made = planned(brokers(2), lopsided(voters=(1,), learners=(2,), lags={2: 0}))
    assert not made.moves


def test_a_move_that_gains_too_little_says_so() -> None:
    rates = {"a-0": 52e6, "b-0": 1e6, "c-0": 47e6}
    groups = [group(name, (2, 1) if name == "c-0" else (1, 2), rate=rates[name]) for name in rates]
    made = planned(brokers(2), groups, replace(ALL_THE_WAY, weights=Weights(preferred=0.0)))
    assert not made.moves
    (refusal,) = refused(made, Reason.TOO_LITTLE)
    assert str(refusal.partition) == "b-0"
    assert refusal.sentence.endswith("less than the 0.00207 that errors of measuring may come to")


def test_without_a_leader_there_is_nothing_to_move() -> None:
    made = planned(brokers(2), [g._replace(leader=None) for g in lopsided()])
    assert not made.moves
    (refusal,) = refused(made, Reason.NO_LEADER)
    assert refusal.groups == 4


def test_no_more_may_begin_than_are_left_of_the_bound() -> None:
    groups = [group(f"t-{at:02}", EVERYWHERE) for at in range(30)]
    groups += [group(f"u-{at}", EVERYWHERE, moving_to=2) for at in range(3)]
    made = planned(brokers(3), groups, Settings(moves_in_flight_max=7))
    assert len(made.moves) == 2, "of broker 1's five three are on the move"
    (refusal,) = [each for each in refused(made, Reason.IN_FLIGHT) if each.target == 3]
    assert refusal.groups == 28


def test_only_so_many_are_on_the_move() -> None:
    groups = [group(f"t-{at:02}", (1 + at // 20, 3 + at // 20)) for at in range(40)]
    settings = Settings(moves_in_flight_max=8, broker_moves_in_flight_max=100)
    assert len(planned(brokers(4), groups, settings).moves) == 8
    moving = [group(f"u-{at}", (1, 3), moving_to=3) for at in range(3)]
    assert len(planned(brokers(4), [*groups, *moving], settings).moves) == 5


def test_only_so_many_leave_a_broker_that_is_emptied() -> None:
    groups = [group(f"t-{at}", EVERYWHERE) for at in range(9)]
    members = [broker(1, state=BrokerState.DRAINING), broker(2), broker(3)]
    made = planned(members, groups, Settings(moves_in_flight_max=3))
    assert len(made.moves) == 3
    (refusal,) = refused(made, Reason.IN_FLIGHT)
    assert refusal.groups == 6
    assert refusal.sentence == (
        "stays on broker 1, draining: as many leaders as may be are on the move"
    )


def test_only_so_many_come_to_a_broker() -> None:
    groups = [group(f"t-{at:02}", (1 + at // 20, 3)) for at in range(40)]
    settings = Settings(moves_in_flight_max=100, broker_moves_in_flight_max=7)
    assert len(planned(brokers(3), groups, settings).moves) == 7


def test_only_so_many_leave_a_broker() -> None:
    groups = [group(f"t-{at:02}", (1, 2 + at // 20)) for at in range(40)]
    settings = Settings(moves_in_flight_max=100, broker_moves_in_flight_max=7)
    assert len(planned(brokers(3), groups, settings).moves) == 7
    moving = [group(f"u-{at}", (1, 2 + at), moving_to=2 + at) for at in range(2)]
    assert len(planned(brokers(3), [*groups, *moving], settings).moves) == 5


def test_two_of_a_step_begin_together_or_not_at_all() -> None:
    groups = [group(f"a-{at}", (1, 2)) for at in (0, 1)]
    groups += [group(f"b-{at}", (2, 1)) for at in (0, 1)]
    groups += [group("c-0", (1, 2), moving_to=2), group("d-0", (2, 1), moving_to=1)]
    assert not planned(brokers(2), groups, Settings(broker_moves_in_flight_max=3)).moves
    assert len(planned(brokers(2), groups, Settings(broker_moves_in_flight_max=4)).moves) == 2


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


# What is shown


def test_refusals_are_a_table() -> None:
    groups = [*lopsided(moved_ago_ms=20_000), group("u-0", (1, 3))]
    made = planned([*brokers(2), broker(3, is_alive=False)], groups)
    assert table(made, "Not moved") == (
        "reason     to  groups  such as  why not\n"
        "dead       3   1                broker 3 is not alive\n"
        "cool-down  2   4       t-0      from broker 1 to 2 would gain 10.9: its leader changed "
        "20 s ago and is let be for 60 s"
    )


def test_moves_are_a_table() -> None:
    made = planned(brokers(2), lopsided(), Settings())
    assert table(made, "Moves") == (
        "step  partition  from  to  gain  why\n"
        "1     t-0        1     2   8.94  broker 1 leads 4, broker 2 0; "
        "of t broker 1 leads 4, broker 2 0\n"
        "2     t-3        1     2   2.94  broker 1 leads 3, broker 2 1; "
        "of t broker 1 leads 3, broker 2 1"
    )


def test_tables_without_rows_are_left_out() -> None:
    made = planned(brokers(2), [])
    assert [each.title for each in explain(made)] == ["Unevenness", "Brokers"]
    assert Table("t", ("a",), ()).lines() == ["a"]


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


# Settings


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"hysteresis": 1.0}, "hysteresis is 1.0: it is a fraction"),
        ({"quiet_bytes_per_s": 0.0}, "quiet_bytes_per_s is 0.0: it must be above 0"),
        ({"cool_down_ms": -1}, "cool_down_ms is -1: it cannot be negative"),
        ({"moves_in_flight_max": 1}, "moves_in_flight_max is 1: two leaders may have to"),
        ({"broker_moves_in_flight_max": 0}, "broker_moves_in_flight_max is 0: two leaders"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Settings(**wrong)  # type: ignore[arg-type]


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ValueError, match=r"hysteresis is -1.*; cool_down_ms is -2"):
        Settings(hysteresis=-1, cool_down_ms=-2)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_a_weight_is_a_number_from_0(value: float) -> None:
    with pytest.raises(ValueError, match="weight topic is"):
        Weights(topic=value)


def test_weights_that_are_all_0_are_refused() -> None:
    with pytest.raises(ValueError, match="all weights are 0"):
        Weights(count=0, topic=0, rate=0, preferred=0)


def test_a_counter_that_went_backwards_is_no_traffic() -> None:
    assert group("t-0", (1,), rate=-5.0).bytes_per_s == 0


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
