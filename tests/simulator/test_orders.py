"""Aims that bring about what no seed comes upon: each is drawn, and does what it is for."""

from collections import Counter

import pytest

from tidemark.partitions.state_machines import producer_entry
from tidemark.partitions.state_machines.open_transactions import OpenTransactions
from tidemark.partitions.storage import tail_recovery
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.journal import redo
from tidemark.partitions.storage.journal.replay import PartitionReplay, forgotten
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.older_tail import is_left_by_older
from tidemark.partitions.storage.recycled_file import RecycledFile
from tidemark.partitions.storage.state_db import PartitionState
from tidemark.protocol.types import NO_EPOCH, Offset
from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.knobs import Knobs, Layer
from tidemark.testing.simulator.run import Verdict, simulate
from tidemark.testing.simulator.transactions.tables import AS_IN_ITS_LOG


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


def test_what_was_given_up_is_lost_with_the_end_of_a_log_that_begins_anew() -> None:
    verdict = run("lost markers", Layer.FULL, seconds=15)
    assert verdict.coverage.counts["marker"]


def test_and_who_does_not_know_that_it_is_open_again_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    forget_from = OpenTransactions.forget_from

    def forget_for_good(self: OpenTransactions, offset: Offset) -> None:
        kept = dict(self.opened)
        forget_from(self, offset)
        self.opened = {each: opened for each, opened in self.opened.items() if each in kept}

    monkeypatch.setattr(OpenTransactions, "forget_from", forget_for_good)
    drawn = (draw_knobs(seed, seconds=15) for seed in range(300))
    seeds = [seed for seed, knobs in enumerate(drawn) if knobs.aim == "lost markers"]
    found = {simulate(seed, seconds=15).invariant for seed in seeds}
    assert found == {None, AS_IN_ITS_LOG}


def test_logs_are_cut_while_they_are_compacted() -> None:
    drawn = (draw_knobs(seed, seconds=30) for seed in range(300))
    seeds = [seed for seed, knobs in enumerate(drawn) if knobs.aim == "cut compactions"]
    counts = Counter[str]()
    for seed in seeds[:4]:
        verdict = simulate(seed)
        assert verdict.passed, f"seed {seed}: {verdict.what}"
        counts += verdict.coverage.counts
    assert counts["compactions"]
    assert counts["compactions of logs that were cut"]


def test_brokers_crash_while_they_give_up_replicas() -> None:
    """In this one, too, what was held is taken and read before anybody looks at it again."""
    verdict = run("departures", Layer.REPLICAS, seconds=30)
    assert verdict.coverage.counts["replica given up"]
    assert any(kind == "after replica given up" for kind, _ in verdict.coverage.cells)


def test_a_crash_that_loses_the_epoch_in_which_a_replica_left_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(stored: PartitionState, known: PartitionState) -> PartitionReplay:
        replay = forgotten(stored, known)
        replay.left_in = NO_EPOCH
        return replay

    monkeypatch.setattr(redo, "forgotten", unknown)
    seed, knobs = first("departures", Layer.REPLICAS, seconds=30)
    assert simulate(seed, knobs=knobs).invariant == "durable epochs never go back"


def test_a_retry_of_the_oldest_of_five_batches_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert simulate(0).coverage.counts["retry of the oldest"]
    monkeypatch.setattr(producer_entry, "BATCHES_KEPT", 4)
    assert simulate(0).invariant == "a retry is told where its batch lies"


def test_disks_fail_when_a_broker_starts_or_cuts_a_log() -> None:
    drawn = (draw_knobs(seed, seconds=15) for seed in range(300))
    seeds = [seed for seed, knobs in enumerate(drawn) if knobs.aim == "failing disks"]
    kinds = set[str]()
    for seed in seeds[:2]:
        verdict = simulate(seed, seconds=15)
        assert verdict.passed, f"seed {seed}: {verdict.what}"
        kinds |= {kind for kind, _ in verdict.coverage.cells}
    assert kinds >= {"disk full", "sync error", "after start", "after checkpoint", "after truncate"}


def test_files_are_used_again_and_then_the_power_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Counter[str]()
    take = RecycledFile.take

    def count_taken(kept: RecycledFile, path: str) -> File | None:
        file = take(kept, path)
        seen["taken"] += file is not None
        return file

    def count_left(file: File, position: int, base_offset: Offset) -> bool:
        left = is_left_by_older(file, position, base_offset)
        seen["tails of older segments"] += left
        return left

    monkeypatch.setattr(RecycledFile, "take", count_taken)
    monkeypatch.setattr(tail_recovery, is_left_by_older.__name__, count_left)
    drawn = (draw_knobs(seed, seconds=40) for seed in range(300))
    seeds = [seed for seed, knobs in enumerate(drawn) if knobs.aim == "files used again"]
    for seed in seeds[:6]:
        verdict = simulate(seed, seconds=40)
        assert verdict.passed, f"seed {seed}: {verdict.what}"
    assert seen["taken"] > 20
    assert seen["tails of older segments"]


def test_segments_are_closed_by_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, is_roll_due = Counter[bool](), Log._is_roll_due

    def counted(log: Log, timestamp_ms: int) -> bool:
        is_due = is_roll_due(log, timestamp_ms)
        seen[is_due] += 1
        return is_due

    monkeypatch.setattr(Log, "_is_roll_due", counted)
    drawn = ((seed, draw_knobs(seed, seconds=10)) for seed in range(100))
    seeds = [seed for seed, knobs in drawn if knobs.segment_ms < 1000]
    assert 2 <= len(seeds) <= 20
    for seed in seeds[:2]:
        verdict = simulate(seed, seconds=10)
        assert verdict.passed, f"seed {seed}: {verdict.what}"
    assert seen[True] > 20


def test_records_are_deleted_while_their_transactions_are_open() -> None:
    coverage = run("deleted records", Layer.TRANSACTIONS, seconds=10).coverage
    assert coverage.counts["starts moved within transactions"]
    assert coverage.marks["change_finished"]


def test_who_forgets_a_transaction_whose_first_records_are_gone_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trim = OpenTransactions.trim

    def trim_all(self: OpenTransactions, log_start: Offset) -> None:
        trim(self, log_start)
        kept = ((each, opened) for each, opened in self.opened.items())
        self.opened = {each: opened for each, opened in kept if opened.first_offset >= log_start}

    monkeypatch.setattr(OpenTransactions, "trim", trim_all)
    seed, knobs = first("deleted records", Layer.TRANSACTIONS, seconds=10)
    assert simulate(seed, knobs=knobs).invariant == (
        "readers of what is committed stop at the first open transaction"
    )


@pytest.mark.parametrize(
    "aim",
    [
        *("late resets", "returns", "departures", "compactions", "lost markers"),
        *("cut compactions", "failing disks", "files used again", "deleted records"),
    ],
)
def test_most_seeds_are_what_they_were(aim: str) -> None:
    layers = dict.fromkeys(("returns", "departures"), Layer.REPLICAS)
    layers |= dict.fromkeys(("compactions", "deleted records"), Layer.TRANSACTIONS)
    layer = layers.get(aim, Layer.FULL)
    drawn = [draw_knobs(seed, seconds=1, layer=layer).aim for seed in range(300)]
    assert 0 < drawn.count(aim) < 90
