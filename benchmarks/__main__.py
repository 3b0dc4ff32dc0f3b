"""`python -m benchmarks [QUESTION…]`: measure, show a table, and keep the rows in `results/`.

Without a question, all. `matrix` has a table of workloads, of which `--only` chooses some by name
or group, and `--against HOST:PORT` runs them on whatever broker listens there, in turn with ours.
`python -m benchmarks.report` writes the page and the pictures from what is kept.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from benchmarks.harness import Row, save, show
from benchmarks.machine import machine, warm_page_cache
from benchmarks.questions import QUESTIONS, Context, asked, minutes_of

WARM_BYTES = 2 << 30


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help=", ".join(QUESTIONS))
    parser.add_argument("--no-save", action="store_true", help="only show the table")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter runs")
    parser.add_argument(
        "--budget", type=float, metavar="MINUTES", help="leave out what does not fit"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="workloads; may have * in it"
    )
    parser.add_argument("--against", metavar="HOST:PORT", help="another broker on this machine")
    parser.add_argument("--called", metavar="NAME", help="what that one is, with its version")
    options = parser.parse_args()
    if unknown := set(options.questions) - set(QUESTIONS):
        parser.error(f"no such question: {', '.join(sorted(unknown))}")
    if (options.only or options.against) and options.questions != ["matrix"]:
        parser.error("--only and --against are for the question `matrix`")
    console = Console()
    console.print(machine())
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        context = Context(
            directory=Path(folder),
            console=console,
            only=options.only,
            against=options.against,
            called=options.called,
            is_quick=options.quick,
        )
        try:
            questions, left_out = asked(options.questions, context, budget_minutes=options.budget)
        except ValueError as error:
            parser.error(str(error))
        if left_out:
            console.print(f"no time for: {', '.join(left_out)} (name them to have them)")
        rows = _measure(questions, context)
    show(rows, console)
    if rows and not options.no_save:
        path = save(rows, details=context.details)
        console.print(f"kept in {path}; `python -m benchmarks.report` writes the page anew")
    for failure in context.failures:
        console.print(failure, style="red", soft_wrap=True, markup=False)
    return int(bool(context.failures))


def _measure(questions: list[str], context: Context) -> list[Row]:
    console, rows = context.console, list[Row]()
    took: dict[str, float] = {}
    expected = sum(minutes_of(name, context) for name in questions)
    console.print(f"{len(questions)} questions, about {expected:.0f} min on a quiet machine")
    with console.status("warming the page cache"):
        warm_page_cache(context.directory, WARM_BYTES)
    for number, question in enumerate(questions, 1):
        left = sum(minutes_of(name, context) for name in questions[number - 1 :])
        console.rule(f"{question} ({number} of {len(questions)}, about {left:.0f} min left)")
        began = time.monotonic()
        try:
            for row in QUESTIONS[question].measure(context):
                rows.append(row)
                console.print(f"  {row}", soft_wrap=True, markup=False, highlight=False)
        except Exception as error:  # the others' figures are not lost for it
            context.failures.append(f"{question}: {type(error).__name__}: {error}")
            console.print(context.failures[-1], style="red", soft_wrap=True, markup=False)
        except (KeyboardInterrupt, BaseExceptionGroup):  # nor are those before it
            left_out = ", ".join(questions[number - 1 :])
            context.failures.append(f"interrupted; not measured, or not to the end: {left_out}")
            break
        took[question] = round(time.monotonic() - began, 1)
        console.print(f"  {question} took {took[question]:.0f} s")
    context.details["seconds"] = took
    context.details["quick"] = context.is_quick
    return rows


if __name__ == "__main__":
    sys.exit(main())
