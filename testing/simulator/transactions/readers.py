"""Consumers that read partitions to their end, of all that is committed or of what is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, decode_batch
from tidemark.protocol.types import ORIGIN, READ_COMMITTED, Offset, ProducerId, TopicPartition
from tidemark.testing.checkers.history import History, Poll, Polled
from tidemark.testing.checkers.transactions import Keyed
from tidemark.testing.simulator.transactions.asking import Found, Read
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.talker import Talker

_IDLE_SECONDS: Final = 0.5


@dataclass(slots=True)
class Cursor:
    """Where a consumer is in a partition, and which transactions it leaves out just now."""

    offset: Offset = ORIGIN.offset
    is_at_the_end: bool = False
    has_jumped: bool = False
    """Since it was last given records."""
    _aborted: set[ProducerId] = field(default_factory=set)

    def jump(self, log_start: Offset) -> None:
        """What it would have read next is gone: it goes on where the log begins."""
        if log_start > self.offset:
            self.offset, self.has_jumped = log_start, True
            self._aborted.clear()

    def take(self, found: Found, *, isolation: int) -> list[Record]:
        """The records of an answer that count, as Kafka's clients choose them."""
        records: list[Record] = []
        ahead = sorted(found.aborted, key=lambda each: each[1])
        for at, header in iter_headers(found.records):
            if header.next_offset <= self.offset:
                continue
            producer_id = ProducerId(header.producer_id)
            while ahead and ahead[0][1] <= header.last_offset:
                self._aborted.add(ahead.pop(0)[0])
            if header.is_control:
                marker = read_marker(found.records, header, at)
                if marker is not None and not marker.is_commit:
                    self._aborted.discard(producer_id)
            elif not (
                isolation == READ_COMMITTED
                and header.is_transactional
                and producer_id in self._aborted
            ):
                batch = decode_batch(found.records, header, at)
                records += [record for record in batch if record.offset >= self.offset]
            self.offset = header.next_offset
        self.is_at_the_end = self.offset >= found.end_offset
        return records


class Reader:
    """One consumer of some partitions, each read on its own."""

    def __init__(
        self,
        talker: Talker,
        places: Places,
        partitions: Sequence[TopicPartition],
        history: History,
        *,
        isolation: int,
        bytes_max: int,
    ) -> None:
        self._talker = talker
        self._places = places
        self._partitions = partitions
        self._history = history
        self._isolation = isolation
        self._bytes_max = bytes_max
        self.cursors = {partition: Cursor() for partition in partitions}
        self.keyed: dict[TopicPartition, list[Keyed]] = {each: [] for each in partitions}
        self.seen_at: dict[tuple[TopicPartition, Offset], float] = {}
        """When it got which record."""
        self.is_stopped = False

    async def run(self, partition: TopicPartition, *, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Read it until stopped."""
        cursor, talker = self.cursors[partition], self._talker
        key = self._places.key(partition)
        while not self.is_stopped:
            started = talker.now
            read = Read(offset=cursor.offset, bytes_max=self._bytes_max, isolation=self._isolation)
            answer = await talker.ask(key, read)
            if answer.error is not ErrorCode.NONE:
                cursor.is_at_the_end = False
                if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and isinstance(answer.value, int):
                    cursor.jump(Offset(answer.value))
            elif isinstance(answer.value, Found):
                self._take(partition, started, answer.value)
            idle = idle_seconds if cursor.is_at_the_end else 0.02
            await talker.sleep(talker.rng.expovariate(1 / idle))

    def _take(self, partition: TopicPartition, started: float, found: Found) -> None:
        cursor = self.cursors[partition]
        records = cursor.take(found, isolation=self._isolation)
        if not records:
            return
        polled = tuple(
            Polled(partition, record.offset, (record.value or b"").decode()) for record in records
        )
        self._history.polls.append(
            Poll(
                client=self._talker.session.name,
                started=started,
                ended=self._talker.now,
                records=polled,
                is_repositioned=cursor.has_jumped,
            )
        )
        cursor.has_jumped = False
        for record in records:
            self.seen_at[partition, record.offset] = self._talker.now
        self.keyed[partition] += [
            Keyed(record.offset, (record.key or b"").decode(), (record.value or b"").decode())
            for record in records
        ]
