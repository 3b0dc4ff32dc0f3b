"""What `tidemark sim` prints: traces, verdicts, the progress, and the report at the end."""

import shutil
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final

import click

from tidemark.cli.output import Form, Json, print_sections
from tidemark.testing.simulator.coverage import PHASES
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.report import Report
from tidemark.testing.simulator.run import Verdict
from tidemark.testing.simulator.trace import Line

if TYPE_CHECKING:
    from rich.status import Status

Echo = Callable[[str], None]

_COLOURS: Final = {
    "fault": "bright_red",
    "life": "red",
    "role": "cyan",
    "vote": "magenta",
    "commit": "green",
    "truncate": "yellow",
}
_TIME_WIDTH: Final = 9
_LANE_WIDTH: Final = 11
_PIPE_WIDTH: Final = 1_000_000
_BAR_WIDTH: Final = 50
_LINE_SECONDS: Final = 30.0
"""How often a line is printed where there is no terminal to draw on."""
_SHORT_PHASES: Final = {
    "idle": "idle",
    "electing": "elec",
    "opening an epoch": "open",
    "replicating": "repl",
    "truncating": "cut",
    "catching up": "near",
    "pausing": "hold",
    "handing over": "hand",
    "reconfiguring": "conf",
    "checkpointing": "ckpt",
    "recovering": "down",
}


def print_trace(verdict: Verdict, echo: Echo) -> None:
    """One line for each thing that happened, in the lane of the broker to which it did."""
    lanes = ["world", *(f"broker {node}" for node in range(1, verdict.knobs.nodes + 1))]
    heads = "".join(f"{lane:<{_LANE_WIDTH}}" for lane in lanes)
    head = f"{'time':>{_TIME_WIDTH}}  {heads}".rstrip()
    width = _width()
    echo("\n".join([head, *(_trace_line(line, width) for line in verdict.lines)]))


def _trace_line(line: Line, width: int) -> str:
    text = line.text.strip() if line.text.startswith(line.topic) else f"{line.topic} {line.text}"
    text = " ".join(text.split())
    if line.node:
        text = f"{line.node}: {text}"
    # What is too long for the rest of the line begins further to the left; its number tells.
    at = min(line.node * _LANE_WIDTH, max(0, width - _TIME_WIDTH - 2 - len(text)))
    styled = click.style(text, fg=_COLOURS.get(line.topic))
    return f"{line.time:{_TIME_WIDTH}.4f}  {' ' * at}{styled}"


def print_pass(verdict: Verdict, echo: Echo) -> None:
    kept = click.style(f"kept every promise for {verdict.at:.1f} s", fg="green")
    twice = ", twice" if verdict.was_repeated else ""
    echo(f"seed {verdict.seed} {kept}{twice}, digest {verdict.digest}")


def print_failure(verdict: Verdict, echo: Echo) -> None:
    """What broke, and in what kind of run."""
    broke = click.style(f"broke: {verdict.invariant}", fg="red", bold=True)
    done = [fault for fault in verdict.tape if fault.at <= verdict.at]
    lines = [
        f"seed {verdict.seed} {broke}, after {verdict.at:.3f} s, digest {verdict.digest}",
        textwrap.indent(verdict.what.rstrip(), "  "),
        _wrapped("  knobs: ", _unusual(verdict.knobs)),
        _wrapped("  faults: ", _counted(Counter(fault.kind for fault in done)) or "none"),
    ]
    echo("\n".join(lines))


