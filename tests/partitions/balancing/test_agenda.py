"""A plan, begun a few moves at a time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from tests.partitions.balancing.clusters import NOW_MS, broker, brokers, group, leaders, snapshot
from tidemark.partitions.balancing.agenda import AGE_MAX_MS, Agenda
from tidemark.partitions.balancing.leaders import Cause, LeaderMove, plan
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId

SETTINGS = Settings(moves_in_flight_max=4, broker_moves_in_flight_max=3)
EVERYWHERE = (1, 2, 3)
UNEVEN = [group(f"t-{at}", EVERYWHERE) for at in range(12)]


def agenda(of: Snapshot) -> Agenda:
    made = Agenda()
    made.fill(plan(of, SETTINGS.without_bounds(), Random(1)), of, SETTINGS)
    return made


def begun(of: Snapshot, moves: Sequence[LeaderMove]) -> Snapshot:
    targets = {move.partition: move.target for move in moves}
    return replace(
        of, groups=[each._replace(moving_to=targets.get(each.partition)) for each in of.groups]
    )


def done(of: Snapshot) -> Snapshot:
    return replace(of, groups=[_moved(each) for each in of.groups])


def _moved(one: Group) -> Group:
    if one.moving_to is None:
        return one
    lags = {node: 0 for node in one.voters if node != one.moving_to}
    return one._replace(leader=one.moving_to, lags=lags, moved_ms=NOW_MS, moving_to=None)


def test_a_few_begin_at_a_time_until_all_is_done() -> None:
    now = snapshot(brokers(3), UNEVEN)
    left = agenda(now)
    rounds = []
    while moves := left.take(now):
        busy = Counter(node for move in moves for node in (move.source, move.target))
        assert max(busy.values()) <= 3
        rounds.append(len(moves))
        now = done(begun(now, moves))
    assert rounds == [3, 3, 2]
    assert not left
    assert leaders(now) == {1: 4, 2: 4, 3: 4}


def test_what_all_brokers_begin_together_has_a_bound() -> None:
    groups = [group(f"t-{at}", (1, 3) if at % 2 else (2, 4)) for at in range(12)]
    now = snapshot(brokers(4), groups)
    left = agenda(now)
    first = left.take(now)
    assert len(first) == 4
    assert not left.take(begun(now, first))
    assert len(left.take(done(begun(now, first)))) == 2
    assert not left


def test_what_is_on_the_way_counts() -> None:
    now = snapshot(brokers(3), UNEVEN)
    left = agenda(now)
    first = left.take(now)
    assert not left.take(begun(now, first))
    assert len(left.take(begun(now, first[:1]))) == 2


@pytest.mark.parametrize(
    "members",
    [
        [broker(1), broker(2, is_alive=False), broker(3)],
        [broker(1), broker(2, state=BrokerState.DRAINING), broker(3)],
        [broker(1), broker(2, up_ms=1), broker(3)],
    ],
    ids=["dead", "drained", "just started"],
)
def test_nothing_goes_to_a_broker_that_takes_no_leaders_any_more(members: list[Broker]) -> None:
    left = agenda(snapshot(brokers(3), UNEVEN))
    now = snapshot(members, UNEVEN)
    assert left.is_outdated(now)
    assert {move.target for move in left.take(now)} == {3}


@pytest.mark.parametrize(
    "change",
    [{"leader": NodeId(3)}, {"leader": None}, {"is_changing": True}, {"lags": {}}],
    ids=["led by another", "led by nobody", "its replicas change", "nobody is in sync"],
)
def test_what_does_not_fit_any_more_is_dropped(change: dict[str, object]) -> None:
    left = agenda(snapshot(brokers(3), UNEVEN))
    changed = [each._replace(**change) for each in UNEVEN]  # type: ignore[arg-type] # by field
    assert not left.take(snapshot(brokers(3), changed))
    assert not left


def test_a_partition_that_is_gone_is_dropped() -> None:
    left = agenda(snapshot(brokers(3), UNEVEN))
    assert not left.take(snapshot(brokers(3), []))


def test_a_plan_is_not_followed_for_ever() -> None:
    now = snapshot(brokers(3), UNEVEN)
    left = agenda(now)
    assert not left.is_outdated(replace(now, now_ms=NOW_MS + AGE_MAX_MS))
    assert left.is_outdated(replace(now, now_ms=NOW_MS + AGE_MAX_MS + 1))


def test_what_was_planned_without_a_broker_s_grace_begins_without_it() -> None:
    """A drain does not wait for brokers that have just started."""
    of = snapshot(
        [broker(1, state=BrokerState.DRAINING), broker(2, up_ms=1)], [group("t-0", (1, 2))]
    )
    for grace_ms, begins in ((0, 1), (30_000, 0)):
        settings = Settings(start_grace_ms=grace_ms)
        left = Agenda()
        left.fill(plan(of, settings.without_bounds(), Random(1), only_empties=True), of, settings)
        assert len(left.take(of)) == begins


def step(number: int, *moves: tuple[str, int, int], cause: Cause = Cause.TOPIC) -> list[LeaderMove]:
    return [
        LeaderMove(
            partition=group(name, EVERYWHERE).partition,
            source=NodeId(source),
            target=NodeId(target),
            step=number,
            gain=1.0,
            reason="the test has it so",
            cause=cause,
        )
        for name, source, target in moves
    ]


def planned(of: Snapshot, *steps: list[LeaderMove]) -> Agenda:
    made = Agenda()
    moves = tuple(move for each in steps for move in each)
    made.fill(replace(plan(of, SETTINGS, Random(1)), moves=moves), of, SETTINGS)
    return made


def names(moves: Sequence[LeaderMove]) -> list[str]:
    return [str(move.partition) for move in moves]


A, B, C = (group("a-0", EVERYWHERE, 1), group("b-0", EVERYWHERE, 2), group("c-0", EVERYWHERE, 1))
SWAP = step(1, ("a-0", 1, 2), ("b-0", 2, 1))


def test_two_that_change_places_do_not_begin_one_without_the_other() -> None:
    coming = [group(f"x-{at}", EVERYWHERE, moving_to=3) for at in range(3)]
    busy = snapshot(brokers(3), [A, B, C, *coming])
    left = planned(busy, SWAP, step(2, ("c-0", 1, 3)))
    assert not left.take(busy), "broker 1 has no room for either"
    busy = snapshot(brokers(3), [A, B, C, *coming[:2]])
    assert names(left.take(busy)) == ["c-0"], "it has room for one"
    assert names(left.take(snapshot(brokers(3), [A, B, C]))) == ["a-0", "b-0"]
    assert not left


def test_two_do_not_change_places_where_only_one_more_may_move() -> None:
    elsewhere = [group(f"x-{at}", (4, 5), moving_to=5) for at in range(3)]
    left = planned(snapshot(brokers(5), [A, B]), SWAP)
    assert not left.take(snapshot(brokers(5), [A, B, *elsewhere]))
    assert len(left.take(snapshot(brokers(5), [A, B, *elsewhere[:2]]))) == 2


def test_who_cannot_change_places_any_more_stays() -> None:
    now = snapshot(brokers(3), [A, B._replace(leader=NodeId(3))])
    left = planned(now, SWAP)
    assert not left.take(now)
    assert not left


def test_a_leader_that_has_to_leave_does_not_wait_for_its_step() -> None:
    now = snapshot(brokers(3), [A, B._replace(leader=NodeId(3))])
    left = planned(now, [*step(1, ("a-0", 1, 2), cause=Cause.EMPTY), *step(1, ("b-0", 2, 1))])
    assert names(left.take(now)) == ["a-0"]
    assert not left


def test_a_step_that_is_too_large_to_begin_at_once_begins_in_part_and_ends() -> None:
    groups = [group(f"t-{at}", EVERYWHERE) for at in range(6)]
    now = snapshot(brokers(3), groups)
    left = planned(now, step(1, *((f"t-{at}", 1, 2 + at % 2) for at in range(6))))
    first = left.take(now)
    assert names(first) == ["t-0", "t-1", "t-2"]
    now = done(begun(now, first))
    gone = [each for each in now.groups if str(each.partition) != "t-3"]
    assert names(left.take(replace(now, groups=gone))) == ["t-4", "t-5"]
    assert not left
