"""Leaders leave a broker whose disk stays full, and do not go to and fro with it."""

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

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
    planned,
    refused,
)
from tidemark.partitions.balancing.by_hand import plan_drain, why_not_move
from tidemark.partitions.balancing.eligibility import Role
from tidemark.partitions.balancing.leaders import Cause, plan
from tidemark.partitions.balancing.refusals import Reason
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId

ONE, TWO, THREE = NodeId(1), NodeId(2), NodeId(3)
LOOK_MS = 5_000


def test_leaders_leave_a_broker_whose_disk_stays_full_whatever_that_does_to_evenness() -> None:
    groups = [group(f"t-{at}", EVERYWHERE, 1 + at % 3) for at in range(6)]
    made = planned([broker(1, is_full=True, disk_ago_ms=10_000), broker(2), broker(3)], groups)
    assert [each.leaders_after for each in made.brokers] == [0, 3, 3]
    assert made.brokers[0].role is Role.EMPTIED
    assert {(move.source, move.cause, move.reason, move.gain) for move in made.moves} == {
        (ONE, Cause.FULL_DISK, "the disk of broker 1 is full", 0.0)
    }
    (refusal,) = refused(made, Reason.FULL_DISK)
    assert refusal.sentence == "the disk of broker 1 is full: it takes no records"


def test_a_disk_that_is_full_for_a_moment_moves_nobody() -> None:
    groups = [group(f"t-{at}", EVERYWHERE, 1 + at % 3) for at in range(6)]
    members = [broker(1, is_full=True, disk_ago_ms=9_999), broker(2), broker(3)]
    made = planned(members, groups)
    assert not made.moves
    assert made.brokers[0].role is Role.LEFT_ALONE


def test_a_broker_that_has_room_again_is_left_alone_for_a_while() -> None:
    members = [broker(1), broker(2, disk_ago_ms=40_000)]
    made = planned(members, lopsided())
    assert not made.moves
    (refusal,) = refused(made, Reason.FULL_DISK)
    assert refusal.sentence == (
        "the disk of broker 2 was full 40 s ago and is left alone for 300 s"
    )
    assert planned([broker(1), broker(2, disk_ago_ms=300_000)], lopsided()).moves
    back = [broker(1, disk_ago_ms=40_000), broker(2)]
    assert not planned(back, lopsided()).moves, "nor does it give any away"


def test_where_nobody_has_room_leaders_stay_and_it_is_said() -> None:
    members = [broker(n, is_full=True, disk_ago_ms=60_000) for n in EVERYWHERE]
    made = planned(members, [group(f"t-{at}", EVERYWHERE, 1) for at in range(6)])
    assert not made.moves
    (refusal,) = refused(made, Reason.OUT_OF_SYNC)
    assert refusal.groups == 6
    assert refusal.sentence == (
        "stays on broker 1, whose disk is full: no other voter is in sync on a broker that takes "
        "leaders"
    )


def test_a_broker_that_has_not_told_how_its_disk_is_takes_no_leaders() -> None:
    made = planned([broker(1), broker(2, has_told=False)], lopsided())
    assert not made.moves
    (refusal,) = refused(made, Reason.UNHEARD)
    assert refusal.sentence == "broker 2 has not said yet whether its disk takes records"


def test_a_drain_leaves_the_leaders_of_another_brokers_full_disk_alone() -> None:
    groups = [group(f"t-{at}", EVERYWHERE, 1 + at % 2) for at in range(4)]
    members = [
        broker(1, is_full=True),
        broker(2, state=BrokerState.DRAINING),
        broker(3, disk_ago_ms=0),
    ]
    drains = Settings().for_drains().without_bounds()
    made = plan(snapshot(members, groups), drains, Random(1), only_empties=True)
    assert {(move.source, move.target, move.cause) for move in made.moves} == {
        (TWO, THREE, Cause.EMPTY)
    }
    assert len(made.moves) == 2
    drain = plan_drain(snapshot([members[0], broker(2), broker(3)], groups), drains, TWO, Random(1))
    assert {move.source for move in drain.moves} == {TWO}


def test_by_hand_a_leader_may_go_where_there_is_room_since_a_moment_ago() -> None:
    groups = lopsided()
    back = snapshot([broker(1), broker(2, disk_ago_ms=0)], groups)
    assert why_not_move(back, ALL_THE_WAY, groups[0].partition, TWO) is None
    full = snapshot([broker(1), broker(2, is_full=True)], groups)
    no = why_not_move(full, ALL_THE_WAY, groups[0].partition, TWO)
    assert no is not None
    assert no.reason is Reason.FULL_DISK


