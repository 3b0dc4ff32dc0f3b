"""Random schedules: safety after every step, and in the end all agree."""

import pytest

from tests.partitions.raft.chaos import Chaos


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("seed", range(10))
def test_a_replica_that_lost_what_it_acknowledged_harms_nobody(seed: int, size: int) -> None:
    chaos = Chaos(seed, size=size, is_lossy=True)
    chaos.run(600)
    chaos.calm()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(12))
def test_a_cluster_stays_safe_and_comes_to_rest(seed: int, size: int) -> None:
    chaos = Chaos(seed, size=size)
    chaos.run(600)
    chaos.calm()
