"""`python -m benchmarks`: what was measured is not lost for what went wrong after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks.harness import Row
from benchmarks.questions import Context, Question


def _row(context: Context) -> Iterator[Row]:
    del context
    yield Row(question="produce", case="1 MB", value=1, unit="MB/s")


@pytest.mark.parametrize(
    ("error", "questions", "failure"),
    [
        (KeyboardInterrupt(), 1, "interrupted; not measured, or not to the end: bad, last"),
        (
            BaseExceptionGroup("of a nursery", [KeyboardInterrupt()]),
            1,
            "interrupted; not measured, or not to the end: bad, last",
        ),
        (OSError("no room"), 2, "bad: OSError: no room"),
    ],
)
def test_what_was_measured_before_is_kept(
    error: BaseException,
    questions: int,
    failure: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def fail(context: Context) -> Iterator[Row]:
        yield from _row(context)
        raise error

    asked = {"first": _row, "bad": fail, "last": _row}
    known = {name: Question(measure=measure, minutes=0.1) for name, measure in asked.items()}
    monkeypatch.setattr(command, "QUESTIONS", known)
    monkeypatch.setattr(command, "minutes_of", lambda *_: 0.1)
    monkeypatch.setattr(command, "warm_page_cache", lambda *_: None)
    context = Context(directory=tmp_path, console=Console(quiet=True))
    rows = command._measure(list(known), context)
    assert len(rows) == questions + 1
    assert context.failures == [failure]
