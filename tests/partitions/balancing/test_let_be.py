"""Who the balancer of leaders lets be, and why, scene by scene."""

from dataclasses import replace

import pytest

from tests.partitions.balancing.clusters import (
    broker,
    brokers,
    group,
)
from tests.partitions.balancing.planning import (
    ALL_THE_WAY,
    EVERYWHERE,
    lopsided,
    planned,
    refused,
)
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.settings import Settings, Weights
from tidemark.partitions.balancing.snapshot import Broker, BrokerState


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
        (
            broker(2, is_full=True),
            Reason.FULL_DISK,
            "the disk of broker 2 is full: it takes no records",
        ),
    ],
    ids=["dead", "just started", "drained", "being decommissioned", "full"],
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
