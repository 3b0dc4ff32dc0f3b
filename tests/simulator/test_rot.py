"""Bits that flip on one broker's disk: it says so, counts for nothing, and others repair it."""

from dataclasses import replace
from uuid import UUID

import pytest

from tidemark.partitions.raft.entries import Run
from tidemark.partitions.raft.messages import AppendRequest, Message
from tidemark.partitions.replication import checking, group_replica
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.journal import redo
from tidemark.partitions.storage.journal.blocks import Lsn
from tidemark.partitions.storage.journal.reader import ReadJournal
from tidemark.protocol.types import Epoch
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.run import Verdict, simulate

KNOBS = Knobs(
    seconds=8.0,
    groups=1,
    send_interval=0.05,
    segment_bytes=300,
    checkpoint_interval=0.5,
    fault_interval=0,
)


def damaged_journals() -> Verdict:
    faults = [Fault(at=3.0 + node, kind="damage", node=node, seconds=0.3) for node in (1, 2, 3)]
    return simulate(5, knobs=KNOBS, script=faults)


def test_who_has_lost_a_part_of_its_journal_is_in_doubt_and_gets_over_it() -> None:
    verdict = damaged_journals()
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["replicas damaged"] >= 2
    assert verdict.coverage.marks["doubt_ended"]


def test_a_start_that_takes_damage_for_a_torn_tail_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Unvouched(ReadJournal):
        """Of which no block says that others were synced."""

        def __init__(
            self, files: Files, path: str, owner: UUID, start: Lsn, *, former_owner: UUID | None
        ) -> None:
            super().__init__(files, path, owner, start, former_owner=former_owner)
            self.synced_lsn = start

    monkeypatch.setattr(redo, "ReadJournal", Unvouched)
    assert damaged_journals().invariant == "damage is noticed"


def late_follower() -> Verdict:
    """Broker 3 was away, and is sent what lies on the disk of 2, which leads anew."""
    faults = [
        Fault(at=1.0, kind="kill", node=3, seconds=9.0),
        Fault(at=2.6, kind="rot", node=2),
        Fault(at=2.7, kind="kill all", node=1, seconds=0.2),
    ]
    return simulate(1, knobs=replace(KNOBS, seconds=5.0, checkpoint_interval=0.3), script=faults)


def test_a_bit_of_a_segment_that_flips_is_not_spread() -> None:
    verdict = late_follower()
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["segments rotten"] == 1


def test_a_follower_that_takes_a_run_as_it_comes_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(group_replica, "checked", with_bytes)
    assert late_follower().invariant == "damage is not spread"


def with_bytes(message: Message, _epoch: Epoch) -> Message:
    """As `checked` does, without looking at them."""
    if isinstance(message, AppendRequest):
        entries = (checking._with_bytes(e) if isinstance(e, Run) else e for e in message.entries)
        return replace(message, entries=tuple(entries))
    return message
