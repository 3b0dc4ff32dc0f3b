"""The picture that a run leaves: what was reached of each aim, and the clients side by side."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.harness import Row

_REACHED, _MISSED, _PLAIN = "#2a9d8f", "#e76f51", "#8d99ae"


def save(rows: Sequence[Row], path: Path) -> None:
    """Write a PNG of `rows` to `path`."""
    mpl.use("Agg")
    ratios = [row for row in rows if row.ratio is not None]
    clients = [row for row in rows if row.question.startswith(("tidemark.client", "librdkafka"))]
    figure = Figure(
        figsize=(11, 3 + 0.35 * len(ratios) + 0.22 * len(clients)), layout="constrained"
    )
    heights = [max(1, len(ratios)), max(1, len(clients) / 2)]
    upper, lower = figure.subplots(2, 1, height_ratios=heights)
    _ratios(upper, ratios)
    _clients(lower, clients)
    figure.savefig(path, dpi=110)


def _ratios(axes: Axes, rows: Sequence[Row]) -> None:
    axes.set_title("Of what this machine can do (the line is the aim)")
    for position, row in enumerate(reversed(rows)):
        assert row.ratio is not None
        colour = {None: _PLAIN, True: _REACHED, False: _MISSED}[row.reached]
        axes.barh(position, row.ratio * 100, color=colour)
        if row.aim is not None:
            axes.plot([row.aim * 100] * 2, [position - 0.4, position + 0.4], color="black")
    axes.set_yticks(range(len(rows)), [f"{row.question}: {row.case}" for row in reversed(rows)])
    axes.set_xlabel("% of the limit measured in the same run")


def _clients(axes: Axes, rows: Sequence[Row]) -> None:
    axes.set_title("Through client libraries")
    questions = sorted({row.question for row in rows})
    cases = list(dict.fromkeys(row.case for row in rows))
    height = 0.8 / max(1, len(questions))
    for number, question in enumerate(questions):
        found = {row.case: row.value / 1e6 for row in rows if row.question == question}
        positions = [index + number * height for index in range(len(cases))]
        axes.barh(positions, [found.get(case, 0) for case in cases], height, label=question)
    axes.set_yticks([index + 0.3 for index in range(len(cases))], cases, fontsize=7)
    axes.set_xlabel("million records a second")
    axes.invert_yaxis()
    if questions:
        axes.legend(fontsize=8)
