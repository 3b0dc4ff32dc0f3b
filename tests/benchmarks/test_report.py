"""The page is made of what is kept, and of each figure the newest counts."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.harness import Row
from benchmarks.matrix.measured import Measured
from benchmarks.matrix.workload import WORKLOADS, chosen
from benchmarks.questions import QUESTIONS, Context, asked
from benchmarks.report.kept import newest_first, newest_rows
from benchmarks.report.over_time import over_time
from benchmarks.report.page import page
from benchmarks.report.pictures import save as save_pictures
from tidemark.client.histogram import Histogram

MACHINE = {
    "cpu": "a",
    "cores": "2",
    "memory": "1 GiB",
    "kernel": "6",
    "congestion_control": "bbr",
    "python": "3",
    "loop": "0.20 s",
    "load": "0",
}


def keep(directory: Path, at: str, rows: list[Row], **details: object) -> None:
    document = {
        "machine": MACHINE,
        "commit": f"of-{at}",
        "at": at,
        "rows": [{name: getattr(row, name) for name in Row.__dataclass_fields__} for row in rows],
    }
    (directory / f"{at}.json").write_text(json.dumps({**document, **details}))


def row(value: float, case: str = "1 MB", **others: object) -> Row:
    return Row(**{"question": "produce", "case": case, "unit": "MB/s", "value": value, **others})  # type: ignore[arg-type] # the tests' own rows


def matrix() -> tuple[list[Row], list[dict[str, object]]]:
    rows = list[Row]()
    workloads = list[dict[str, object]]()
    for workload in chosen([], quick=True):
        measured = Measured(workload=workload, rate=100.0)
        for run in range(3):
            measured.note_work(1_000, 16_000_000, 1.0, 0.1 + run / 100)
        latency = Histogram()
        for value in range(1_000, 2_000_000, 9_973):
            latency.record(value)
        measured.latencies = {"acknowledged": [latency, latency], "delivered": [latency]}
        rows += measured.rows(None)
        workloads.append(measured.to_json())
    return rows, workloads


def test_each_run_says_how_fast_its_python_was(tmp_path: Path) -> None:
    keep(tmp_path, "2026-01-01", [row(1)])
    keep(tmp_path, "2025-01-01", [row(1)], machine={**MACHINE, "loop": ""})
    runs = page(newest_first(tmp_path), []).partition("## Runs")[2]
    assert "| of-2026-01-01 | 3, 0.20 s | 0 |" in runs
    assert "| of-2025-01-01 | 3 | 0 |" in runs


def test_of_each_figure_the_newest_counts(tmp_path: Path) -> None:
    keep(tmp_path, "2026-01-01", [row(1), row(2, "16 KB")])
    keep(tmp_path, "2026-01-02", [row(3)])
    found = [(r.case, r.value, result.at) for r, result in newest_rows(newest_first(tmp_path))]
    assert found == [("1 MB", 3, "2026-01-02"), ("16 KB", 2, "2026-01-01")]


def test_the_page_tells_what_was_reached_and_what_was_missed(tmp_path: Path) -> None:
    keep(tmp_path, "a", [row(50, aim=60), row(70, "16 KB", aim=60, spread=0.1), row(1, "plain")])
    text = page(newest_first(tmp_path), [("Aims", "aims.png")])
    assert "TCP by bbr" in text
    assert "## Figures to reach: 1 of 2 reached" in text
    assert "| produce | 1 MB | 50 MB/s |  | ≥ 60 | **missed** | of-a |" in text
    assert "| produce | 16 KB | 70 MB/s ± 10% |  | ≥ 60 | reached | of-a |" in text
    assert "| produce | plain | 1 MB/s |  | of-a |" in text
    assert "![Aims](aims.png)" in text


def test_aims_are_told_from_run_to_run_with_todays_aim(tmp_path: Path) -> None:
    of_limit = {"against": "the loop", "aim": 0.8}
    keep(tmp_path, "1", [row(70, aim=50), row(1, "held to nothing", aim=0.5)])
    keep(tmp_path, "2", [row(50, aim=60), row(2, "held to nothing", ratio=0.7, **of_limit)])
    keep(tmp_path, "3", [row(65, aim=60), row(2, "held to nothing", ratio=0.9, **of_limit)])
    keep(tmp_path, "4", [row(1, "plain")])
    text = over_time(newest_first(tmp_path))
    assert "| aim | of-3 0.20 s | of-2 0.20 s | of-1 0.20 s |" in text
    assert "| produce | 1 MB | ≥ 60 | 65 | **50** | 70 |" in text
    assert "| produce | held to nothing | ≥ 80% | 90% | **70%** |  |" in text
    assert "| **reached** | | | 2 of 2 | 0 of 2 | 1 of 1 |" in text


def look(path: str, broker: str = "leader", **others: object) -> dict[str, object]:
    profile = {
        "path": path,
        "title": f"the path {path}",
        "broker": broker,
        "unit": "request",
        "microseconds": 100.0,
        "loop_microseconds": 90.0,
        "samples": 1_234,
        "steps": {"send": 0.5, "receive": 0.49, "rare": 0.01},
        "calls": {"recv": 1.5, "futex": 0.01},
    }
    return {**profile, **others}


def test_of_each_path_the_newest_look_is_told_with_all_its_brokers(tmp_path: Path) -> None:
    keep(tmp_path, "1", [row(1)], profiles=[look("small", microseconds=200.0), look("large")])
    keep(tmp_path, "2", [], profiles=[look("small"), look("small", "follower")])
    results = newest_first(tmp_path)
    text = page(results, [])
    assert "## Where the time goes\n\nAt of-1, of-2. Micro" in text
    names = "the path small, a request | the path small, a follower, a request | the path large"
    assert f"| µs | {names}, a request |" in text
    assert "| send | 45 | 45 | 45 |" in text
    assert "| all else | 0.9 | 0.9 | 0.9 |" in text
    assert "| **all** | **100** | **100** | **100** |" in text
    assert "| the path large, a request | recv 1.50 |" in text
    pictures = dict(save_pictures(results, tmp_path))
    assert (tmp_path / pictures["Where the time goes"]).stat().st_size < 200_000


def test_who_has_not_looked_has_nothing_to_tell(tmp_path: Path) -> None:
    keep(tmp_path, "1", [row(1)])
    assert "Where the time goes" not in page(newest_first(tmp_path), [])


def test_one_run_is_compared_with_nothing(tmp_path: Path) -> None:
    keep(tmp_path, "1", [row(70, aim=50)])
    assert not over_time(newest_first(tmp_path))


def test_the_page_has_all_workloads_and_pictures_of_them(tmp_path: Path) -> None:
    rows, workloads = matrix()
    keep(tmp_path, "a", [*rows, row(50, aim=60)], workloads=workloads, seconds={"matrix": 100})
    results = newest_first(tmp_path)
    pictures = list(save_pictures(results, tmp_path))
    assert len(pictures) == 4
    assert all((tmp_path / name).stat().st_size < 200_000 for _, name in pictures)
    text = page(results, pictures)
    assert all(
        f"| {workload.name} | 16 | 1,000 | 110 |" in text for workload in chosen([], quick=True)
    )


def test_another_broker_is_shown_beside_ours(tmp_path: Path) -> None:
    measured = Measured(workload=WORKLOADS[0], target="127.0.0.1:1")
    ours = row(6, "base", question="bytes", ratio=2.0, against="127.0.0.1:1")
    theirs = row(3, "base, 127.0.0.1:1", question="bytes")
    keep(tmp_path, "a", [ours, theirs], workloads=[measured.to_json()])
    text = page(newest_first(tmp_path), [])
    assert "| base | bytes | 6 MB/s | 3 MB/s | 200% |" in text


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(ValueError, match=r"other\.json is no result"):
        newest_first(tmp_path)


def test_within_a_budget_what_comes_first_is_asked_and_the_rest_is_named(tmp_path: Path) -> None:
    context = Context(directory=tmp_path, console=Console())
    everything, nothing = asked([], context)
    assert (everything, nothing) == (list(QUESTIONS), [])
    taken, left = asked([], context, budget_minutes=4.0)
    assert taken[0] == "limits"
    assert sorted(taken + left) == sorted(QUESTIONS)
    assert "matrix" in left
    quick = Context(directory=tmp_path, console=Console(), is_quick=True)
    assert asked([], quick)[0] == [name for name, q in QUESTIONS.items() if q.is_quick]
    assert asked(["spark"], context)[0] == ["spark"]
    with pytest.raises(ValueError, match="nonsense"):
        asked(["matrix"], Context(directory=tmp_path, console=Console(), only=["nonsense"]))
