"""Bugs that the simulator found, each as the run that showed it.

A file holds all that was drawn then, so it stays what it is when seeds come to mean other runs.
`tests/mutations/found.py` puts the bugs back, and these have to fail.
"""

from pathlib import Path

import pytest

from tidemark.testing.simulator.scenarios import read_scenario

FOUND = sorted((Path(__file__).parent / "found").glob("*.json"))


def test_there_are_some() -> None:
    assert FOUND


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_it_stays_mended(path: Path) -> None:
    verdict = read_scenario(path).run()
    assert verdict.passed, verdict.what


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_it_says_what_it_was(path: Path) -> None:
    scenario = read_scenario(path)
    assert scenario.about
    assert scenario.invariant
