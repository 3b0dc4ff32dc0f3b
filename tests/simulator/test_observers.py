"""Brokers that observe, and consumers that read from any replica: what the judges see of them."""

import pytest

from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import PullRequest
from tidemark.partitions.raft.observer import answer_pull
from tidemark.protocol.types import NodeId, Offset
from tidemark.testing.simulator.consumer import Consumer
from tidemark.testing.simulator.desk import Desk
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.rpc import Fetch, Fetched
from tidemark.testing.simulator.run import Verdict, simulate

KNOBS = Knobs(
    nodes=5,
    voters=3,
    groups=1,
    observers=2,
    replica_reads=0.7,
    seconds=4.0,
    send_interval=0.03,
    sync_seconds=0.05,
)
SWITCHES = [Fault(at=0.5 + at / 2, kind="switch parents", amount=0.5) for at in range(6)]


def run(seed: int = 3) -> Verdict:
    return simulate(seed, knobs=KNOBS, script=SWITCHES)


def test_observers_in_a_changing_tree_come_to_hold_all_and_are_read_from() -> None:
    verdict = run()
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["records polled"] > 100


def test_an_observer_that_has_more_than_is_committed_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A parent gives all that it has."""

    def give_all(group: Group, source: NodeId, request: PullRequest) -> None:
        committed = group.committed
        if group.is_written:
            group.committed = group.shape.last
        answer_pull(group, source, request)
        group.committed = committed

    monkeypatch.setattr("tidemark.partitions.raft.group.answer_pull", give_all)
    assert run().invariant == "an observer holds only what is committed"


def test_a_replica_that_answers_beyond_its_high_watermark_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetch = Desk._fetch

    def give_all(self: Desk, request: Fetch) -> Fetched:
        replica = self._hosting.replica(request.key)
        if replica is None:
            return fetch(self, request)
        end, replica.high_watermark = replica.high_watermark, replica.log_end
        try:
            return fetch(self, request)
        finally:
            replica.high_watermark = end

    monkeypatch.setattr(Desk, "_fetch", give_all)
    assert run().invariant is not None


def test_a_consumer_that_goes_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """To what another replica has."""
    take = Consumer._take

    def forget(self: Consumer, *args: object) -> None:
        take(self, *args)  # type: ignore[arg-type]  # handed through
        for place in self._places:
            if place.offset > 5 and self._session.rng.random() < 0.5:
                place.offset = Offset(place.offset - 3)

    monkeypatch.setattr(Consumer, "_take", forget)
    assert run().invariant in ("nonmonotonic-poll", "duplicate", "int-nonmonotonic-poll")
