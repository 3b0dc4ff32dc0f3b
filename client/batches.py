"""One batch of a producer, from the first record to its outcome."""

from collections.abc import Callable
from typing import Final

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import place_producer
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.types import NO_TIMESTAMP_MS, Offset
from tidemark.protocol.values import dataclass

RECORD_OVERHEAD: Final = 16
"""What a record of up to a few KB adds to its key and value, at most; larger ones add a little
more."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The broker has it as `acks` asks. `base_offset` is -1 when it did not say where."""

    base_offset: Offset
    append_time_ms: int = NO_TIMESTAMP_MS
    """The time the broker stamped; -1 where records keep their own."""


@dataclass(frozen=True, slots=True)
class Failed:
    """It was given up."""

    error: RequestError


@dataclass(frozen=True, slots=True)
class Split:
    """It was too large, and two halves went in its place, each with an outcome of its own."""

    halves: "tuple[Batch, Batch]"


Outcome = Stored | Failed | Split


def failure_of(outcome: Outcome | None) -> RequestError | None:
    """The error of a batch that was given up, or of a part of it."""
    match outcome:
        case Failed(error):
            return error
        case Split(halves):
            return next(filter(None, (failure_of(half.outcome) for half in halves)), None)
    return None


class Batch:
    """Records of one partition that travel together.

    First it is filled (`records`), then encoded (`data`), perhaps sent several times, and settled
    once. The records are let go when it is encoded.
    """

    __slots__ = (
        "attempts",
        "can_split",
        "count",
        "created_at",
        "data",
        "last_error",
        "last_message",
        "order",
        "outcome",
        "partition",
        "records",
        "sequence",
        "size_bytes",
        "topic",
        "when_settled",
    )

    def __init__(self, topic: str, partition: int, created_at: float) -> None:
        self.topic = topic
        self.partition = partition
        self.created_at = created_at
        self.records: list[Record] = []
        self.count = 0
        self.size_bytes = 0
        self.data: bytes | bytearray | None = None
        self.sequence: int | None = None  # given when it is first sent by an idempotent producer
        self.order = (-1, 0)  # among the partition's, given when it is first sent; place in a split
        self.can_split = True
        self.attempts = 0
        self.last_error: ErrorCode | None = None
        self.last_message: str | None = None
        self.outcome: Outcome | None = None
        self.when_settled: list[Callable[[], None]] = []

    @classmethod
    def ready(
        cls, topic: str, partition: int, created_at: float, data: bytes, count: int
    ) -> "Batch":
        """A batch that comes encoded."""
        batch = cls(topic, partition, created_at)
        batch.data, batch.count, batch.size_bytes = data, count, len(data)
        batch.can_split = False  # It was made by somebody who wanted it so.
        return batch

    @property
    def encoded_bytes(self) -> int:
        """Its size on its way; 0 before it is encoded, and once it is settled."""
        return len(self.data or b"")

    def encode(self, compression: Compression) -> None:
        """Close it: from now on it is bytes."""
        if self.data is None:
            self.data = encode_batch(self.records, compression=compression)
            self.records = []

    def stamp(
        self, producer_id: int, epoch: int, sequence: int, *, is_transactional: bool = False
    ) -> None:
        """Say who sends it, in a transaction or not, and the sequence of its first record."""
        assert self.data is not None
        if not isinstance(self.data, bytearray):
            self.data = bytearray(self.data)
        place_producer(
            self.data,
            0,
            producer_id=producer_id,
            epoch=epoch,
            sequence=sequence,
            is_transactional=is_transactional,
        )
        self.sequence = sequence

    def split(self, compression: Compression) -> "tuple[Batch, Batch]":
        """Two that take its place, encoded; this one is settled when both are."""
        assert self.can_split
        assert self.count > 1
        assert self.data is not None
        records = decode_records(self.data)
        middle = len(records) // 2
        halves = self._part(records[:middle], 0), self._part(records[middle:], middle)

        def half_settled() -> None:
            if all(half.outcome is not None for half in halves):
                self.settle(Split(halves))

        for half in halves:
            half.encode(compression)
            half.when_settled.append(half_settled)
        self.data = None
        return halves

    def _part(self, records: list[Record], at: int) -> "Batch":
        part = Batch(self.topic, self.partition, self.created_at)
        part.records, part.count = records, len(records)
        part.size_bytes = self.size_bytes * len(records) // self.count
        part.order = (self.order[0], self.order[1] + at)
        part.attempts = self.attempts
        part.last_error, part.last_message = self.last_error, self.last_message
        return part

    def settle(self, outcome: Outcome) -> None:
        """Say what became of it, to all who wait."""
        assert self.outcome is None, "a batch is settled once"
        self.outcome = outcome
        self.data, self.records = None, []
        for callback in self.when_settled:
            callback()
        self.when_settled.clear()
