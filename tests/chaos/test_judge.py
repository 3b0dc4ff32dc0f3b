"""What each promise lets pass, and what not."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.chaos.acknowledged import AT, history
from tests.chaos.doubled import producers_of
from tests.chaos.judge import Interval, judge, unexplained
from tests.chaos.workload.promise import CACHED, LEADER_ONLY, SYNCED, Promise
from tests.chaos.workload.stream import Stream
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset
from tidemark.testing.checkers import Poll, Polled

ALWAYS: list[Interval] = [(0.0, float("inf"))]


def stream(promise: Promise, *, read: int, sent: int = 3) -> Stream:
    made = Stream("nowhere", "t", promise)
    made.history = history(sent=sent, read=read)
    return made


def test_what_was_synced_by_a_majority_is_there() -> None:
    assert judge(stream(SYNCED, read=3), ALWAYS).anomalies == []
    assert len(judge(stream(SYNCED, read=2), ALWAYS).anomalies) == 1


def test_what_was_cached_may_go_when_a_majority_loses_its_power_and_not_before() -> None:
    assert len(judge(stream(CACHED, read=2), ALWAYS).anomalies) == 1
    lost = stream(CACHED, read=2)
    lost.lose(95.0)
    assert judge(lost, ALWAYS).anomalies == []


def test_what_only_a_leader_had_may_go_with_it_but_not_in_calm_times() -> None:
    lost = stream(LEADER_ONLY, read=2)
    verdict = judge(lost, [(0.0, 2.0)])
    assert (verdict.anomalies, verdict.lost_as_allowed) == ([], 1)
    verdict = judge(lost, ALWAYS)
    assert (len(verdict.anomalies), verdict.lost_as_allowed) == (1, 0)
    lost.history.sends[1] = replace(lost.history.sends[1], ended=1.9)
    verdict = judge(lost, ALWAYS)
    assert (verdict.anomalies, verdict.lost_as_allowed) == ([], 1), "the machine was busy"


def test_what_somebody_has_read_is_there_for_the_last_reader_whatever_was_promised() -> None:
    gone = stream(LEADER_ONLY, read=2)
    seen = Poll(client="c0", started=5.0, ended=6.0, records=(Polled(AT, Offset(2), "p0-2"),))
    gone.history.polls.insert(0, seen)
    assert len(judge(gone, [(0.0, 2.0)]).anomalies) == 1


def test_without_idempotence_a_record_may_be_there_twice() -> None:
    twice = stream(LEADER_ONLY, read=3)
    (poll,) = twice.history.polls
    again = Polled(AT, Offset(3), "p0-2")
    twice.history.polls[0] = replace(poll, records=(*poll.records, again))
    assert judge(twice, ALWAYS).anomalies == []
    twice.promise = SYNCED
    assert len(judge(twice, ALWAYS).anomalies) == 1


@pytest.mark.parametrize(
    ("timed_out_at", "producers", "is_the_clients"),
    [
        (2.05, {2: (7, 0), 3: (7, 1)}, True),
        (2.05, {2: (7, 0), 3: (8, 0)}, True),
        (2.05, {2: (7, 0), 3: (7, 0)}, False),  # a broker has not known its own record again
        (2.05, {2: (7, 0)}, False),
        (2.5, {2: (7, 0), 3: (7, 1)}, False),  # it was over by then
        (1.5, {2: (7, 0), 3: (7, 1)}, False),  # it had not begun
        (None, {2: (7, 0), 3: (7, 1)}, False),  # nothing has timed out
    ],
)
def test_what_librdkafka_has_doubled_is_told_from_what_a_broker_has(
    timed_out_at: float | None, producers: dict[Offset, tuple[int, int]], is_the_clients: bool
) -> None:
    twice = stream(SYNCED, read=3)
    (poll,) = twice.history.polls
    again = Polled(AT, Offset(3), "p0-2")
    twice.history.polls[0] = replace(poll, records=(*poll.records, again))
    twice.timeouts.append(("p1", 2.05))
    if timed_out_at is not None:
        twice.timeouts.append(("p0", timed_out_at))
    verdict = judge(twice, ALWAYS, lambda _: producers)
    assert verdict.doubled_by_client == is_the_clients
    assert bool(verdict.anomalies) is not is_the_clients


def test_who_wrote_a_record_is_read_from_the_brokers_disks(tmp_path: Path) -> None:
    for node, batches in enumerate(([(0, 0), (2, 1)], [(0, 0)])):
        home = tmp_path / str(node) / str(AT)
        home.mkdir(parents=True)
        log = b"".join(
            encode_batch(
                [Record(timestamp_ms=0, value=b"v")] * 2,
                base_offset=Offset(offset),
                producer_id=7,
                producer_epoch=epoch,
                base_sequence=0,
            )
            for offset, epoch in batches
        )
        (home / "0.log").write_bytes(log)
    found = producers_of([tmp_path / str(node) for node in range(3)], AT)
    assert found == {0: (7, 0), 1: (7, 0), 2: (7, 1), 3: (7, 1)}


def test_a_corrupt_batch_comes_from_a_disk_on_which_a_bit_was_flipped() -> None:
    met = stream(SYNCED, read=3)
    assert unexplained([met], []) == []
    met.corrupt.append("c1 in t-2")
    assert len(unexplained([met], ["a bit of other-1/0.log at 7 of 2: noticed", "nothing"])) == 1
    assert unexplained([met], ["a bit of t-2/0.log at 7 of 2"]) == []
