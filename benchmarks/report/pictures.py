"""The pictures of the page: aims, throughput, latencies by percentile, and how costs grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness import Row
from benchmarks.report import profiles
from benchmarks.report.kept import Ran, Result, newest_profiles
from benchmarks.report.over_time import aimed_at, large_runs, of_runs

_REACHED, _MISSED = "#2a9d8f", "#e76f51"
_COLOURS: Final = ("#264653", "#2a9d8f", "#e9c46a", "#f4a261", "#e76f51", "#8d99ae", "#6d597a")
_FAR: Final = 200.0  # percent of an aim; what is beyond it is drawn so long
_DPI: Final = 90
_LABEL_MAX: Final = 115
_CURVES: Final = (
    ("base", "acknowledged"),
    ("100 connections", "acknowledged"),
    ("flush=commit", "acknowledged"),
    ("3 replicas", "acknowledged"),
    ("3 replicas, flush=commit", "acknowledged"),
    ("tail, 1 consumer", "delivered"),
    ("tail, 8 consumers", "delivered"),
)

Draw = Callable[[Figure], None]


def save(results: Sequence[Result], directory: Path) -> Iterator[tuple[str, str]]:
    """Write those that there is something for; gives their titles and files."""
    mpl.use("Agg")
    matrix = next(
        (r for r in results if r.workloads and all(w.target == "tidemark" for w in r.workloads)),
        None,
    )
    aims = list(aimed_at(results).values())
    if aims:
        size = (11.0, 1 + 0.24 * len(aims))
        yield (
            "Figures to reach",
            _drawn(directory, "aims.png", size, lambda figure: _aims(figure, aims, results)),
        )
    looked_at = len(newest_profiles(results))
    if looked_at:
        yield (
            "Where the time goes",
            _drawn(
                directory,
                "where-time-goes.png",
                (11, 2.2 + 0.3 * looked_at),
                lambda figure: profiles.draw(figure, results),
            ),
        )
    if matrix is None:
        return
    pictures: tuple[tuple[str, str, Callable[[Figure, Result], None]], ...] = (
        ("Throughput by workload", "throughput.png", _throughput),
        ("Latency by percentile", "latency.png", _latency),
        ("How costs grow", "scaling.png", _scaling),
    )
    for title, name, draw in pictures:
        size = (9, 1 + 0.24 * len(matrix.workloads)) if draw is _throughput else (9, 4.2)
        yield title, _drawn(directory, name, size, lambda f, draw=draw: draw(f, matrix))  # type: ignore[misc] # bound now


def _drawn(directory: Path, name: str, size: tuple[float, float], draw: Draw) -> str:
    figure = Figure(figsize=size, layout="constrained")
    draw(figure)
    figure.savefig(directory / name, dpi=_DPI)
    return name


def _aims(figure: Figure, rows: Sequence[Row], results: Sequence[Result]) -> None:
    """The newest figure of each as a bar, those of the large runs as dots."""
    axes = figure.subplots()
    runs = large_runs(results)
    for place, row in enumerate(reversed(rows)):
        axes.barh(place, _share(row), color=_REACHED if row.reached else _MISSED)
        shares = [_share(each) for each in of_runs(row, runs) if each is not None]
        axes.plot(shares, [place] * len(shares), ".", color="black", markersize=3)
    labels = [f"{row.question}: {row.case}"[:_LABEL_MAX] for row in reversed(rows)]
    axes.set_yticks(range(len(rows)), labels, fontsize=6)
    axes.axvline(100, color="black", linewidth=1)
    axes.set_xlim(0, _FAR)
    axes.margins(y=0.01)
    axes.set_xlabel("% of the aim: bars of the newest run, dots of all")


def _share(row: Row) -> float:
    """In percent of the aim, as far as it is drawn."""
    assert row.aim is not None
    found = row.value if row.ratio is None else row.ratio
    if not found:
        return _FAR
    return min(100 * (row.aim / found if row.at_most else found / row.aim), _FAR)


def _throughput(figure: Figure, result: Result) -> None:
    """At full speed, and what the same requests are to the machine's own limit."""
    axes = figure.subplots()
    names = [ran.name for ran in result.workloads if result.value("bytes", ran.name)]
    for place, name in enumerate(reversed(names)):
        row = result.value("bytes", name)
        assert row is not None
        low, high = row.low or row.value, row.high or row.value
        axes.barh(
            place,
            row.value,
            xerr=[[row.value - low], [high - row.value]],
            color=_COLOURS[1],
            error_kw={"linewidth": 0.8},
        )
        if row.ratio:
            axes.plot([row.value / row.ratio] * 2, [place - 0.4, place + 0.4], color="black")
    axes.set_yticks(range(len(names)), list(reversed(names)), fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("MB/s (the mark is the bare loop's, or sendfile's, with requests of that size)")


def _latency(figure: Figure, result: Result) -> None:
    axes = figure.subplots()
    runs = {ran.name: ran for ran in result.workloads}
    for colour, (name, what) in zip(_COLOURS, _CURVES, strict=True):
        if name in runs and what in runs[name].latencies:
            _curve(axes, runs[name], what, colour)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ticks = [2, 10, 100, 1_000, 10_000]
    axes.set_xticks(ticks, ["50", "90", "99", "99.9", "99.99"])
    axes.minorticks_off()
    axes.set_xlabel("percentile, from when a request was due")
    axes.set_ylabel("ms")
    axes.legend(fontsize=7)


def _curve(axes: Axes, ran: Ran, what: str, colour: str) -> None:
    points = [
        (1 / (1 - share), value / 1e6) for value, share in ran.latencies[what].curve() if share < 1
    ]
    points = [(x, y) for x, y in points if x >= 1.25]
    rate = "" if ran.rate is None else f", {ran.rate:,.0f}/s"
    axes.plot(
        *zip(*points, strict=True), color=colour, linewidth=1.2, label=f"{ran.name}, {what}{rate}"
    )


def _scaling(figure: Figure, result: Result) -> None:
    """Of the processor's time, so that what load takes of the machine does not count."""
    axes = figure.subplots(1, 3)
    for place, (key, title, group) in enumerate(
        (
            ("partitions", "partitions", "partitions"),
            ("connections", "connections", "connections"),
            ("consumers", "consumers of a tail", "fan-out"),
        )
    ):
        question = "processor time a MB" if group == "fan-out" else "processor time a request"
        named = {group} if group == "fan-out" else {group, "base"}
        found = (
            (int(ran.settings[key]), row)
            for ran in result.workloads
            if ran.settings["group"] in named and (row := result.value(question, ran.name))
        )
        rows = sorted(found, key=lambda entry: entry[0])
        axes[place].set_title(title, fontsize=9)
        axes[place].set_xscale("log")
        axes[place].set_ylabel(f"{rows[0][1].unit} of processor {question[15:]}" if rows else "")
        if not rows:
            continue
        values = [row.value for _, row in rows]
        below = [row.value - (row.low or row.value) for _, row in rows]
        above = [(row.high or row.value) - row.value for _, row in rows]
        axes[place].errorbar(
            [count for count, _ in rows], values, yerr=[below, above], marker="o", color=_COLOURS[1]
        )
        axes[place].set_ylim(0, 1.2 * max(row.high or row.value for _, row in rows))
        axes[place].set_xticks([count for count, _ in rows], [f"{count:,}" for count, _ in rows])
        axes[place].minorticks_off()
