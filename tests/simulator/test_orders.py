"""Aims that bring about what no seed comes upon: each is drawn, and does what it is for."""

import pytest

from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.run import Verdict, simulate


def first(aim: str, layer: Layer, *, seconds: float) -> tuple[int, Knobs]:
    """The first seed with that aim, and its knobs."""
    drawn = ((seed, draw_knobs(seed, seconds=seconds, layer=layer)) for seed in range(1000))
    return next((seed, knobs) for seed, knobs in drawn if knobs.aim == aim)


def run(aim: str, layer: Layer, *, seconds: float) -> Verdict:
    seed, knobs = first(aim, layer, seconds=seconds)
    verdict = simulate(seed, knobs=knobs)
    assert verdict.passed, f"seed {seed}: {verdict.what}"
    return verdict


def test_logs_begin_anew_behind_who_is_away() -> None:
    marks = run("late resets", Layer.FULL, seconds=15).coverage.marks
    assert marks["observer_reset"] or marks["follower_below_the_log_start"]


def test_replicas_come_back_to_the_group_that_they_left() -> None:
    counts = run("returns", Layer.REPLICAS, seconds=20).coverage.counts
    assert counts["replica forgotten"]
    assert counts["replica joins"]


def test_the_power_fails_while_a_log_is_compacted() -> None:
    counts = run("compactions", Layer.TRANSACTIONS, seconds=10).coverage.counts
    assert counts["compactions"]
    assert counts["compactions struck"]


@pytest.mark.parametrize("aim", ["late resets", "returns", "compactions"])
def test_most_seeds_are_what_they_were(aim: str) -> None:
    layers = {"late resets": Layer.FULL, "returns": Layer.REPLICAS}
    layer = layers.get(aim, Layer.TRANSACTIONS)
    drawn = [draw_knobs(seed, seconds=1, layer=layer).aim for seed in range(300)]
    assert 0 < drawn.count(aim) < 90
