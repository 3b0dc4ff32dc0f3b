"""Which batches of idempotent producers a partition has already taken.

A producer numbers the records it sends to a partition. The table remembers, for each producer, the
number that comes next and the last five batches, and so tells a fresh batch from a retry of one
that is already in the log, and both from one whose predecessor is missing.

`check` decides, `append` records: between them the batch is written, and a batch that could not be
written was never appended here. The table is a function of the log: feeding the headers of all its
batches to `append` in order gives the same answers. After a truncation, build it anew that way.

A snapshot is a header and one entry for each producer, the least recently heard first:

| part     | layout, big-endian                                                                  |
|----------|-------------------------------------------------------------------------------------|
| header   | uint32 CRC32C of the rest, int16 version = 1, int32 producers                       |
| producer | int64 id, int16 epoch, int32 next sequence, int64 appended, heard ms, int8 batches |
| batch    | int32 first and last sequence, int64 base and last offset, int64 timestamp ms       |
"""

from collections import OrderedDict, deque
from dataclasses import dataclass
from struct import Struct
from typing import Final

from crc32c import crc32c

from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset, ProducerId

BATCHES_KEPT: Final = 5
"""How many requests a producer may have in flight: any of them may be retried, none older."""

_SEQUENCE_MASK: Final = 0x7FFF_FFFF
# Sequences go in a circle. Further back than half of it is as well a gap ahead.
_BACK_MAX: Final = 0x3FFF_FFFF
_SNAPSHOT_VERSION: Final = 1
_CRC: Final = Struct(">I")
_HEADER: Final = Struct(">hi")
_PRODUCER: Final = Struct(">qhiqqb")
_BATCH: Final = Struct(">iiqqq")

_Batch = tuple[int, int, int, int, int]
"""A batch that is remembered: its first and last sequence, base and last offset, and timestamp."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """A batch to append."""


FRESH: Final = Fresh()


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A batch that is in the log already: where it lies, and when it was appended.

    It may not be committed yet; whoever answers waits for `next_offset` as for a fresh batch.
    """

    base_offset: Offset
    next_offset: Offset
    timestamp_ms: int


class _Producer:
    __slots__ = ("appended", "batches", "epoch", "heard_ms", "next_sequence")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.next_sequence = 0
        # How many records of this epoch are known to be in the log without a gap up to
        # `next_sequence`. What lies further back was never seen, so it cannot be a duplicate.
        self.appended = 0
        self.heard_ms = 0
        self.batches: deque[_Batch] = deque(maxlen=BATCHES_KEPT)


