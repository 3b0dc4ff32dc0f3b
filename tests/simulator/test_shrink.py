"""Failing runs become small, and stay the same failure."""

from dataclasses import replace

import pytest

from tests.simulator.planted import INVARIANT, plant
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.scenarios import Scenario
from tidemark.testing.simulator.shrink import Step, shrink

_HARMLESS = [
    Fault(at=0.2 + number / 10, kind=kind, node=1 + number % 3, seconds=0.1, amount=0.3)
    for number, kind in enumerate(["pause", "clock jump", "slow disk", "kill", "checkpoint"] * 2)
]
_POWER = Fault(at=2.5, kind="power", node=2, seconds=0.5)
_KNOBS = Knobs(seconds=4, nodes=3, groups=2, producers=2, jitter=0.002, segment_bytes=2000)


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)


def failing() -> Scenario:
    """A run in which one fault of many matters."""
    scenario = Scenario(seed=7, knobs=_KNOBS, tape=(*_HARMLESS, _POWER))
    verdict = scenario.run()
    assert verdict.invariant == INVARIANT
    return scenario


def test_only_the_faults_that_matter_are_left() -> None:
    small = shrink(failing())
    assert [fault.kind for fault in small.tape] == ["power"]
    assert small.run().invariant == INVARIANT == small.invariant


def test_what_is_left_is_simple_too() -> None:
    small = shrink(failing())
    assert small.knobs.nodes == 1
    assert small.knobs.groups == 1
    assert small.knobs.seconds < 3
    assert small.knobs.jitter == Knobs().jitter


def test_a_run_that_fails_for_another_reason_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its only harmless fault, this run would fail too, but otherwise."""
    scenario = failing()

    def run(self: Scenario, *, lines_max: int = 0) -> object:
        verdict = simulate(self.seed, knobs=self.knobs, script=self.tape, lines_max=lines_max)
        is_whole = any(fault.kind == "kill" for fault in self.tape)
        return verdict if is_whole else replace(verdict, invariant="something else")

    monkeypatch.setattr(Scenario, "run", run)
    assert {"kill", "power"} == {fault.kind for fault in shrink(scenario).tape}


def test_a_run_that_keeps_every_promise_comes_back_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    scenario = Scenario(seed=7, knobs=replace(_KNOBS, seconds=1), tape=tuple(_HARMLESS))
    assert shrink(scenario) == scenario


def test_no_more_runs_are_made_than_allowed() -> None:
    steps: list[Step] = []
    small = shrink(failing(), runs_max=5, watch=steps.append)
    assert len(steps) == 5
    assert small.run().invariant == INVARIANT


def test_a_failure_that_needs_no_fault_keeps_none() -> None:
    scenario = Scenario(seed=7, knobs=replace(_KNOBS, seconds=0.5), tape=(_POWER, *_HARMLESS))
    without = replace(scenario, knobs=replace(scenario.knobs, seconds=1), tape=())
    assert shrink(without).tape == ()