def _unusual(knobs: Knobs) -> str:
    """Those that are not at their defaults; how large the cluster is in any case.

    Not which faults could be drawn: they have been.
    """
    said = [f"{knobs.nodes} brokers", f"{knobs.voters} voters", f"{knobs.groups} groups"]
    for knob in fields(Knobs):
        value = getattr(knobs, knob.name)
        is_list = isinstance(value, tuple)
        if value != knob.default and not is_list and knob.name not in ("nodes", "voters", "groups"):
            said.append(f"{knob.name} {value}")
    return ", ".join(said)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def print_report(report: Report) -> None:
    """The sums, what the faults met, and what no run has reached, within 80 columns."""
    counts = report.counts
    sends = ", ".join(
        f"{counts[f'sends {outcome}']} {word}"
        for outcome, word in (("ok", "acknowledged"), ("fail", "refused"), ("info", "unknown"))
    )
    minutes = max(report.cpu_seconds, 1e-3) / 60
    facts: dict[str, Json] = {
        "runs": f"{report.runs}, {len(report.failures)} failed",
        "run twice": f"{report.repeated}, in two processes",
        "simulated": f"{report.hours:.2f} hours, {report.hours / minutes:.2f} in a minute of CPU",
        "events": report.events,
        "elections": counts["leader"],
        "commits": counts["commit"],
        "truncations": counts["truncate"],
        "starts": counts["start"],
        "checkpoints": counts["checkpoint"],
        "sends": f"{sends}; {counts['records sent']} records",
        "polls": f"{counts['polls']}; {counts['records polled']} records",
    }
    print_sections({}, facts, [], Form.TABLE)
    _print_matrix("FAULT", report.faults)
    _print_matrix("AFTER A", report.answers)
    _print_plateau(report)
    never = ", ".join(report.marks_never) or "none"
    click.echo("\n" + _wrapped("MARKS REACHED  ", _counted(report.marks) or "none"))
    click.echo("\n" + _wrapped("MARKS NEVER REACHED  ", never))
    if report.failures:
        click.echo()
    for verdict in report.failures:
        click.echo(f"seed {verdict.seed} broke: {click.style(verdict.invariant, fg='red')}")


def _print_matrix(title: str, rows: Mapping[str, Counter[str]]) -> None:
    """How often in all, and in each phase of the protocol; a dot is never."""
    if not rows:
        return
    heads = "".join(f"{_SHORT_PHASES.get(phase, phase):>5}" for phase in PHASES)
    click.echo(f"\n{title:<14}{'TIMES':>6}{heads.upper()}")
    for name, phases in rows.items():
        cells = "".join(f"{_short(phases[phase]):>5}" for phase in PHASES)
        click.echo(f"{name:<14}{_short(phases.total()):>6}{cells}")


def _print_plateau(report: Report) -> None:
    """How many states of groups were seen, and how many of them each tenth of the runs added."""
    plateau = report.plateau
    if len(plateau) < 2:
        return
    click.echo(f"\n{'STATES':<14}{report.states:>6}  NEW IN EACH TENTH OF THE RUNS")
    most = max(max(plateau), 1)
    for number, count in enumerate(plateau, 1):
        bar = "█" * -(-_BAR_WIDTH * count // most)
        click.echo(f"{f'{number}':<14}{count:>6}  {bar}".rstrip())


def _short(count: int) -> str:
    if not count:
        return "."
    return str(count) if count < 1000 else f"{count // 1000}k"


def _wrapped(title: str, text: str) -> str:
    return textwrap.fill(
        title + text, _width(), subsequent_indent=" " * len(title), break_on_hyphens=False
    )


def _width() -> int:
    """Of the terminal; lines that go into a pipe are not cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH


@dataclass(slots=True)
class Progress:
    """How far the runs are, on standard error: drawn on a terminal, else a line now and then."""

    _report: Report
    _total: int
    _status: "Status | None"
    _started: float = field(default_factory=time.monotonic)
    _said_at: float = field(default_factory=time.monotonic)

    def advance(self) -> None:
        """The report has one run more."""
        if self._status is not None:
            self._status.update(self._text())
        elif self._total > 1 and time.monotonic() - self._said_at >= _LINE_SECONDS:
            self._said_at = time.monotonic()
            click.echo(self._text(), err=True)

    def say(self, what: str) -> None:
        """What else takes time."""
        if self._status is not None:
            self._status.update(what or self._text())

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While something else is printed on the terminal."""
        if self._status is None:
            yield
            return
        self._status.stop()
        try:
            yield
        finally:
            self._status.start()

    def _text(self) -> str:
        report = self._report
        if self._total == 1:
            return "running"
        seconds = max(time.monotonic() - self._started, 1e-3)
        return (
            f"{report.runs} of {self._total} runs, {len(report.failures)} failed; "
            f"{report.hours:.2f} simulated hours, {report.hours / seconds * 60:.2f} a minute, "
            f"{report.runs / seconds:.1f} runs a second"
        )


@contextmanager
def show_progress(report: Report, total: int) -> Iterator[Progress]:
    """Shows how the report grows, until the block ends."""
    if not sys.stderr.isatty():
        yield Progress(report, total, None)
        return
    from rich.console import Console

    with Console(stderr=True).status("") as status:
        progress = Progress(report, total, status)
        progress.advance()
        yield progress
