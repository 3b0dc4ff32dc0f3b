"""When the loop syncs by itself: on a quick disk, little, and seldom."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.broker.replicas.quick_syncs import (
    ALONE_BYTES_MAX,
    ALONE_SECONDS,
    BYTES_MAX,
    FREE_SHARE,
    PAUSE_SECONDS_MAX,
    QUICK_SECONDS,
    SLOW_FREE_SHARE,
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


def test_who_is_served_alone_waits_for_no_hand_over() -> None:
    syncs = quick_disk()
    for number in range(10):
        now = number * QUICK
        assert syncs.may_sync(now, ALONE_BYTES_MAX, is_alone=True)
        assert not syncs.may_sync(now, ALONE_BYTES_MAX + 1, is_alone=True)
        syncs.took(now, QUICK, on_loop=True)
        assert not syncs.may_sync(now, 1)


def test_nor_does_it_hold_the_loop_for_longer_than_that_takes() -> None:
    syncs = quick_disk()
    for number in range(30):
        syncs.took(number * QUICK, 1.1 * ALONE_SECONDS, on_loop=True)
    assert not syncs.may_sync(30 * QUICK, 1, is_alone=True)


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_disk_that_was_slow_on_the_loop_is_the_threads_for_everybody(is_alone: bool) -> None:
    syncs = quick_disk()
    syncs.took(1.0, SLOW_SECONDS, on_loop=True)
    for _ in range(20):
        syncs.took(1.0, QUICK, on_loop=False)
    assert not syncs.may_sync(1.0 + 0.99 * SLOW_FREE_SHARE * SLOW_SECONDS, 1, is_alone=is_alone)
    assert syncs.may_sync(1.0 + 1.01 * SLOW_FREE_SHARE * SLOW_SECONDS, 1, is_alone=is_alone)


def test_a_disk_that_takes_longer_than_a_hand_over_is_the_threads() -> None:
    syncs = quick_disk()
    for number in range(30):
        syncs.took(float(number), 3 * QUICK_SECONDS, on_loop=False)
    assert not syncs.may_sync(100.0, 1)


@pytest.mark.parametrize("stall", [SLOW_SECONDS, 0.03, 2.0])
def test_after_a_slow_one_the_thread_syncs_for_many_times_as_long(stall: float) -> None:
    syncs = quick_disk()
    syncs.took(1.0, stall, on_loop=True)
    for _ in range(20):
        syncs.took(1.0, QUICK, on_loop=False)
    assert not syncs.may_sync(1.0 + 0.99 * SLOW_FREE_SHARE * stall, 1)
    assert syncs.may_sync(1.0 + 1.01 * SLOW_FREE_SHARE * stall, 1)


def test_a_stall_is_not_remembered_for_ever() -> None:
    syncs = quick_disk()
    syncs.took(1.0, 20.0, on_loop=True)
    assert not syncs.may_sync(0.99 * PAUSE_SECONDS_MAX, 1)
    assert syncs.may_sync(1.1 * PAUSE_SECONDS_MAX, 1)


def test_one_slow_sync_of_the_thread_says_little_of_the_next_ones() -> None:
    """As when others make the disk busy for a moment: the thread has waited, the loop has not."""
    syncs = quick_disk()
    syncs.took(1.0, 0.03, on_loop=False)
    assert syncs.may_sync(1.0 + 1.01 * FREE_SHARE * 0.03, 1)


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from([QUICK, SLOW_SECONDS, 0.02, 0.2])), max_size=200
    )
)
def test_slow_ones_hold_the_loop_for_a_small_part_of_its_time(
    comings: list[tuple[float, float]],
) -> None:
    syncs, now, held = quick_disk(), 0.0, 0.0
    slow_last = 0.0
    for pause, seconds in comings:
        now += pause
        on_loop = syncs.may_sync(now, 1)
        now += seconds
        syncs.took(now, seconds, on_loop=on_loop)
        if on_loop and seconds >= SLOW_SECONDS:
            held, slow_last = held + seconds, seconds
    assert SLOW_FREE_SHARE * (held - slow_last) <= now + 1e-6


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
