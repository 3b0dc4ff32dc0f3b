"""Random schedules: safety after every step, and in the end all agree."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.partitions.raft.chaos import Chaos
from tidemark.partitions.raft.marks import collecting


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(15))
def test_a_cluster_stays_safe_and_comes_to_rest(seed: int, size: int) -> None:
    chaos = Chaos(Random(seed), size=size)
    chaos.run(600)
    chaos.calm()


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("seed", range(15))
def test_a_replica_that_lost_what_it_acknowledged_harms_nobody(seed: int, size: int) -> None:
    chaos = Chaos(Random(seed), size=size, is_lossy=True)
    chaos.run(600)
    chaos.calm()


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("seed", range(15))
def test_a_replica_that_forgot_what_it_promised_harms_nobody(seed: int, size: int) -> None:
    chaos = Chaos(Random(seed), size=size, is_damaging=True)
    chaos.run(600)
    chaos.calm()


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    random=st.randoms(use_true_random=False),
    size=st.sampled_from([3, 5]),
    is_lossy=st.booleans(),
    is_damaging=st.booleans(),
)
def test_no_schedule_that_hypothesis_can_find_breaks_it(
    random: Random, size: int, is_lossy: bool, is_damaging: bool
) -> None:
    chaos = Chaos(random, size=size, is_lossy=is_lossy and not is_damaging, is_damaging=is_damaging)
    chaos.run(150)
    chaos.calm()


def test_random_schedules_reach_the_rare_branches() -> None:
    """A green run says nothing of a branch it never took."""
    with collecting() as counts:
        for seed in range(40):
            Chaos(Random(seed), size=3 + 2 * (seed % 2), is_lossy=seed % 3 == 0).run(600)
        for seed in range(20, 30):
            Chaos(Random(seed), size=2, is_damaging=True).run(600)
    assert {
        "truncated",
        "token_taken_back",
        "logs_part",
        "early_arrival_used",
        "early_arrival_dropped",
        "part_of_a_run_held",
        "short_success",
        "stale_vote",
        "stale_answer",
        "stale_request",
        "stale_refusal",
        "late_success",
        "follower_unclean",
        "became_clean",
        "follower_in_doubt",
        "doubt_ended",
        "epoch_for_doubts",
        "vote_refused_for_a_live_leader",
        "hand_over_aborted",
    } <= counts.keys()
