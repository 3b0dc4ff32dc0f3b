"""The page `results/README.md`, as text: what was to be reached, the workloads, the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from benchmarks.harness import LIMIT, aim_of, figure
from benchmarks.matrix.measured import UNITS
from benchmarks.report.kept import Ran, Result, newest_rows
from benchmarks.report.over_time import over_time
from benchmarks.report.profiles import where_time_goes

_COLUMNS: Final = (
    ("bytes", "MB/s"),
    ("requests", "requests/s"),
    ("processor time a request", "µs a request"),
    ("processor time a MB", "ms a MB"),
    ("acknowledged, p50", "p50 ms"),
    ("acknowledged, p99", "p99 ms"),
    ("acknowledged, p99.9", "p99.9 ms"),
    ("delivered, p99", "delivered p99 ms"),
    ("resident memory", "MB"),
)
_CALLS_TOLD: Final = 6
_WORKLOADS_SAY: Final = """\
Throughput and processor time of the brokers at full speed; latency on a schedule at 30 % of that
(with readers at the tail 10 %), from when a request was due. Reading the tail: what the brokers'
processor takes more than for producing alone. What has a limit of the machine beside it is told as
percent of that: the bare loop with requests of that size, or loopback `sendfile`."""


def page(results: Sequence[Result], pictures: Sequence[tuple[str, str]]) -> str:
    """`pictures` are titles and files. Results have the newest first."""
    matrix = next((r for r in results if r.workloads and not r.is_against), None)
    others = next((r for r in results if r.workloads and r.is_against), None)
    parts = [_head(results), _aims(results)]
    parts += [f"![{title}]({name})" for title, name in pictures]
    if matrix is not None:
        parts += [_workloads(matrix), _limits(matrix)]
    if others is not None:
        parts.append(_side_by_side(others))
    parts += [
        where_time_goes(results),
        _calls(results),
        _else(results),
        over_time(results),
        _runs(results),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(results: Sequence[Result]) -> str:
    machine = results[0].machine
    control = machine.get("congestion_control")
    paced = f", TCP by {control} (load, brokers and limits go without)" if control else ""
    return (
        "# Results\n\n"
        "Made by `python -m benchmarks.report` from the files beside it; the method is in\n"
        "[the benchmarks' README](../README.md). Each figure is the median of its runs, and of the "
        "newest run\nthat has it; ± is half of what lay between them, of eight and more between "
        "their\nquartiles. A share of a limit is the median of pairs that were measured in "
        "turn, with the same\nbounds beside it. Load, brokers and limits share the "
        f"machine: {machine['cores']} cores of {machine['cpu']}, {machine['memory']}, "
        f"Linux {machine['kernel']}, Python {machine['python']}{paced}."
    )


def _aims(results: Sequence[Result]) -> str:
    rows = [(row, result) for row, result in newest_rows(results) if row.aim is not None]
    if not rows:
        return ""
    reached = sum(row.reached is True for row, _ in rows)
    lines = [
        f"## Figures to reach: {reached} of {len(rows)} reached",
        "",
        "| | case | figure | of | aim | | commit |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.question} | {row.case} | {row.value_text} | {row.ratio_text} | {aim_of(row)} "
        f"| {'reached' if row.reached else '**missed**'} | {result.commit} |"
        for row, result in rows
    ]
    return "\n".join(lines)


def _workloads(result: Result) -> str:
    lines = [
        f"## Workloads, at {result.commit}",
        "",
        _WORKLOADS_SAY,
        "",
        f"| workload | {' | '.join(title for _, title in _COLUMNS)} | load |",
        f"|---|{'---|' * len(_COLUMNS)}---|",
    ]
    group = None
    for ran in result.workloads:
        if ran.settings["group"] != group:
            group = ran.settings["group"]
            lines.append(f"| **{group}** |{' |' * len(_COLUMNS)} |")
        lines.append(f"| {ran.name} | {' | '.join(_cells(result, ran.name))} | {_load(ran)} |")
    lines += ["", "*load* is what the generators took of a core: near 100 %, they were the limit."]
    return "\n".join(lines)


def _python(result: Result) -> str:
    machine = result.machine
    return ", ".join(filter(None, (machine["python"], machine.get("loop"))))


def _cells(result: Result, case: str) -> Iterator[str]:
    for question, _ in _COLUMNS:
        row = result.value(question, case)
        if row is None:
            yield ""
        elif question == "bytes" and row.ratio is not None:
            yield f"{figure(row.value)} ({row.ratio:.0%})"
        else:
            yield figure(row.value)


def _load(ran: Ran) -> str:
    return f"{max(ran.generator_share):.0%}" if ran.generator_share else ""


def _limits(result: Result) -> str:
    rows = [row for row in result.rows if row.question.startswith(LIMIT)]
    lines = ["## The machine, in the same run", "", "| limit | | |", "|---|---|---|"]
    lines += [
        f"| {row.case} | {row.question.removeprefix(LIMIT)} | {row.value_text} |" for row in rows
    ]
    return "\n".join(lines) if rows else ""


def _side_by_side(result: Result) -> str:
    other = next(ran.target for ran in result.workloads if ran.target != "tidemark")
    lines = [
        f"## Beside {other}, at {result.commit}",
        "",
        "In turn on the same machine, with the same load; latencies at the same rate for both.",
        "",
        f"| workload | | Tidemark | {other} | Tidemark in % of it |",
        "|---|---|---|---|---|",
    ]
    for row in result.rows:
        theirs = result.value(row.question, f"{row.case}, {other}")
        if theirs is not None and row.ratio is not None:
            lines.append(
                f"| {row.case} | {row.question} | {row.value_text} | {theirs.value_text} "
                f"| {row.ratio:.0%} |"
            )
    return "\n".join(lines)


def _calls(results: Sequence[Result]) -> str:
    result = next((result for result in results if result.calls), None)
    if result is None:
        return ""
    lines = [
        f"## System calls a request, at {result.commit}",
        "",
        "Counted by `strace`, which slows the broker down.",
        "",
        "| workload | all | |",
        "|---|---|---|",
    ]
    for name, calls in result.calls.items():
        told = [f"{call} {count:.2f}" for call, count in list(calls.items())[:_CALLS_TOLD]]
        lines.append(f"| {name} | {sum(calls.values()):.2f} | {', '.join(told)} |")
    return "\n".join(lines)


def _else(results: Sequence[Result]) -> str:
    """What has no aim, and is not in the tables above."""
    shown = set(UNITS) | {name for name, _ in _COLUMNS}
    rows = [
        (row, result)
        for row, result in newest_rows(results)
        if row.aim is None
        and row.question not in shown
        and not row.question.startswith((LIMIT, "acknowledged, ", "delivered, "))
    ]
    lines = [
        "## What else was measured",
        "",
        "| | case | figure | of | commit |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.question} | {row.case} | {row.value_text} | {row.ratio_text} | {result.commit} |"
        for row, result in rows
    ]
    return "\n".join(lines) if rows else ""


def _runs(results: Sequence[Result]) -> str:
    lines = [
        "## Runs",
        "",
        "| file | commit | Python, and its loop | load before | asked, and how long it took |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        took = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in result.seconds.items())
        quick = "quick; " if result.is_quick else ""
        lines.append(
            f"| [{result.path.name}]({result.path.name}) | {result.commit} | {_python(result)} "
            f"| {result.machine.get('load', '')} | {quick}{took} |"
        )
    lines += ["", "*its loop* is what three million steps of a loop take: the speed of that day."]
    return "\n".join(lines)
