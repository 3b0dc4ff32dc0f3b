"""Transactions and groups under faults: their coordinators fall, requests come late and twice."""

from dataclasses import replace

import pytest

from tests.simulator.calm import CALM
from tidemark.broker.coordinating.own_log import OwnLog
from tidemark.partitions.state_machines.groups.consumer.member import ConsumerMember
from tidemark.partitions.state_machines.groups.undecided import Undecided
from tidemark.partitions.state_machines.open_transactions import OpenTransactions
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import Offset
from tidemark.testing.simulator.drawing import draw_knobs
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.kinds import DISK_KINDS
from tidemark.testing.simulator.knobs import Layer
from tidemark.testing.simulator.run import Verdict, simulate

UNLIKE_ITS_LOG = "a coordinator knows what its log says"


def run() -> Verdict:
    return simulate(1, knobs=CALM)


@pytest.mark.parametrize("seed", range(12))
def test_a_short_run_keeps_every_promise(seed: int) -> None:
    verdict = simulate(seed, seconds=2, layer=Layer.TRANSACTIONS)
    assert verdict.passed, f"seed {seed}: {verdict.what}"


def test_where_nothing_goes_wrong_much_is_done() -> None:
    verdict = run()
    counts = verdict.coverage.counts
    assert verdict.passed, verdict.what
    assert counts["transactions ok"] > 5
    assert counts["transactions fail"] > 0
    assert counts["offsets committed"] > 5
    assert counts["offsets fetched"] > 5


def test_a_seed_of_that_layer_is_the_same_run_again_from_its_tape() -> None:
    drawn = simulate(4, seconds=2, layer=Layer.TRANSACTIONS)
    again = simulate(4, knobs=drawn.knobs, script=drawn.tape)
    assert drawn.knobs.has_transactions
    assert (again.at, again.invariant, again.events) == (drawn.at, drawn.invariant, drawn.events)


def test_some_clients_bump_and_some_do_not() -> None:
    drawn = [draw_knobs(seed, seconds=1, layer=Layer.TRANSACTIONS) for seed in range(20)]
    assert {knobs.bumping for knobs in drawn} == {0.0, 0.5, 1.0}


def test_some_runs_are_for_what_is_rare() -> None:
    drawn = [draw_knobs(seed, seconds=1, layer=Layer.TRANSACTIONS) for seed in range(60)]
    rare = {"bad disks", "no room", "late markers", "lost decisions", "late answers", "deletions"}
    assert {knobs.aim for knobs in drawn} >= {"", "migration", "rolling restarts", *rare}


FULL_DISKS = [
    Fault(at=0.3 + 0.4 * number, kind="disk full", node=1 + number % 3, seconds=0.3, amount=0.01)
    for number in range(7)
]


def test_some_runs_have_disks_that_fail_where_a_coordinator_writes() -> None:
    drawn = [draw_knobs(seed, seconds=1, layer=Layer.TRANSACTIONS) for seed in range(40)]
    failing = [knobs for knobs in drawn if {*DISK_KINDS} <= {*knobs.answers}]
    assert 2 < len(failing) < 15
    assert all("transaction ends" in knobs.triggers for knobs in failing)


def test_coordinators_on_full_disks_keep_every_promise_and_go_on_when_there_is_room() -> None:
    verdict = simulate(1, knobs=CALM, script=FULL_DISKS)
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["transactions ok"] > 5


def test_failed_syncs_of_every_broker_in_turn_lose_nothing() -> None:
    script = [
        Fault(at=0.5 + 0.7 * number, kind="sync error", node=1 + number) for number in range(3)
    ]
    verdict = simulate(1, knobs=CALM, script=script)
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["start"] == 6


def test_a_coordinator_that_takes_a_failed_write_for_a_good_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle = OwnLog._settle

    def as_if_stored(self: OwnLog, number: int, error: RequestError | None) -> None:
        settle(self, number, None)

    monkeypatch.setattr(OwnLog, "_settle", as_if_stored)
    assert simulate(3, knobs=CALM, script=FULL_DISKS).invariant == UNLIKE_ITS_LOG


def test_reading_what_is_undecided_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def all_that_is_committed(self: OpenTransactions, high_watermark: Offset) -> Offset:
        return high_watermark

    monkeypatch.setattr(OpenTransactions, "last_stable_offset", all_that_is_committed)
    expected = "readers of what is committed stop at the first open transaction"
    assert run().invariant == expected


def test_offsets_of_what_was_aborted_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    end = Undecided.end

    def commit_always(self, producer_id, *, is_commit):  # type: ignore[no-untyped-def]  # as `end`
        return end(self, producer_id, is_commit=True)

    monkeypatch.setattr(Undecided, "end", commit_always)
    assert run().invariant == UNLIKE_ITS_LOG


ASSIGNED = replace(CALM, assigned_by_coordinator=True, groups=8, members=4)


def test_members_that_the_coordinator_assigns_to_get_on() -> None:
    verdict = simulate(1, knobs=ASSIGNED)
    counts = verdict.coverage.counts
    assert verdict.passed, verdict.what
    assert counts["offsets committed"] > 5
    assert counts["transactions ok"] > 5


def test_a_partition_that_two_members_read_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ConsumerMember, "held", property(lambda self: self.assigned))
    knobs = replace(ASSIGNED, latency=0.01, transformers=0, writers=0)
    assert simulate(4, knobs=knobs).invariant == "one member reads a partition"