class ProducerTable:
    """The producers of one partition, at most `producers_max`: the least recently heard give way.

    A producer that gave way or expired is unknown, and an unknown producer's next batch is
    accepted whatever its sequence: a long-lived idle producer must not fail for good.
    """

    def __init__(self, *, producers_max: int = 100_000) -> None:
        self._producers: OrderedDict[int, _Producer] = OrderedDict()
        self._producers_max = producers_max

    def __len__(self) -> int:
        return len(self._producers)

    def check(self, header: BatchHeader) -> Fresh | Duplicate:
        """Whether to append the batch, or answer as its first arrival was.

        Raises `RequestError`: INVALID_PRODUCER_EPOCH for an epoch that a newer one has replaced,
        OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, DUPLICATE_SEQUENCE_NUMBER for a retry that is in
        the log but too old for its offset to be remembered.
        """
        producer = self._producers.get(header.producer_id)
        if (
            producer is not None
            and header.producer_epoch == producer.epoch
            and header.base_sequence == producer.next_sequence
        ):
            return FRESH
        return _check_slowly(producer, header)

    def append(
        self, header: BatchHeader, base_offset: Offset, *, heard_ms: int | None = None
    ) -> None:
        """Take in a batch that lies in the log at `base_offset`.

        `heard_ms` is when it came, for `expire`; a replay does not know and goes by the batch's
        own time. Batches without a producer are ignored, so every header of a log can be fed.
        """
        # Unpacked in one go: this runs for every batch.
        _, _, _, _, _, _, delta, _, timestamp_ms, producer_id, epoch, first, _ = header
        if producer_id < 0:
            return
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._add(producer_id, epoch)
        else:
            self._producers.move_to_end(producer_id)
            if epoch != producer.epoch:
                producer = self._producers[producer_id] = _Producer(epoch)
        producer.heard_ms = timestamp_ms if heard_ms is None else heard_ms
        if first < 0:  # A transaction's marker has an epoch and no sequence.
            return
        last = (first + delta) & _SEQUENCE_MASK
        if first != producer.next_sequence:
            producer.appended = 0
        producer.appended += delta + 1
        producer.next_sequence = (last + 1) & _SEQUENCE_MASK
        producer.batches.append((first, last, base_offset, base_offset + delta, timestamp_ms))

    def expire(self, now_ms: int, *, idle_ms: int) -> int:
        """Forget the producers not heard for `idle_ms`; how many those were."""
        idle = [
            producer_id
            for producer_id, producer in self._producers.items()
            if now_ms - producer.heard_ms >= idle_ms
        ]
        for producer_id in idle:
            del self._producers[producer_id]
        return len(idle)

    def forget_from(self, offset: Offset) -> None:
        """Forget the batches from `offset` on: they are not in the log, and will not be.

        A producer of which no other batch is remembered is unknown then.
        """
        for producer_id, producer in list(self._producers.items()):
            while producer.batches and producer.batches[-1][2] >= offset:
                first, last, *_ = producer.batches.pop()
                producer.next_sequence = first
                producer.appended -= ((last - first) & _SEQUENCE_MASK) + 1
                if not producer.batches:
                    del self._producers[producer_id]

    def newest_epoch(self, producer_id: ProducerId) -> int | None:
        """The producer's epoch as this partition last saw it, or None if it is unknown."""
        producer = self._producers.get(producer_id)
        return None if producer is None else producer.epoch

    def encode(self) -> bytes:
        """A snapshot; the caller keeps the end offset it belongs to beside it."""
        parts = [_HEADER.pack(_SNAPSHOT_VERSION, len(self._producers))]
        for producer_id, producer in self._producers.items():
            parts.append(
                _PRODUCER.pack(
                    producer_id,
                    producer.epoch,
                    producer.next_sequence,
                    producer.appended,
                    producer.heard_ms,
                    len(producer.batches),
                )
            )
            parts += [_BATCH.pack(*batch) for batch in producer.batches]
        body = b"".join(parts)
        return _CRC.pack(crc32c(body)) + body

    @classmethod
    def decode(cls, data: bytes, *, producers_max: int = 100_000) -> "ProducerTable":
        """The table of a snapshot. Raises `StorageError` if it is not one: then replay the log."""
        table = cls(producers_max=producers_max)
        at = _CRC.size + _HEADER.size
        if len(data) < at or _CRC.unpack_from(data)[0] != crc32c(data[_CRC.size :]):
            raise StorageError("a producer snapshot that is cut off or damaged")
        version, count = _HEADER.unpack_from(data, _CRC.size)
        if version != _SNAPSHOT_VERSION:
            raise StorageError(f"a producer snapshot of version {version}, not 1")
        for _ in range(count):
            at = table._decode_producer(data, at)
        return table

    def _decode_producer(self, data: bytes, at: int) -> int:
        producer_id, epoch, following, appended, heard_ms, batches = _PRODUCER.unpack_from(data, at)
        at += _PRODUCER.size
        producer = self._add(producer_id, epoch)
        producer.next_sequence, producer.appended = following, appended
        producer.heard_ms = heard_ms
        for _ in range(batches):
            producer.batches.append(_BATCH.unpack_from(data, at))
            at += _BATCH.size
        return at

    def _add(self, producer_id: int, epoch: int) -> _Producer:
        if len(self._producers) >= self._producers_max:
            self._producers.popitem(last=False)
        producer = self._producers[producer_id] = _Producer(epoch)
        return producer


def _check_slowly(producer: _Producer | None, header: BatchHeader) -> Fresh | Duplicate:
    first = header.base_sequence
    if first < 0 and not header.is_control:
        raise RequestError(
            ErrorCode.INVALID_RECORD, f"a batch of producer {header.producer_id} with no sequence"
        )
    if producer is None:
        return FRESH
    if header.producer_epoch < producer.epoch:
        raise RequestError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"producer {header.producer_id} is at epoch {producer.epoch}, "
            f"and this batch is of epoch {header.producer_epoch}",
        )
    if header.is_control:
        return FRESH
    if header.producer_epoch > producer.epoch:
        return _check_first_of_epoch(header)
    return _check_sequence(producer, header)


def _check_first_of_epoch(header: BatchHeader) -> Fresh:
    if header.base_sequence == 0:
        return FRESH
    raise RequestError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} starts epoch {header.producer_epoch} "
        f"at sequence {header.base_sequence} instead of 0",
    )


def _check_sequence(producer: _Producer, header: BatchHeader) -> Fresh | Duplicate:
    first, last = header.base_sequence, header.last_sequence
    if first == producer.next_sequence:
        return FRESH
    for first_kept, last_kept, base_offset, last_offset, timestamp_ms in producer.batches:
        if first_kept == first and last_kept == last:
            return Duplicate(
                base_offset=Offset(base_offset),
                next_offset=Offset(last_offset + 1),
                timestamp_ms=timestamp_ms,
            )
    if _lies_before_window(producer, first, last):
        raise RequestError(
            ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
            f"sequences {first} to {last} of producer {header.producer_id} are in the log, "
            f"more than {BATCHES_KEPT} batches back",
        )
    raise RequestError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"sequence {first} of producer {header.producer_id}, where {producer.next_sequence} "
        "comes next",
    )


def _lies_before_window(producer: _Producer, first: int, last: int) -> bool:
    """Whether all of `first` to `last` is known to be in the log, older than any batch kept."""
    if not producer.batches:
        return False
    back_to_first = (producer.next_sequence - first) & _SEQUENCE_MASK
    back_to_last = (producer.next_sequence - last) & _SEQUENCE_MASK
    oldest_kept = producer.batches[0][0]
    window = (producer.next_sequence - oldest_kept) & _SEQUENCE_MASK
    return window < back_to_last <= back_to_first <= min(producer.appended, _BACK_MAX)
