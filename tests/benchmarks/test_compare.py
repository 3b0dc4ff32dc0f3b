"""Two runs are compared by their ratios, and what is within their noise is no change."""

from pathlib import Path

import pytest

from benchmarks.compare import Verdict, changes
from benchmarks.harness import Row, save
from benchmarks.report.kept import read


def row(value: float, **others: object) -> Row:
    return Row(**{"question": "produce", "case": "1 MB", "unit": "MB/s", "value": value, **others})  # type: ignore[arg-type] # the tests' own rows


def verdict(old: Row, new: Row) -> Verdict:
    (change,) = changes([old], [new])
    return change.verdict


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (row(100), row(80), Verdict.SAME),
        (row(100), row(50), Verdict.WORSE),
        (row(100), row(150), Verdict.BETTER),
        (row(100, spread=0.01, runs=3), row(90, spread=0.01, runs=3), Verdict.WORSE),
        (row(100, spread=0.01, runs=3), row(97, spread=0.01, runs=3), Verdict.SAME),
        (row(100, spread=0.0), row(80, spread=0.0), Verdict.SAME),
        (row(100, spread=0.3, runs=3), row(70, spread=0.3, runs=3), Verdict.SAME),
        (row(10, unit="ms"), row(20, unit="ms"), Verdict.WORSE),
        (
            row(10, unit="ms", aim=15, at_most=True),
            row(5, unit="ms", aim=15, at_most=True),
            Verdict.BETTER,
        ),
        (row(10, unit="M rows/s of a core"), row(20, unit="M rows/s of a core"), Verdict.BETTER),
        (row(0, aim=0, at_most=True), row(3, aim=0, at_most=True), Verdict.WORSE),
        (row(3, aim=0, at_most=True), row(0, aim=0, at_most=True), Verdict.BETTER),
        (row(0, aim=0, at_most=True), row(0, aim=0, at_most=True), Verdict.SAME),
        (row(0, unit="collections"), row(0.01, unit="collections"), Verdict.SAME),
    ],
)
def test_a_change_is_one_beyond_the_noise_of_both(old: Row, new: Row, expected: Verdict) -> None:
    assert verdict(old, new) is expected


def test_a_machine_that_was_slow_for_broker_and_limit_alike_is_no_change() -> None:
    assert verdict(row(100, ratio=0.5), row(40, ratio=0.5)) is Verdict.SAME


def test_rows_that_one_run_has_not_are_passed_over() -> None:
    assert changes([row(1)], [row(1, case="16 KB")]) == []


def test_a_result_that_was_kept_is_read_back(tmp_path: Path) -> None:
    rows = [row(1.5, ratio=0.5, aim=0.4, spread=0.02)]
    assert read(save(rows, tmp_path)).rows == rows
