"""A seed that is run a second time, in another process, and what of that is noticed."""

from dataclasses import replace
from pathlib import Path

import pytest

from tidemark.testing.simulator import twice
from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.run import Verdict, simulate
from tidemark.testing.simulator.trace import Trace

_SECONDS = 0.5
_AN_ORDER_OF_STRINGS = """
from tidemark.testing.simulator.trace import Trace

_note = Trace.note

def note(self, time, node, topic, text):
    order = "".join({"one", "two", "three", "four", "five", "six", "seven", "eight"})
    _note(self, time, node, topic, f"{text} {order}" if time > 0.3 else text)

Trace.note = note
"""


def run_twice(layer: Layer = Layer.FULL, lines_max: int = 0) -> Verdict:
    verdict = simulate(3, seconds=_SECONDS, layer=layer, lines_max=twice.LINES_MAX)
    return twice.compared(verdict, seconds=_SECONDS, layer=layer, lines_max=lines_max)


@pytest.mark.parametrize("layer", Layer)
def test_a_seed_of_any_layer_is_the_same_run_in_another_process(layer: Layer) -> None:
    verdict = run_twice(layer)
    assert verdict.passed, verdict.what
    assert verdict.was_repeated


def test_only_the_last_lines_are_kept() -> None:
    verdict = simulate(3, seconds=_SECONDS, lines_max=5)
    again = run_twice(lines_max=5)
    assert again.lines == verdict.lines
    assert run_twice().lines == ()


def test_the_order_of_a_set_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is planted in both processes alike; what strings hash to differs between them."""
    (tmp_path / "sitecustomize.py").write_text(_AN_ORDER_OF_STRINGS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(Trace, "note", Trace.note)  # put back at the end
    exec(_AN_ORDER_OF_STRINGS, {})
    verdict = run_twice()
    assert verdict.invariant == twice.INVARIANT
    lines = verdict.what.splitlines()
    after, here, there = (line.split() for line in lines[1:])
    assert after[0] == "after:"
    assert float(after[1]) <= 0.3 < float(here[1])
    assert here[1:-1] == there[1:-1]
    assert here[-1] != there[-1]


def test_a_second_run_that_does_not_end_well_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nos._exit(7)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    verdict = run_twice()
    assert verdict.invariant == twice.INVARIANT
    assert "status 7" in verdict.what


def test_where_two_accounts_part() -> None:
    assert twice.parted(["a", "b"], ["a", "b"]) == ""
    assert "line 2 on\nafter: a\nhere:  b\nthere: c" in twice.parted(["a", "b"], ["a", "c"])
    assert "line 1 on\nhere:  a\nthere: nothing more" in twice.parted(["a"], [])


def test_another_outcome_of_the_same_lines_is_another_run() -> None:
    verdict = simulate(3, seconds=_SECONDS, lines_max=twice.LINES_MAX)
    broken = replace(verdict, invariant="one leader an epoch")
    found = twice.compared(broken, seconds=_SECONDS, layer=Layer.FULL)
    assert found.invariant == twice.INVARIANT
    assert "here:  broke: one leader an epoch" in found.what


def test_one_seed_in_a_hundred_is_due() -> None:
    assert sum(map(twice.is_due, range(1000, 2000))) == 10
