"""Scenario files: a run that is read is the run that was written, and nonsense is named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidemark.testing.simulator.run import Verdict, simulate
from tidemark.testing.simulator.scenarios import MalformedScenario, Scenario, read_scenario


@pytest.fixture(scope="module")
def verdict() -> Verdict:
    """Of a run with faults of both kinds: at drawn times, and after moments."""
    found = next(v for v in (simulate(seed, seconds=4) for seed in range(20)) if _is_telling(v))
    assert found.passed
    return found


def _is_telling(verdict: Verdict) -> bool:
    kinds = {bool(fault.why) for fault in verdict.tape}
    return kinds == {True, False} and any(fault.links for fault in verdict.tape)


def test_a_scenario_is_read_as_it_was_written(verdict: Verdict, tmp_path: Path) -> None:
    scenario = Scenario.of(verdict)
    assert read_scenario(scenario.write(tmp_path / "new" / "s.json")) == scenario


def test_a_scenario_from_a_file_is_the_very_same_run(verdict: Verdict, tmp_path: Path) -> None:
    path = Scenario.of(verdict).write(tmp_path / "s.json")
    assert read_scenario(path).run().digest == verdict.digest


def test_every_knob_and_every_fault_is_in_the_file(verdict: Verdict, tmp_path: Path) -> None:
    """So what is drawn from the seed later does not change the run."""
    written = json.loads(Scenario.of(verdict).write(tmp_path / "s.json").read_text())
    assert written["knobs"] == json.loads(json.dumps(verdict.knobs.to_json()))
    assert len(written["tape"]) == len(verdict.tape)


def test_why_it_was_kept_is_in_the_file(tmp_path: Path, verdict: Verdict) -> None:
    scenario = Scenario(
        seed=1, knobs=verdict.knobs, tape=(), invariant="lost-write", what="gone", about="A tale."
    )
    assert read_scenario(scenario.write(tmp_path / "s.json")) == scenario


def test_a_knob_that_is_no_more_is_told_and_left_out(verdict: Verdict, tmp_path: Path) -> None:
    path = _changed(verdict, tmp_path, lambda values: values["knobs"].update(whim=3))
    scenario = read_scenario(path)
    assert scenario.unknown_knobs == ("whim",)
    assert scenario.knobs == verdict.knobs


def test_a_knob_that_the_file_does_not_know_has_its_default(
    verdict: Verdict, tmp_path: Path
) -> None:
    path = _changed(verdict, tmp_path, lambda values: values.update(knobs={}, tape=[]))
    assert read_scenario(path).knobs.nodes == 3


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("seed", "seven", 'seed: "seven", and must be a number'),
        ("seed", True, "seed: true, and must be a number"),
        ("sead", 7, "sead: no such field"),
        ("knobs", [], "knobs: [], and must be an object"),
        ("knobs.nodes", 2.5, "knobs.nodes: 2.5, and must be a number"),
        ("knobs.nodes", 0, "knobs.nodes: 0, and must be more than 0"),
        ("knobs.voters", 9, "knobs.voters: 9, of "),
        ("knobs.loss", -0.1, "knobs.loss: -0.1, and must be 0 or more"),
        ("knobs.loss", 1.5, "knobs.loss: 1.5, and must be at most 1"),
        ("knobs.seconds", float("nan"), "knobs.seconds: nan is no number"),
        ("knobs.in_order", 1, "knobs.in_order: 1, and must be true or false"),
        ("knobs.triggers", "vote", 'knobs.triggers: "vote", and must be a list'),
        ("tape", {}, "tape: {}, and must be a list"),
        ("tape.0", "kill", 'tape[0]: "kill", and must be an object'),
        ("tape.0.kind", "kil", "tape[0].kind: no fault 'kil'; there are kill, power"),
        ("tape.0.at", "soon", 'tape[0].at: "soon", and must be a number'),
        ("tape.0.at", -1, "tape[0].at: -1, and must be 0 or more"),
        ("tape.0.when", 3, "tape[0].when: no such field"),
        ("tape.0.links", [[1, 1]], "tape[0].links: [1, 1] is not two of the brokers 1 to "),
        ("tape.0.links", [[1, 99]], "tape[0].links: [1, 99] is not two of the brokers 1 to "),
        ("tape.0.links", [3], "tape[0].links: 3 is not two of the brokers 1 to "),
    ],
)
def test_nonsense_is_named_by_its_field(
    verdict: Verdict, tmp_path: Path, field: str, value: object, why: str
) -> None:
    def change(values: Any) -> None:  # Any: JSON
        *way, last = [int(part) if part.isdigit() else part for part in field.split(".")]
        for part in way:
            values = values[part]
        values[last] = value

    path = _changed(verdict, tmp_path, change)
    with pytest.raises(MalformedScenario) as caught:
        read_scenario(path)
    assert str(caught.value).startswith(f"{path}: {why}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", ["seed", "knobs", "tape"])
def test_what_is_missing_is_named(verdict: Verdict, tmp_path: Path, field: str) -> None:
    path = _changed(verdict, tmp_path, lambda values: values.pop(field))
    with pytest.raises(MalformedScenario, match=f"{field}: missing"):
        read_scenario(path)


@pytest.mark.parametrize("field", ["at", "kind"])
def test_what_a_fault_lacks_is_named(verdict: Verdict, tmp_path: Path, field: str) -> None:
    path = _changed(verdict, tmp_path, lambda values: values["tape"][1].pop(field))
    with pytest.raises(MalformedScenario, match=rf"tape\[1\].{field}: missing"):
        read_scenario(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"7"])
def test_a_file_that_holds_no_scenario_at_all_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    with pytest.raises(MalformedScenario, match=r"s\.json"):
        read_scenario(path)


def _changed(verdict: Verdict, tmp_path: Path, change: Callable[[Any], object]) -> Path:
    path = Scenario.of(verdict).write(tmp_path / "s.json")
    values = json.loads(path.read_text())  # Any: JSON
    change(values)
    path.write_text(json.dumps(values))
    return path
