"""When the loop syncs by itself: on a quick disk, little, and seldom."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tidemark.broker.replicas.quick_syncs import (
    BYTES_MAX,
    FREE_SHARE,
    PAUSE_SECONDS,
    PAUSE_SECONDS_MAX,
    QUICK_SECONDS,
    SLOW_SECONDS,
    QuickSyncs,
)

QUICK = 0.0001


def quick_disk(now: float = 0.0) -> QuickSyncs:
    syncs = QuickSyncs()
    syncs.took(now, QUICK, on_loop=False)
    return syncs


def test_nothing_is_known_of_a_disk_at_first() -> None:
    assert not QuickSyncs().may_sync(100.0, 1)


def test_a_little_on_a_quick_disk_is_synced_on_the_loop() -> None:
    assert quick_disk().may_sync(1.0, BYTES_MAX)
    assert not quick_disk().may_sync(1.0, BYTES_MAX + 1)


def test_a_disk_that_takes_longer_than_a_hand_over_is_the_threads() -> None:
    syncs = quick_disk()
    for number in range(30):
        syncs.took(float(number), 3 * QUICK_SECONDS, on_loop=False)
    assert not syncs.may_sync(100.0, 1)


def test_after_a_slow_one_the_thread_syncs_for_a_while_that_doubles() -> None:
    syncs, now, pauses = quick_disk(), 1.0, list[float]()
    for _ in range(12):
        assert syncs.may_sync(now, 1)
        syncs.took(now, 10 * SLOW_SECONDS, on_loop=True)
        slow_at = now
        while not syncs.may_sync(now, 1):
            now += 0.05
            syncs.took(now, QUICK, on_loop=False)
            now += 0.05
        pauses.append(now - slow_at)
    assert PAUSE_SECONDS <= pauses[0] < 2 * PAUSE_SECONDS
    assert all(later > 1.5 * pause for pause, later in pairwise(pauses[:7]))
    assert PAUSE_SECONDS_MAX <= pauses[-1] < 1.1 * PAUSE_SECONDS_MAX


def test_a_disk_that_was_quick_for_long_is_trusted_as_at_first() -> None:
    syncs = quick_disk()
    for number in range(10):
        syncs.took(200.0 * number, SLOW_SECONDS, on_loop=True)
    now = 3_000.0
    for _ in range(1_000):
        now += 1
        syncs.took(now, QUICK, on_loop=True)
    syncs.took(now, SLOW_SECONDS, on_loop=True)
    assert syncs.may_sync(now + 1.5 * PAUSE_SECONDS, 1)


@given(st.lists(st.tuples(st.floats(0, 0.01), st.floats(0.00001, 0.02)), max_size=200))
def test_the_loop_is_held_for_a_part_of_its_time(comings: list[tuple[float, float]]) -> None:
    """Whatever comes when, and however long the syncs take."""
    syncs, now, held = quick_disk(), 0.0, list[tuple[float, float]]()
    for pause, seconds in comings:
        now += pause
        on_loop = syncs.may_sync(now, 1)
        began, now = now, now + seconds
        if on_loop:
            held.append((began, now))
        syncs.took(now, seconds, on_loop=on_loop)
    for (began, ended), (following, _) in pairwise(held):
        assert following - ended >= 0.999 * FREE_SHARE * (ended - began)
