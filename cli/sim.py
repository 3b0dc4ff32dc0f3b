"""`tidemark sim`: whole clusters under simulated faults, from a seed."""

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tidemark.testing.simulator.coverage import PHASES, Coverage
from tidemark.testing.simulator.knobs import TIMED_KINDS
from tidemark.testing.simulator.run import SECONDS, Verdict, simulate
from tidemark.testing.simulator.scenarios import read_scenario, write_scenario

_COLOURS = {
    "fault": "bold red",
    "life": "red",
    "role": "cyan",
    "vote": "magenta",
    "commit": "green",
    "truncate": "yellow",
}


@click.command()
@click.option("--seed", type=int, help="Run this seed alone.")
@click.option("--seeds", type=int, default=100, show_default=True, help="How many to run.")
@click.option("--first", type=int, default=0, show_default=True, help="The first of them.")
@click.option(
    "--seconds", type=float, default=SECONDS, show_default=True, help="Of faults in each run."
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--trace", type=int, is_flag=False, flag_value=200, default=0, metavar="LINES")
@click.option("--scenario", type=click.Path(path_type=Path), help="Run a scenario file again.")
@click.option("--save", type=click.Path(path_type=Path), help="Where failing runs are written.")
def sim(
    seed: int | None,
    seeds: int,
    first: int,
    seconds: float,
    jobs: int,
    trace: int,
    scenario: Path | None,
    save: Path | None,
) -> None:
    """Run clusters under simulated faults, and report what broke.

    The same seed gives the same run, always. Fails if any run has broken a promise.
    """
    console = Console()
    if scenario is not None:
        verdicts = iter([read_scenario(scenario).run(lines_max=trace)])
        count = 1
    elif seed is not None:
        verdicts, count = iter([simulate(seed, seconds=seconds, lines_max=trace)]), 1
    else:
        verdicts, count = _run_all(range(first, first + seeds), seconds, jobs), seeds
    failed = _report(console, verdicts, count, save, trace)
    if failed:
        raise click.ClickException(f"{failed} of {count} runs broke a promise")


def _run_all(seeds: range, seconds: float, jobs: int) -> Iterator[Verdict]:
    if jobs == 1:
        yield from (simulate(seed, seconds=seconds) for seed in seeds)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_run_one, seeds, [seconds] * len(seeds), chunksize=4)


def _run_one(seed: int, seconds: float) -> Verdict:
    return simulate(seed, seconds=seconds)


def _report(
    console: Console, verdicts: Iterator[Verdict], count: int, save: Path | None, trace: int
) -> int:
    coverage, totals, failed = Coverage(), Counter[str](), 0
    with Progress(console=console, disable=count == 1) as progress:
        task = progress.add_task("seeds", total=count)
        for verdict in verdicts:
            coverage.add(verdict.coverage)
            totals.update(events=verdict.events, ms=int(verdict.at * 1000))
            totals.update(cpu_ms=int(verdict.cpu_seconds * 1000))
            if trace:
                _print_trace(console, verdict)
            if not verdict.passed or count == 1:
                _print_verdict(console, verdict)
            if not verdict.passed:
                failed += 1
                if save is not None:
                    write_scenario(save, verdict)
            progress.advance(task)
    if count > 1:
        _print_coverage(console, coverage)
    hours, minutes = totals["ms"] / 3_600_000, max(totals["cpu_ms"], 1) / 60_000
    console.print(
        f"{count} seeds, {failed} failed; {hours:.2f} simulated hours, "
        f"{hours / minutes:.2f} in a minute of CPU, {totals['events']} events"
    )
    return failed


def _print_verdict(console: Console, verdict: Verdict) -> None:
    console.print(f"[bold]seed {verdict.seed}[/bold], digest {verdict.digest}", highlight=False)
    if verdict.passed:
        console.print(f"  kept every promise for {verdict.at:.1f} s", style="green")
        return
    console.print(f"  {verdict.invariant}, at {verdict.at:.3f} s", style="bold red")
    console.print(verdict.what, markup=False, highlight=False)
    console.print(json.dumps(verdict.knobs.to_json()), markup=False, highlight=False)


def _print_trace(console: Console, verdict: Verdict) -> None:
    """One line for each thing that happened, under the broker to which it did."""
    table = Table(box=None)
    table.add_column("time", justify="right")
    nodes = range(verdict.knobs.nodes + 1)
    for node in nodes:
        table.add_column("world" if node == 0 else f"broker {node}")
    for line in verdict.lines:
        cells = [""] * len(nodes)
        cells[line.node] = line.text
        table.add_row(f"{line.time:.4f}", *cells, style=_COLOURS.get(line.topic, ""))
    console.print(table, markup=False)


def _print_coverage(console: Console, coverage: Coverage) -> None:
    """How often each fault met each phase, and what never met."""
    table = Table("fault", *PHASES, box=None)
    for kind in sorted({kind for kind, _ in coverage.cells} | set(TIMED_KINDS)):
        table.add_row(kind, *(str(coverage.cells[kind, phase]) for phase in PHASES))
    console.print(table)
    missing = coverage.missing(TIMED_KINDS)
    never = ", ".join(f"{kind} while {phase}" for kind, phase in missing)
    console.print(f"never: {never or 'nothing'}", highlight=False)
    marks = ", ".join(f"{name} {count}" for name, count in sorted(coverage.marks.items()))
    console.print(f"marks: {marks}", highlight=False)
