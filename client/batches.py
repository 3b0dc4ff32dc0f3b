"""One batch of a producer, from the first record to its outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import place_producer
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import NO_TIMESTAMP_MS, Offset

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


class Batch:
    """Records of one partition that travel together.

    First it is filled (`records`), then encoded (`data`), perhaps sent several times, and settled
    once. The records are let go when it is encoded.
    """

    __slots__ = (
        "attempts",
        "count",
        "created_at",
        "data",
        "last_error",
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
        self.order = -1  # among the partition's batches, given when it is first sent
        self.attempts = 0
        self.last_error: ErrorCode | None = None
        self.outcome: Stored | Failed | None = None
        self.when_settled: list[Callable[[], None]] = []

    @classmethod
    def ready(
        cls, topic: str, partition: int, created_at: float, data: bytes, count: int
    ) -> "Batch":
        """A batch that comes encoded."""
        batch = cls(topic, partition, created_at)
        batch.data, batch.count, batch.size_bytes = data, count, len(data)
        return batch

    def encode(self, compression: Compression) -> None:
        """Close it: from now on it is bytes."""
        if self.data is None:
            self.data = encode_batch(self.records, compression=compression)
            self.records = []

    def stamp(self, producer_id: int, epoch: int, sequence: int) -> None:
        """Say who sends it and the sequence of its first record."""
        assert self.data is not None
        if not isinstance(self.data, bytearray):
            self.data = bytearray(self.data)
        place_producer(self.data, 0, producer_id=producer_id, epoch=epoch, sequence=sequence)
        self.sequence = sequence

    def settle(self, outcome: Stored | Failed) -> None:
        """Say what became of it, to all who wait."""
        assert self.outcome is None, "a batch is settled once"
        self.outcome = outcome
        self.data, self.records = None, []
        for callback in self.when_settled:
            callback()
        self.when_settled.clear()
