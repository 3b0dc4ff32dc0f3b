"""What was acknowledged and not read is told of, with where it lies."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as Where

from tests.chaos.acknowledged import AT, history
from tests.chaos.unread import unread
from tests.chaos.workload import reader
from tests.chaos.workload.promise import SYNCED
from tests.chaos.workload.stream import Stream
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset
from tidemark.testing.checkers import Poll


def disk(path: Path, records: int, rest: bytes = b"") -> Path:
    """Of a broker that has the first records, and then something that is no batch."""
    (path / str(AT)).mkdir(parents=True)
    batches = (
        encode_batch([Record(timestamp_ms=0, value=f"p0-{n}".encode())], base_offset=Offset(n))
        for n in range(records)
    )
    (path / str(AT) / f"{0:020}.log").write_bytes(b"".join(batches) + rest)
    return path


def test_what_was_not_read_is_told_of_with_where_it_lies(tmp_path: Path) -> None:
    dirs = {1: disk(tmp_path / "1", 4), 2: disk(tmp_path / "2", 3, b"x" * 80), 3: tmp_path / "3"}
    (told,) = unread(history(sent=5, read=2), dirs)
    assert told.startswith("t-0: 3 acknowledged and read by nobody: ")
    assert told.endswith("2 on the disk of 1, 1 on the disk of 2, 0 on the disk of 3; 1 on none")
    assert unread(history(sent=5, read=5), dirs) == []


def test_a_producer_that_gives_up_what_a_majority_lost_is_no_problem_whenever_it_is_known() -> None:
    stream = Stream("nowhere", "t", SYNCED)
    stream._given_up.append((10.0, "p0 gives up"))
    assert stream.problems == ["p0 gives up"]
    stream.lose(9.0)
    assert stream.problems == []
    stream.lost_power_at = 11.0
    assert stream.problems == ["p0 gives up"]


class HalfLed:
    """A consumer of two partitions with a record each, of which one has no leader that tells its
    end."""

    def __init__(self, settings: object) -> None:
        self._left = [Told()]

    def assign(self, partitions: object) -> None: ...

    def close(self) -> None: ...

    def consume(self, count: int, seconds: float) -> list[Told]:
        time.sleep(0.01)
        return [self._left.pop()] if self._left else []

    def get_watermark_offsets(self, where: Where, timeout: float) -> tuple[int, int]:
        if where.partition:
            raise KafkaException("no leader")
        return 0, 1


class Told:
    """The record of the one that has a leader."""

    def error(self) -> None: ...

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 0

    def value(self) -> bytes:
        return b"p0-0"


def test_the_last_reader_reads_what_there_is_and_says_of_what_nobody_told_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader, "Consumer", HalfLed)
    polls = list[Poll]()
    last = reader.Reader("nowhere", "t", 2, "final", polls.append)
    assert last.read_to_the_end(0.1) == {1: "read up to 0, and nobody told its end"}
    assert [record.value for poll in polls for record in poll.records] == ["p0-0"]


def test_a_last_reader_that_has_not_come_to_an_end_says_where() -> None:
    stream = Stream("nowhere", "t", SYNCED)
    stream.unread = {2: "read up to 3 of 5"}
    assert stream.problems == ["the last reader: t-2: read up to 3 of 5"]
