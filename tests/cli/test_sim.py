"""`tidemark sim`, on seeds that are short."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tidemark.cli.sim import sim
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.scenarios import write_scenario


def _run(*arguments: str) -> str:
    done = CliRunner().invoke(sim, arguments)
    assert done.exit_code == 0, done.output
    return done.output


def test_one_seed_tells_its_digest() -> None:
    assert simulate(3, seconds=1).digest in _run("--seed", "3", "--seconds", "1")


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_many_seeds_end_in_a_sum(jobs: str) -> None:
    output = _run("--first", "3", "--seeds", "2", "--seconds", "1", "--jobs", jobs)
    assert "2 seeds, 0 failed" in output


def test_a_trace_has_a_column_for_each_broker() -> None:
    output = _run("--seed", "3", "--seconds", "1", "--trace", "5")
    assert "broker 1" in output


def test_a_scenario_is_run_again(tmp_path: Path) -> None:
    path = write_scenario(tmp_path, simulate(3, seconds=1))
    assert json.loads(path.read_text())["seed"] == 3
    assert "kept every promise" in _run("--scenario", str(path))
