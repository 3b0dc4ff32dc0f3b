"""Replicas that are wished elsewhere, under faults: they come, vote, go, and are forgotten."""

import pytest

from tidemark.partitions.replication.reassigning import Reassignments, ReplicaWish
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.hosting import Hosting
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.run import Verdict, simulate

KNOBS = Knobs(
    nodes=5,
    voters=3,
    seconds=8.0,
    groups=1,
    producers=2,
    send_interval=0.05,
    moves_replicas=True,
)
WISHES = [
    Fault(at=1.0 + 2 * number, kind="move replicas", amount=0.9, node=number + 1)
    for number in range(3)
]


def moved(seed: int = 3) -> Verdict:
    return simulate(seed, knobs=KNOBS, script=WISHES)


def test_wishes_come_true_and_what_left_is_forgotten() -> None:
    verdict = moved()
    counts = verdict.coverage.counts
    assert verdict.passed, verdict.what
    assert counts["replicas struck"] >= 2
    assert counts["replica joins"]
    assert counts["replica forgotten"]
    assert counts["sends ok"] > 100


def test_a_wish_that_is_struck_too_early_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_that_is_wished(self: Reassignments) -> list[tuple[PartitionKey, ReplicaWish]]:
        return [(key, job.wish) for key, job in self._jobs.items()]

    monkeypatch.setattr(Reassignments, "done", all_that_is_wished)
    assert moved().invariant == "a wish that is struck has come true"


def test_a_wish_that_nobody_carries_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reassignments, "look", lambda self, now: None)
    verdict = moved()
    assert verdict.invariant == "a healed core does its work"
    assert "still wished" in verdict.what


def test_a_replica_that_nobody_gives_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hosting, "_give_up", lambda self, group: None)
    verdict = moved()
    assert verdict.invariant == "a healed core does its work"
    assert "lies on" in verdict.what


def test_a_seed_of_that_layer_is_the_same_run_again_from_its_tape() -> None:
    drawn = simulate(4, seconds=4, layer=Layer.REPLICAS)
    again = simulate(4, knobs=drawn.knobs, script=drawn.tape)
    assert drawn.knobs.moves_replicas
    assert (again.at, again.invariant, again.events) == (drawn.at, drawn.invariant, drawn.events)
