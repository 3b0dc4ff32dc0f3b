"""A consumer that reads partitions from their start, and never seeks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import CorruptBatch, ErrorCode
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import decode_records
from tidemark.protocol.types import ORIGIN, Offset, TopicPartition
from tidemark.testing.checkers.history import History, Poll, Polled, Watermark
from tidemark.testing.simulator.rpc import Answer, Fetch, Fetched
from tidemark.testing.simulator.sessions import Session

_IDLE_FACTOR: Final = 3


@dataclass(slots=True)
class _Place:
    key: PartitionKey
    partition: TopicPartition
    offset: Offset = ORIGIN.offset
    end: Offset | None = None
    """What the last answer said may be read; `None` if it was none, or was not asked since."""
    jumped: bool = False
    of_any: bool = False
    """Whether any replica was asked."""
    is_idle: bool = False
    """Whether the last poll brought nothing."""


class Consumer:
    """One consumer of some partitions, each polled in its turn, one poll at a time."""

    def __init__(
        self,
        session: Session,
        partitions: Sequence[tuple[PartitionKey, TopicPartition]],
        history: History,
        *,
        interval_seconds: float,
        bytes_max: int,
        replica_reads: float = 0.0,
    ) -> None:
        self._session = session
        self._places = [_Place(key, partition) for key, partition in partitions]
        self._history = history
        self._interval_seconds = interval_seconds
        self._bytes_max = bytes_max
        self._replica_reads = replica_reads
        self._is_stopped = False

    @property
    def is_at_the_end(self) -> bool:
        """Whether each partition's last answer had nothing more to read."""
        return all(place.end is not None and place.offset >= place.end for place in self._places)

    def position(self, key: PartitionKey) -> Offset:
        """Below it, it has read everything."""
        return next(place.offset for place in self._places if place.key == key)

    def rewind(self, key: PartitionKey) -> None:
        """Read it once more, from its start."""
        for place in self._places:
            if place.key == key:
                place.offset, place.jumped = ORIGIN.offset, True

    def start(self) -> None:
        for place in self._places:
            self._later(place)

    def stop(self) -> None:
        self._is_stopped = True

    def _later(self, place: _Place) -> None:
        # Where there was nothing, later: a real one's request would wait for news.
        mean = self._interval_seconds * (_IDLE_FACTOR if place.is_idle else 1)
        seconds = self._session.rng.expovariate(1 / mean)
        self._session.after(seconds, self._poll, place)

    def _poll(self, place: _Place) -> None:
        if self._is_stopped:
            return
        of_any = self._replica_reads > 0 and self._session.rng.random() < self._replica_reads
        target = self._session.any_broker() if of_any else self._session.leader(place.key)
        if target is None:
            place.end = None
            self._later(place)
            return
        started = self._session.now
        request = Fetch(
            self._session.next_request(), place.key, place.offset, self._bytes_max, of_any
        )
        place.of_any = of_any
        self._session.ask(target, request, lambda answer: self._answered(place, started, answer))

    def _answered(self, place: _Place, started: float, answer: Answer | None) -> None:
        if not isinstance(answer, Fetched):
            self._doubt(place)
        elif answer.error is ErrorCode.NONE and _is_whole(answer.records, place.offset):
            self._take(place, started, answer)
        elif answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and answer.log_start > place.offset:
            place.offset, place.jumped = answer.log_start, True
        else:
            place.end = None
            self._doubt(place)
        if not self._is_stopped:
            self._later(place)

    def _doubt(self, place: _Place) -> None:
        if not place.of_any:
            self._session.doubt(place.key)

    def _take(self, place: _Place, started: float, answer: Fetched) -> None:
        now = self._session.now
        if not place.of_any:  # each replica has its own, and only the leader's never goes back
            self._history.watermarks.append(
                Watermark(
                    partition=place.partition,
                    epoch=answer.epoch,
                    offset=answer.high_watermark,
                    started=started,
                    ended=now,
                )
            )
            place.end = answer.high_watermark
        place.is_idle = not answer.records
        records = tuple(
            Polled(place.partition, record.offset, int(record.value or b""))
            for record in decode_records(answer.records)
            if record.offset >= place.offset
        )
        # Also past batches without a record that counts: markers, and what compaction has left.
        for _, header in iter_headers(answer.records):
            place.offset = max(place.offset, header.next_offset)
        if not records:
            return
        self._history.polls.append(
            Poll(
                client=self._session.name,
                started=started,
                ended=now,
                records=records,
                is_repositioned=place.jumped,
            )
        )
        place.jumped = False


def _is_whole(records: bytes, offset: Offset) -> bool:
    """Whether these are the batches from the one with `offset` on, by checksums and by offsets.

    A client that is given anything else says so and stops; these ask again, until the file was
    restored. Checksums do not cover offsets, and Kafka's clients do not look whether those join.
    """
    due = offset
    try:
        decode_records(records)
        for _, header in iter_headers(records):
            if not header.base_offset <= due < header.next_offset:
                return False
            due = header.next_offset
    except CorruptBatch:
        return False
    return True
