"""`tidemark sim`, on seeds that are short."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner, Result

from tests.simulator.planted import INVARIANT, plant
from tidemark.cli import sim as command
from tidemark.cli import sim_runs
from tidemark.cli.main import run
from tidemark.cli.sim import sim
from tidemark.cli.sim_output import _trace_line
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.run import Verdict, simulate
from tidemark.testing.simulator.scenarios import Scenario, read_scenario
from tidemark.testing.simulator.trace import Line, Trace

KNOBS = Knobs(seconds=2, nodes=1, voters=1, groups=1)
SLOW = Fault(at=0.5, kind="slow disk", node=1, seconds=0.1, amount=0.1)
POWER = Fault(at=1.5, kind="power", node=1, seconds=0.1)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(sim, arguments)


def output(*arguments: str) -> str:
    done = invoke(*arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def failing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario that fails for as long as the test lasts."""
    plant(monkeypatch)
    scenario = Scenario(seed=7, knobs=KNOBS, tape=(SLOW, POWER), about="Planted.")
    return scenario.write(tmp_path / "planted.json")


@pytest.fixture
def failing_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every seed but 3 fails."""
    plant(monkeypatch)

    def fail(seed: int, *, seconds: float, layer: Layer, lines_max: int = 0) -> Verdict:
        tape = () if seed == 3 else (SLOW, POWER)
        return simulate(seed, knobs=KNOBS, script=tape, lines_max=lines_max)

    monkeypatch.setattr(sim_runs, "simulate", fail)


def test_one_seed_tells_its_digest() -> None:
    said = output("--seed", "3", "--seconds", "1")
    assert said.startswith("seed 3 kept every promise for ")
    assert simulate(3, seconds=1).digest in said


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_seeds_end_in_a_report(jobs: str) -> None:
    said = output("--seeds", "3-4", "--seconds", "1", "--jobs", jobs)
    assert "RUNS         2, 0 failed\n" in said
    assert f"{simulate(3, seconds=1).events + simulate(4, seconds=1).events}" in said


def test_a_number_of_seeds_begins_at_zero() -> None:
    assert "RUNS         2, 0 failed\n" in output("--seeds", "2", "--seconds", "0.5")
    assert command.Seeds()("2") == range(2)
    assert command.Seeds()("7-9") == range(7, 10)


def test_the_report_says_what_was_done_and_what_never_was() -> None:
    report = json.loads(output("--seeds", "3-8", "--seconds", "3", "-o", "json"))
    assert report["runs"] == 6
    assert report["failures"] == []
    done = {kind: row["count"] for kind, row in report["faults"].items()}
    assert sum(done.values()) > 0
    assert 0 in done.values()
    for row in (*report["faults"].values(), *report["answers"].values()):
        assert row.pop("count") == sum(row.values())
    assert report["counts"]["leader"] > 0
    assert report["counts"]["sends ok"] > 0
    assert "two_leaders_in_an_epoch" in report["marks_never"]
    assert not report["marks"].keys() & set(report["marks_never"])


def test_the_report_draws_how_much_was_new() -> None:
    said = output("--seeds", "3-5", "--seconds", "1")
    title, *bars = said[said.index("STATES ") :].splitlines()[:4]
    assert title.endswith("NEW IN EACH TENTH OF THE RUNS")
    counts = [int(bar.split()[1]) for bar in bars]
    assert sum(counts) == int(title.split()[1]) > 0
    assert max(bar.count("█") for bar in bars) == 50
    report = json.loads(output("--seeds", "3-5", "--seconds", "1", "-o", "json"))
    assert report["new_states"] == counts


def test_the_tables_fit_a_terminal() -> None:
    said = output("--seeds", "3-4", "--seconds", "2")
    tables = [line for line in said.splitlines() if not line.startswith("MARKS")]
    assert max(map(len, tables)) <= 80


def test_a_failing_run_says_what_broke_and_how_to_see_it_again(failing: Path) -> None:
    done = invoke(str(failing))
    assert done.exit_code == 3
    assert f"seed 7 broke: {INVARIANT}" in done.stdout
    assert "faults: power 1, slow disk 1" in done.stdout
    assert f"again: tidemark sim {failing}" in done.stdout
    assert "1: fault power 1 for 0.10 s" in done.stdout  # the trace


def test_a_failing_run_is_the_same_each_time(failing: Path) -> None:
    assert invoke(str(failing)).stdout == invoke(str(failing)).stdout


def test_a_trace_is_as_long_as_was_asked(failing: Path) -> None:
    lines = invoke(str(failing), "--trace", "3").stdout.splitlines()
    assert lines[0].split() == ["time", "world", "broker", "1"]
    assert lines[4].startswith("seed 7 broke")


def test_a_trace_has_a_lane_for_each_broker() -> None:
    said = output("--seed", "3", "--seconds", "1", "--trace", "5")
    assert "world      broker 1   broker 2   broker 3" in said


def test_a_line_that_is_too_long_for_its_lane_begins_before_it() -> None:
    line = Line(1.5, 3, "commit", "words-0 7@3")
    assert unstyle(_trace_line(line, 1000)).endswith(f"  {' ' * 33}3: commit words-0 7@3")
    assert len(unstyle(_trace_line(line, 40))) == 40


def test_one_of_many_seeds_is_run_twice() -> None:
    said = output("--seeds", "99-101", "--seconds", "0.5")
    assert "RUN TWICE    1, in two processes\n" in said
    assert "twice" not in output("--seed", "100", "--seconds", "0.5")


def test_a_seed_is_run_twice_where_that_is_asked_for() -> None:
    assert "s, twice, digest" in output("--seed", "3", "--seconds", "0.5", "--twice")
    report = json.loads(output("--seeds", "3-4", "--seconds", "0.5", "--twice", "-o", "json"))
    assert report["repeated"] == 2


def test_two_runs_of_a_seed_that_part_are_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    note = Trace.note

    def note_who_runs(self: Trace, time: float, node: int, topic: str, text: str) -> None:
        note(self, time, node, topic, f"{text} in {os.getpid()}")

    monkeypatch.setattr(Trace, "note", note_who_runs)
    arguments = ("--seed", "3", "--seconds", "0.5", "--twice")
    done = invoke(*arguments, "--save", str(tmp_path / "new"), "--shrink")
    assert done.exit_code == 3
    assert "seed 3 broke: a seed gives the same run" in done.stdout
    assert f"again: tidemark sim {' '.join(arguments)}\n" in done.stdout
    assert not (tmp_path / "new").exists()


def test_failing_seeds_become_files(failing_seeds: None, tmp_path: Path) -> None:
    done = invoke("--seeds", "2-4", "--save", str(tmp_path / "new"))
    assert done.exit_code == 3
    assert "RUNS         3, 2 failed" in done.stdout
    assert done.stdout.endswith(f"seed 2 broke: {INVARIANT}\nseed 4 broke: {INVARIANT}\n")
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["seed-2.json", "seed-4.json"]
    scenario = read_scenario(tmp_path / "new" / "seed-2.json")
    assert scenario.invariant == scenario.run().invariant == INVARIANT


def test_a_failing_seed_is_named_with_the_seconds_that_it_needs(failing_seeds: None) -> None:
    assert "again: tidemark sim --seed 2\n" in invoke("--seed", "2").stdout
    said = invoke("--seed", "2", "--seconds", "7").stdout
    assert "again: tidemark sim --seed 2 --seconds 7\n" in said


def test_a_failing_run_is_made_smaller(failing: Path, tmp_path: Path) -> None:
    done = invoke(str(failing), "--shrink", "--save", str(tmp_path))
    assert "made smaller: 2 faults to 1" in done.stdout
    small = read_scenario(tmp_path / "planted-small.json")
    assert [fault.kind for fault in small.tape] == ["power"]
    assert small.about == "Planted."
    assert invoke(str(tmp_path / "planted-small.json")).exit_code == 3


def test_a_program_gets_nothing_but_the_report(failing: Path) -> None:
    done = invoke(str(failing), "-o", "json")
    (failure,) = json.loads(done.stdout)["failures"]
    assert failure["invariant"] == INVARIANT
    assert "broke" in done.stderr


def test_several_files_are_run_together(failing: Path, tmp_path: Path) -> None:
    fine = Scenario(seed=3, knobs=replace(KNOBS, seconds=1), tape=()).write(tmp_path / "fine.json")
    done = invoke(str(fine), str(failing))
    assert done.exit_code == 3
    assert "RUNS         2, 1 failed" in done.stdout


def test_a_knob_that_is_no_more_is_told(tmp_path: Path) -> None:
    path = Scenario(seed=3, knobs=replace(KNOBS, seconds=1), tape=()).write(tmp_path / "old.json")
    values = json.loads(path.read_text())
    values["knobs"]["whim"] = 3
    path.write_text(json.dumps(values))
    done = invoke(str(path))
    assert done.exit_code == 0
    assert done.stderr == f"{path}: knobs.whim: there is no such knob any more\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--seeds", "0"], "'0' is no seed at all"),
        (["--seeds", "9-8"], "'9-8' is no seed at all"),
        (["--seeds", "-3"], "'-3' is neither a number of seeds nor a range"),
        (["--seeds", "many"], "'many' is neither a number of seeds nor a range"),
        (["--seeds", "1-²"], "'1-²' is neither a number of seeds nor a range"),
        (["--seed", "-1"], "-1 is not in the range"),
        (["--seconds", "-1"], "-1.0 is not in the range"),
        (["--seconds", "0"], "0.0 is not in the range"),
        (["--seconds", "nan"], "nan is not in the range"),
        (["--jobs", "0"], "0 is not in the range"),
        (["--seed", "1", "--seeds", "2"], "give FILEs, or --seed, or --seeds"),
        (["a.json", "--seed", "1"], "give FILEs, or --seed, or --seeds"),
        (["a.json", "--seconds", "1"], "a FILE says itself how long it runs"),
        (["a.json", "--twice"], "--twice is for seeds"),
        (["--seeds", "2", "--trace", "9"], "--trace is of one run"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["sim", *arguments]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda _: None, "s.json: No such file or directory"),
        (lambda path: path.write_text("{"), "s.json: not JSON: "),
        (lambda path: path.write_text('{"seed": 1, "tape": []}'), "s.json: knobs: missing"),
    ],
)
def test_a_bad_file_is_named_in_one_line(
    tmp_path: Path,
    make: Callable[[Path], object],
    why: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    make(tmp_path / "s.json")
    assert run(["sim", str(tmp_path / "s.json")]) == 1
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_ends_in_the_report_of_what_was_done(jobs: str) -> None:
    arguments = ["sim", "--seeds", "100000", "--seconds", "0.3", "--jobs", jobs]
    code = (
        "import sys; from tidemark.cli import sim_output; sim_output._LINE_SECONDS = 0;"
        f"from tidemark.cli.main import run; sys.exit(run({arguments!r}))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "80"},
        start_new_session=True,
    )
    assert process.stderr is not None
    assert " of 100000 runs, 0 failed; " in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does, to the jobs too
    said, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "0 failed" in said
    assert "Traceback" not in errors
