"""Short runs of some seeds: those of `make simulate` are longer, and many more."""

import pytest

from tidemark.testing.simulator.run import simulate


@pytest.mark.parametrize("seed", range(100))
def test_a_short_run_keeps_every_promise(seed: int) -> None:
    verdict = simulate(seed, seconds=3)
    assert verdict.passed, f"seed {seed}: {verdict.what}"
