"""Coordinators whose writes are refused, whose calls are late, and who are left alone."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from tests.simulator.calm import CALM
from tidemark.partitions.state_machines.transactions.shard import TransactionShard
from tidemark.partitions.storage.room import OutOfRoom, Room
from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.transactions.patience import STUCK

NO_ROOM = [
    Fault(at=0.3 + 0.2 * number, kind="no room", node=1 + number % 3, seconds=0.15)
    for number in range(13)
]


def drawn_for(aim: str, count: int) -> list[tuple[int, Knobs]]:
    """The first seeds with that aim."""
    found: list[tuple[int, Knobs]] = []
    for seed in range(1000):
        knobs = draw_knobs(seed, seconds=20, layer=Layer.TRANSACTIONS)
        if knobs.aim == aim and len(found) < count:
            found.append((seed, knobs))
    return found


def count_refusals(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a log has no room for what is to be appended, from now on."""
    refused, refusal = Counter[str](), Room.refusal

    def count(self: Room) -> OutOfRoom:
        refused["appends"] += 1
        return refusal(self)

    monkeypatch.setattr(Room, "refusal", count)
    return refused


def test_coordinators_without_room_keep_every_promise_and_go_on_when_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = count_refusals(monkeypatch)
    verdict = simulate(1, knobs=CALM, script=NO_ROOM)
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["transactions ok"] > 5
    assert refused["appends"] > 10


def test_runs_without_room_have_appends_refused_and_nobody_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ((seed, knobs),) = drawn_for("no room", 1)
    refused = count_refusals(monkeypatch)
    verdict = simulate(seed, knobs=replace(knobs, seconds=4.0))
    assert verdict.passed, verdict.what
    assert refused["appends"] > 0
    assert verdict.coverage.counts["start"] == knobs.nodes


def test_what_is_due_and_never_tried_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_arguments: Any) -> None:  # Any: as `_retry_later`
        pass

    monkeypatch.setattr(TransactionShard, "_retry_later", never)
    ((seed, knobs),) = drawn_for("no room", 1)
    assert simulate(seed, knobs=knobs).invariant == STUCK


@pytest.mark.parametrize(
    ("bumping", "refusal"),
    [(0.0, "TRANSACTION_COORDINATOR_FENCED"), (1.0, "INVALID_PRODUCER_EPOCH")],
)
def test_late_markers_come_and_are_refused(bumping: float, refusal: str) -> None:
    """Of former coordinators, and of transactions before the one that is open."""
    late = (each for each in drawn_for("late markers", 12) if each[1].bumping == bumping)
    for seed, knobs in late:
        verdict = simulate(seed, knobs=knobs)
        assert verdict.passed, verdict.what
        if verdict.coverage.counts[f"markers refused, {refusal}"]:
            return
    raise AssertionError("none came")


def test_offsets_in_transactions_that_cross_lose_to_later_records() -> None:
    superseded = 0
    for seed, knobs in drawn_for("crossing commits", 2):
        verdict = simulate(seed, knobs=replace(knobs, seconds=6.0))
        assert verdict.passed, verdict.what
        superseded += verdict.coverage.counts["offsets superseded"]
    assert superseded > 0


def test_what_is_compacted_has_transactions_open_and_given_up() -> None:
    ((seed, knobs),) = drawn_for("undecided records", 1)
    verdict = simulate(seed, knobs=replace(knobs, seconds=8.0))
    counts = verdict.coverage.counts
    assert verdict.passed, verdict.what
    assert min(counts["compactions"], counts["transactions fail"]) > 0
