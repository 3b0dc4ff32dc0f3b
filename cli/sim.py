"""`tidemark sim`: whole clusters under simulated faults, from seeds or from scenario files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click

from tidemark.cli.numbers import Real, Whole
from tidemark.cli.output import Form, output_option, print_value
from tidemark.cli.sim_output import (
    Progress,
    print_failure,
    print_pass,
    print_report,
    print_trace,
    show_progress,
)
from tidemark.cli.sim_runs import Run, verdicts_of
from tidemark.testing.simulator import twice
from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.report import Report
from tidemark.testing.simulator.run import SECONDS, Verdict
from tidemark.testing.simulator.scenarios import Scenario, read_scenario
from tidemark.testing.simulator.shrink import RUNS_MAX, Step, shrink

BROKEN: Final = 3
"""The exit status where a run has broken a promise."""
_TRACE_OF_A_FAILURE: Final = 40


class Seeds(click.ParamType):  # type: ignore[type-arg]  # not generic in click 8.2
    """`N` is the first N seeds, `A-B` those from A to B."""

    name = "N|A-B"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        first, dash, last = str(value).partition("-")
        if not str(value).isascii() or not first.isdigit() or (dash and not last.isdigit()):
            self.fail(f"'{value}' is neither a number of seeds nor a range like 1000-1999")
        seeds = range(int(first), int(last) + 1) if dash else range(int(first))
        if not seeds:
            self.fail(f"'{value}' is no seed at all")
        return seeds


@click.command()
@click.argument(
    "files", nargs=-1, type=click.Path(path_type=Path, dir_okay=False), metavar="[FILE]..."
)
@click.option("--seed", type=Whole(0, bits=64), metavar="N", help="Run this seed alone.")
@click.option(
    "--seeds",
    type=Seeds(),
    help="Run the first N seeds, or those from A to B.  [default: 100]",
)
@click.option(
    "--layer",
    type=click.Choice([layer.value for layer in Layer]),
    help="Whole brokers, the consensus core alone, which is many times as fast, whole brokers "
    "whose replicas move, or transactions and groups.  "
    f"[default: {Layer.FULL.value}]",
)
@click.option(
    "--seconds",
    type=Real(0, min_open=True),
    metavar="S",
    help="Simulated seconds of faults in each run.  "
    f"[default: {SECONDS[Layer.FULL]:g}; core {SECONDS[Layer.CORE]:g}]",
)
@click.option(
    "--twice",
    "is_twice",
    is_flag=True,
    help="Run each seed a second time, in another process, and compare the two.  "
    "[default: one seed in a hundred, where there are several]",
)
@click.option("--jobs", type=Whole(1), default=1, show_default=True, help="Processes.")
@click.option("--trace", type=Whole(0, bits=64), metavar="LINES", help="Print what happened last.")
@click.option(
    "--save",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write a scenario file of each failing run there.",
)
@click.option(
    "--shrink",
    "shrinks",
    is_flag=True,
    help="Make each failing run as small as it gets, and write that to a file too.",
)
@output_option
@click.pass_context
def sim(
    ctx: click.Context,
    files: Sequence[Path],
    seed: int | None,
    seeds: range | None,
    layer: str | None,
    seconds: float | None,
    is_twice: bool,
    jobs: int,
    trace: int | None,
    save: Path | None,
    shrinks: bool,
    form: Form,
) -> None:
    """Run clusters under simulated faults, and report what broke.

    A seed gives the same run each time, in every process; where there are many, one in a hundred is
    run twice to see that. A FILE is a run that was written down, knob by knob and fault by fault:
    it stays what it is when the drawing of faults from seeds changes.

    The exit status is 0 if every run has kept every promise, and 3 if one has not.
    """
    if sum((bool(files), seed is not None, seeds is not None)) > 1:
        raise click.UsageError("give FILEs, or --seed, or --seeds")
    if files and layer is not None:
        raise click.UsageError("a FILE says itself of which layer it is; --layer is for seeds")
    if files and seconds is not None:
        raise click.UsageError("a FILE says itself how long it runs; --seconds is for seeds")
    if files and is_twice:
        raise click.UsageError("--twice is for seeds")
    if files:
        runs = _of_files(files)
    else:
        chosen = range(seed, seed + 1) if seed is not None else seeds or range(100)
        chosen_layer = Layer(layer or Layer.FULL)
        length = seconds or SECONDS[chosen_layer]
        are_several = len(chosen) > 1
        runs = [
            Run(
                number,
                length,
                chosen_layer,
                is_twice=is_twice or (are_several and twice.is_due(number)),
            )
            for number in chosen
        ]
    if len(runs) == 1:
        runs[0] = replace(runs[0], lines_max=_TRACE_OF_A_FAILURE if trace is None else trace)
    elif trace is not None:
        raise click.UsageError("--trace is of one run; give --seed or one FILE")
    report = _run_all(ctx, runs, jobs, _Finder(form, save, shrinks, is_traced=trace is not None))
    if report.failures:
        ctx.exit(BROKEN)


def _of_files(files: Sequence[Path]) -> list[Run]:
    runs = []
    for path in files:
        scenario = read_scenario(path)
        for name in scenario.unknown_knobs:
            click.echo(f"{path}: knobs.{name}: there is no such knob any more", err=True)
        runs.append(Run(scenario.seed, 0, Layer.FULL, scenario, str(path)))
    return runs


@dataclass(frozen=True, slots=True)
class _Finder:
    """What is done with each verdict: it is said, and what failed is kept and made smaller."""

    form: Form
    save: Path | None
    shrinks: bool
    is_traced: bool

    def take(self, run: Run, verdict: Verdict, progress: Progress, *, is_alone: bool) -> None:
        def echo(text: str) -> None:
            with progress.paused():
                # What is found is the answer for people; for programs, the report is.
                click.echo(text, err=self.form not in (Form.TABLE, Form.WIDE))

        if is_alone and verdict.lines and (self.is_traced or not verdict.passed):
            print_trace(verdict, echo)
        if not verdict.passed:
            print_failure(verdict, echo)
            self._keep(run, verdict, echo, progress)
        elif is_alone:
            print_pass(verdict, echo)

    def _keep(
        self, run: Run, verdict: Verdict, echo: Callable[[str], None], progress: Progress
    ) -> None:
        echo(f"  again: {run.again(verdict)}")
        if verdict.invariant == twice.INVARIANT:
            return  # no file gives it again: it is not in the knobs, nor in the faults
        scenario = Scenario.of(verdict)
        if run.scenario is not None:
            scenario = replace(scenario, about=run.scenario.about)
        if self.save is not None and run.scenario is None:
            echo(f"  written: {scenario.write(self.save / f'{run.stem}.json')}")
        if not self.shrinks:
            return

        def watch(step: Step) -> None:
            faults = len(step.scenario.tape)
            progress.say(f"shrinking, run {step.runs} of {RUNS_MAX}: {faults} faults left")

        small = shrink(scenario, watch=watch)
        progress.say("")
        path = small.write((self.save or Path()) / f"{run.stem}-small.json")
        verdict = small.run(lines_max=_TRACE_OF_A_FAILURE)
        echo(f"made smaller: {len(scenario.tape)} faults to {len(small.tape)}")
        print_trace(verdict, echo)
        print_failure(verdict, echo)
        echo(f"  written: {path}")


def _run_all(ctx: click.Context, runs: Sequence[Run], jobs: int, finder: _Finder) -> Report:
    report = Report()
    is_alone = len(runs) == 1
    try:
        with show_progress(report, len(runs)) as progress, verdicts_of(runs, jobs) as verdicts:
            for run, verdict in zip(runs, verdicts):
                report.add(verdict)
                finder.take(run, verdict, progress, is_alone=is_alone)
                progress.advance()
    finally:  # Also of what was done until Ctrl-C.
        if finder.form not in (Form.TABLE, Form.WIDE):
            print_value(report.to_json(), finder.form)
        elif not is_alone:
            print_report(report)
    return report
