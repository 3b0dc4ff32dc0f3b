"""Figures that are held to a limit: pairs in turn, the median of their ratios, their quartiles."""

import os

import pytest

from benchmarks.harness import PAIRS, RESULTS, bounds_of, in_pairs, row_of, row_of_pairs, spread_of
from benchmarks.report.kept import newest_first


def test_who_goes_first_changes_with_each_pair_and_the_first_pair_is_not_counted() -> None:
    turns: list[str] = []

    def measured() -> float:
        turns.append("broker")
        return len(turns)

    def limit() -> float:
        turns.append("limit")
        return -len(turns)

    assert in_pairs(measured, limit, runs=2) == [(4, -3), (5, -6)]
    assert turns == ["broker", "limit", "limit", "broker", "broker", "limit"]


def test_each_run_of_a_pair_at_rest_begins_with_nothing_left_to_write(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns: list[str] = []
    monkeypatch.setattr(os, "sync", lambda: turns.append("sync"))

    def run(name: str) -> float:
        turns.append(name)
        return 1.0

    in_pairs(lambda: run("broker"), lambda: run("limit"), runs=1, at_rest=True)
    assert turns[::2] == ["sync"] * 4
    assert turns[1::2] == ["broker", "limit", "limit", "broker"]
    in_pairs(lambda: run("broker"), lambda: run("limit"), runs=1)
    assert "sync" not in turns[8:]


def test_a_machine_that_is_slow_for_half_of_the_pairs_changes_no_ratio() -> None:
    pairs = [(80.0, 100.0), (40.0, 50.0)] * (PAIRS // 2)
    row = row_of_pairs("produce", "1 MB", "MB/s", pairs, against="the bare loop")
    assert (row.ratio, row.ratio_low, row.ratio_high, row.spread) == (0.8, 0.8, 0.8, 0.0)
    assert (row.low, row.high) == (40, 80)


def test_a_single_moment_does_not_tell_how_far_many_figures_lie_apart() -> None:
    assert spread_of([100.0] * (PAIRS - 1) + [1_000.0]) == 0
    assert bounds_of([90.0, *[100.0] * 4, *[110.0] * 4]) == (100, 110)


def test_of_few_figures_all_count() -> None:
    assert bounds_of([90.0, 100.0, 130.0]) == (90, 130)
    assert spread_of([90.0, 100.0, 130.0]) == pytest.approx(0.2)


def test_bounds_stand_beside_what_they_are_of() -> None:
    pairs = [(60.0, 100.0), (70.0, 100.0), (80.0, 100.0)]
    paired = row_of_pairs("produce", "1 MB", "MB/s", pairs, against="the bare loop")
    assert str(paired) == "produce, 1 MB: 70 MB/s, 70% (60 to 80) of the bare loop"
    alone = row_of("start", "empty", "s", [0.5, 0.6, 0.7])
    assert str(alone) == "start, empty: 0.6 s ± 17%"


def test_all_that_was_ever_kept_can_be_read() -> None:
    results = newest_first(RESULTS)
    assert len(results) == len(list(RESULTS.glob("*.json")))
    assert all(result.rows or result.profiles for result in results)
