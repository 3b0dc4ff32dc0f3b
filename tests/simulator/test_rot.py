"""Bits that flip on one broker's disk: it says so, counts for nothing, and is repaired by others."""

import pytest

from tidemark.partitions.storage.journal.reader import ReadJournal
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.run import Verdict, simulate

KNOBS = Knobs(seconds=8.0, groups=2, send_interval=0.05, fault_interval=0)


def run(kind: str) -> Verdict:
    faults = [Fault(at=3.0 + node, kind=kind, node=node, seconds=0.3) for node in (1, 2, 3)]
    return simulate(5, knobs=KNOBS, script=faults)


def test_who_has_lost_a_part_of_its_journal_is_in_doubt_and_gets_over_it() -> None:
    verdict = run("damage")
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["replicas damaged"] >= 3
    assert verdict.coverage.marks["doubt_ended"]


def test_a_start_that_takes_damage_for_a_torn_tail_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ReadJournal, "_note_damage", lambda self, lsn, block, records: None)
    assert run("damage").invariant == "damage is noticed"