def test_who_asks_for_it_now_is_not_told_to_wait() -> None:
    at_once = ALL_THE_WAY.without_waiting()
    groups = [group(f"t-{at}", EVERYWHERE, 1) for at in range(4)]
    members = [broker(1, is_full=True, disk_ago_ms=0), broker(2, disk_ago_ms=0), broker(3)]
    made = planned(members, groups, at_once)
    assert [each.leaders_after for each in made.brokers] == [0, 2, 2]


# Disks that fill up and are freed, again and again


@st.composite
def disks(draw: st.DrawFn) -> list[list[int]]:
    """For each of three brokers after how many looks its disk is full, has room, is full, …"""
    long = st.integers(1, 6) | st.integers(50, 80)
    return [draw(st.lists(long, max_size=12)) for _ in EVERYWHERE]


def at_look(turns: list[list[int]], look: int, start_ms: int) -> list[Broker]:
    """The brokers as their disks are then."""
    members = []
    for node, of_one in zip(EVERYWHERE, turns, strict=True):
        passed, is_full, since_ms = 0, False, None
        for length in of_one:
            if passed + length > look:
                break
            passed += length
            is_full, since_ms = not is_full, start_ms + passed * LOOK_MS
        one = replace(broker(node, is_full=is_full), disk_since_ms=since_ms)
        members.append(one)
    return members


@given(turns=disks(), seed=st.integers(0, 2**32), partitions=st.integers(1, 9))
def test_whatever_disks_do_no_leader_goes_to_and_fro(
    turns: list[list[int]], seed: int, partitions: int
) -> None:
    settings, lots = Settings().without_bounds(), Random(seed)
    groups: list[Group] = [group(f"t-{at}", EVERYWHERE, 1 + at % 3) for at in range(partitions)]
    cluster = snapshot(brokers(3), groups)
    looks = max(sum(of_one) for of_one in turns) + 3
    left = dict[tuple[object, NodeId], int]()
    for look in range(looks):
        members = at_look(turns, look, NOW_MS)
        cluster = replace(cluster, now_ms=NOW_MS + look * LOOK_MS, brokers=members)
        made = plan(cluster, settings, lots)
        disk = {each.node_id: each for each in members}
        for move in made.moves:
            source, target = disk[move.source], disk[move.target]
            assert not target.is_full
            assert has_had_room(target, cluster.now_ms), "it may be full again at once"
            if source.is_full:
                assert move.cause is Cause.FULL_DISK
                assert source.disk_since_ms is not None
                assert cluster.now_ms - source.disk_since_ms >= 10_000
                before = left.get((move.partition, move.source))
                left[move.partition, move.source] = cluster.now_ms
                assert before is None or cluster.now_ms - before >= 310_000, "it went to and fro"
            else:
                assert has_had_room(source, cluster.now_ms)
        if all(each.is_full for each in members):
            assert not made.moves
        cluster = carried_out(cluster, made.moves, after_ms=0)
        assert_nobody_leads_in_vain(cluster, members, settings)


def has_had_room(one: Broker, now_ms: int) -> bool:
    return one.disk_since_ms is None or now_ms - one.disk_since_ms >= 300_000


def assert_nobody_leads_in_vain(
    cluster: Snapshot, members: list[Broker], settings: Settings
) -> None:
    """Who has been full for long leads nothing that another could lead."""
    takes = [each for each in members if not each.is_full and has_had_room(each, cluster.now_ms)]
    patience_ms = settings.full_patience_ms or 0
    for each in members:
        if takes and each.is_full and not is_since(each, cluster.now_ms - patience_ms):
            assert leaders(cluster)[each.node_id] == 0


def is_since(one: Broker, moment_ms: int) -> bool:
    return one.disk_since_ms is not None and one.disk_since_ms > moment_ms


def test_forced_and_other_moves_of_one_step_each_say_their_own_reason() -> None:
    """A leader that has had to leave a broker may change places with another one of its step."""
    mixed = 0
    for seed in range(300):
        lots = Random(seed)
        groups = [
            group(
                f"t{at % 3}-{at // 3}", some, lots.choice(some), rate=lots.choice([0.0, 1e5, 4e6])
            )
            for at in range(24)
            for some in [lots.sample(range(1, 6), lots.randint(2, 4))]
        ]
        members = [broker(1, is_full=True), *(broker(n) for n in range(2, 6))]
        made = planned(members, groups)
        steps = Counter(move.step for move in made.moves)
        for move in made.moves:
            is_forced = move.source == ONE
            assert (move.cause is Cause.FULL_DISK) == is_forced
            assert (move.reason == "the disk of broker 1 is full") == is_forced
            mixed += (
                steps[move.step] > 1
                and not is_forced
                and any(other.source == ONE for other in made.moves if other.step == move.step)
            )
    assert mixed
