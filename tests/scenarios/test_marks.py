"""No rare branch of the core is left to chance: for each there is a scenario that comes into it."""

import importlib

import pytest

from tests.scenarios.marks import REACHED
from tidemark.testing.simulator.known_marks import known_marks


def test_each_mark_has_a_scenario() -> None:
    assert frozenset[str]().union(*REACHED.values()) == known_marks()


@pytest.mark.parametrize(("module", "test"), list(REACHED))
def test_each_of_these_scenarios_is_there(module: str, test: str) -> None:
    assert hasattr(importlib.import_module(f"tests.scenarios.{module}"), test)
