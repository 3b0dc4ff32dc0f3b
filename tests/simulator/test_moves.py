"""Leaders that are wished elsewhere, under faults: what clients wait for, and what judges see."""

import pytest

from tidemark.partitions.replication.appending import AppendingReplica
from tidemark.partitions.replication.moves import Moves
from tidemark.testing.simulator import run
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.run import Verdict, simulate

KNOBS = Knobs(seconds=4.0, groups=1, producers=2, send_interval=0.02, sync_seconds=0.02)
WISHES = [
    Fault(at=1.0 + number, kind="move leader", amount=amount, seconds=0.5)
    for number, amount in enumerate((0.1, 0.5, 0.9))
]


def moved(seed: int = 3, **knobs: float) -> Verdict:
    return simulate(seed, knobs=KNOBS, script=WISHES)


def test_a_wish_comes_true_and_what_was_held_is_answered() -> None:
    verdict = moved()
    counts = verdict.coverage.counts
    assert verdict.passed, verdict.what
    assert counts["moves done"] >= 2
    assert counts["hold"]
    assert counts["sends ok"] > 100


def test_writes_that_are_held_for_ever_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AppendingReplica, "resume_writes", lambda self: None)
    assert moved().invariant in ("writes are not held for long", "a healed core does its work")


def test_a_move_that_never_gives_up_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moves, "_hand_over_when_quiet", lambda self, move, now: None)
    monkeypatch.setattr(Moves, "_give_up_attempt", lambda self, move, now: None)
    monkeypatch.setattr(run, "EVENTS_MAX", 30_000)  # it asks again and again; see that soon
    assert moved().invariant in ("writes are not held for long", "bounded")
