"""The judge that compares coordinators with their logs: right ones pass, wrong ones do not."""

from dataclasses import replace
from typing import Any

import pytest

from tests.simulator.calm import CALM
from tests.simulator.rolling import ROLLING
from tidemark.partitions.state_machines.groups.consumer import restoring
from tidemark.partitions.state_machines.groups.reading_back import ReadBack as GroupsReadBack
from tidemark.partitions.state_machines.groups.records import encode_record, offset_record
from tidemark.partitions.state_machines.groups.requests import Commit, OffsetToCommit
from tidemark.partitions.state_machines.transactions.reading_back import ReadBack
from tidemark.protocol.records.control import Marker, encode_marker
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import ProducerId, TopicPartition
from tidemark.testing.simulator.run import simulate
from tidemark.testing.simulator.transactions.memory import AS_ITS_LOG, OffsetsInLog

PLACE = "readers", TopicPartition("inputs", 0)
ONE, OTHER = ProducerId(1), ProducerId(2)


class Log:
    """Tells a model what lies in a log."""

    def __init__(self) -> None:
        self.model = OffsetsInLog()

    def _take(self, batch: bytes) -> None:
        for at, header in iter_headers(batch):
            self.model.take_batch(batch, header, at)

    def commit(self, offset: int, producer_id: ProducerId | None = None) -> None:
        commit = OffsetToCommit(offset=offset)
        request = Commit(group_id=PLACE[0], offsets={PLACE[1]: commit})
        said = offset_record(request, PLACE[1], commit, 0)
        key, value = encode_record(said)
        record = Record(timestamp_ms=0, key=key, value=value)
        if producer_id is None:
            self._take(encode_batch([record]))
        else:
            self._take(
                encode_batch(
                    [record], producer_id=producer_id, producer_epoch=0, is_transactional=True
                )
            )

    def end(self, producer_id: ProducerId, *, is_commit: bool) -> None:
        self._take(encode_marker(producer_id, 0, Marker(is_commit, 0), timestamp_ms=0))

    @property
    def offset(self) -> int | None:
        value = self.model.counting().get(PLACE)
        return None if value is None else value.offset

    @property
    def is_unstable(self) -> bool:
        return PLACE in self.model.unstable()


def test_an_offset_in_a_transaction_counts_once_that_is_committed() -> None:
    log = Log()
    log.commit(5)
    log.commit(7, ONE)
    assert (log.offset, log.is_unstable) == (5, True)
    log.end(ONE, is_commit=True)
    assert (log.offset, log.is_unstable) == (7, False)


def test_and_not_if_it_is_aborted() -> None:
    log = Log()
    log.commit(7, ONE)
    log.end(ONE, is_commit=False)
    assert (log.offset, log.is_unstable) == (None, False)


def test_the_last_record_counts_and_not_the_last_decision() -> None:
    log = Log()
    log.commit(7, ONE)
    log.commit(9, OTHER)
    log.end(OTHER, is_commit=True)
    log.end(ONE, is_commit=True)
    assert (log.offset, log.is_unstable) == (9, False)


def test_what_is_outside_replaces_what_was_said_in_transactions_before() -> None:
    log = Log()
    log.commit(7, ONE)
    log.commit(8)
    assert (log.offset, log.is_unstable) == (8, False)
    log.end(ONE, is_commit=True)
    assert log.offset == 8


def test_coordinators_are_compared_all_the_time() -> None:
    verdict = simulate(1, knobs=CALM)
    assert verdict.passed, verdict.what
    assert verdict.coverage.counts["coordinators compared"] > 20


def test_a_successor_that_reads_back_less_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    values = ReadBack.values
    monkeypatch.setattr(ReadBack, "values", lambda self: dict([*values(self).items()][1:]))
    assert simulate(1, knobs=CALM).invariant == AS_ITS_LOG


def test_one_that_takes_undecided_offsets_for_decided_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def take(self: GroupsReadBack, _producer: ProducerId, key: bytes, value: bytes | None) -> None:
        self.take(key, value)

    monkeypatch.setattr(GroupsReadBack, "take_undecided", take)
    assert simulate(1, knobs=CALM).invariant == AS_ITS_LOG


def test_one_that_takes_a_classic_member_for_another_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forget(_stored: Any) -> None:  # Any: as `_classic`
        return None

    monkeypatch.setattr(restoring, "_classic", forget)
    assert simulate(8, knobs=replace(ROLLING, seconds=3.0)).invariant == AS_ITS_LOG
