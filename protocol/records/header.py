"""The 61 bytes in front of every record batch (format v2), and all that a broker does to a batch.

| at | field                  | type   | |
|---:|------------------------|--------|---|
|  0 | base_offset            | int64  | the broker writes it |
|  8 | batch_length           | int32  | bytes that follow this field |
| 12 | partition_leader_epoch | int32  | the broker writes it |
| 16 | magic                  | int8   | 2 |
| 17 | crc                    | uint32 | CRC32C of everything from `attributes` on |
| 21 | attributes             | int16  | 0-2 codec, 3 log append time, 4 transactional, 5 control, |
|    |                        |        | 6 delete horizon |
| 23 | last_offset_delta      | int32  | |
| 27 | base_timestamp         | int64  | what the records' count from: the first one's, in ms, or |
|    |                        |        | the delete horizon |
| 35 | max_timestamp          | int64  | |
| 43 | producer_id            | int64  | -1: not idempotent |
| 51 | producer_epoch         | int16  | |
| 53 | base_sequence          | int32  | |
| 57 | record_count           | int32  | |

Base offset and leader epoch lie outside the CRC, so that a broker can write them into a batch that
it otherwise keeps byte for byte.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple, TypeAlias

from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.errors import CorruptBatch, UnsupportedMagic
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.types import BytesLike, Epoch, Offset

HEADER_BYTES: Final = 61
LOG_OVERHEAD: Final = 12
"""The base offset and the batch length: what `batch_length` does not count."""
MAGIC: Final = 2
_LENGTH_MIN: Final = HEADER_BYTES - LOG_OVERHEAD

LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40
COMPRESSION_BITS: Final = 0x07
_CODEC_MAX: Final = int(max(Compression))

PLACE: Final = struct.Struct(">qii")
"""What a header begins with: the base offset, the batch length and the epoch."""
_LAYOUT: Final = struct.Struct(">qiibIhiqqqhii")
_BASE_OFFSET: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_TIMESTAMP: Final = struct.Struct(">q")
_MAGIC_AT: Final = 16
_CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
_MAX_TIMESTAMP_AT: Final = 35
_PRODUCER: Final = struct.Struct(">qhi")
_PRODUCER_AT: Final = 43
_SEQUENCE_MASK: Final = 0x7FFF_FFFF


class BatchHeader(NamedTuple):
    """A batch's header as it lies there. A tuple: made once a batch on the hot path, in 0.3 µs."""

    base_offset: Offset
    batch_length: int
    partition_leader_epoch: Epoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @classmethod
    def open(
        cls,
        *,
        base_offset: Offset,
        epoch: Epoch,
        attributes: int,
        base_timestamp: int,
        max_timestamp: int,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        record_count: int,
    ) -> "BatchHeader":
        """For a batch without gaps that is to be built: its length and CRC are not known yet."""
        return cls(
            base_offset=base_offset,
            batch_length=0,
            partition_leader_epoch=epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=record_count - 1,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=record_count,
        )

    @property
    def size_bytes(self) -> int:
        """The whole batch, header included."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def last_sequence(self) -> int:
        """The last record's sequence, which goes on at 0 after 2^31 - 1; -1 if there are none."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & _SEQUENCE_MASK

    @property
    def compression(self) -> Compression:
        return Compression(self.attributes & COMPRESSION_BITS)

    @property
    def is_log_append_time(self) -> bool:
        """Whether every record's time is `max_timestamp`, whatever it carries itself."""
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        """Whether this is a transaction's marker: it has an offset, and no application's record."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """From when on compaction may drop the deletions in it; `None` before its first one."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


Fields: TypeAlias = tuple[Offset, int, Epoch, int, int, int, int, int, int, int, int, int, int]
"""Those of a `BatchHeader`."""


def pack_header(header: BatchHeader) -> bytes:
    return _LAYOUT.pack(*header)


def build_batch(section: BytesLike, header: BatchHeader) -> bytes:
    """The batch of this compressed records section, and of a header without its length and CRC."""
    head = pack_header(header._replace(batch_length=HEADER_BYTES - LOG_OVERHEAD + len(section)))
    counted = head[ATTRIBUTES_AT:]
    crc = _CRC.pack(crc32c(section, crc32c(counted)))
    return b"".join((head[:_CRC_AT], crc, counted, section))


def read_header(data: BytesLike, at: int = 0) -> BatchHeader:
    """The header at `at`; the records behind it need not be there.

    Raises `UnsupportedMagic` for another format, and `CorruptBatch` for a header that is cut off
    or says what cannot be.
    """
    return header_of(read_fields(data, at))


def read_fields(data: BytesLike, at: int = 0) -> Fields:
    """As `read_header`, but a plain tuple: it is taken apart in a third of the time."""
    if len(data) - at < HEADER_BYTES:
        raise _short_header(data, at)
    fields: Fields = _LAYOUT.unpack_from(data, at)
    base_offset, length, _, magic, _, attributes, delta, _, _, _, _, _, count = fields
    if (
        magic != MAGIC
        or length < _LENGTH_MIN
        or (base_offset | delta | count) < 0
        or attributes & COMPRESSION_BITS > _CODEC_MAX
    ):
        raise _bad_header(header_of(fields), at)
    return fields


def header_of(fields: Fields) -> BatchHeader:
    """The header with these fields."""
    # Not by `_make`, which checks the length of what has that length.
    return tuple.__new__(BatchHeader, fields)


def _short_header(data: BytesLike, at: int) -> CorruptBatch:
    # Older formats have shorter entries, with the magic at the same place.
    if len(data) - at > _MAGIC_AT and data[at + _MAGIC_AT] != MAGIC:
        return UnsupportedMagic(at, data[at + _MAGIC_AT])
    return CorruptBatch(at, f"{len(data) - at} bytes are no header")


def _bad_header(header: BatchHeader, at: int) -> CorruptBatch:
    if header.magic != MAGIC:
        return UnsupportedMagic(at, header.magic)
    if header.batch_length < _LENGTH_MIN:
        return CorruptBatch(at, f"its length is {header.batch_length}")
    if header.attributes & COMPRESSION_BITS > _CODEC_MAX:
        return CorruptBatch(at, f"its codec is {header.attributes & COMPRESSION_BITS}")
    return CorruptBatch(
        at,
        f"{header.record_count} records, from offset {header.base_offset}"
        f" to {header.last_offset_delta} after it",
    )


def check_crc(data: BytesLike, header: BatchHeader, at: int = 0) -> None:
    """Raise `CorruptBatch` unless the whole batch is there and is what its CRC was taken of."""
    end = at + header.batch_length + LOG_OVERHEAD
    if end > len(data):
        raise CorruptBatch(at, f"{header.size_bytes} bytes, of which {len(data) - at} are there")
    check_crc_of(memoryview(data)[at + ATTRIBUTES_AT : end], header.crc, at)


def check_crc_of(checked: memoryview, wanted: int, at: int = 0) -> None:
    """As `check_crc`, of what is behind the CRC in a batch that is all there."""
    crc = crc32c(checked)
    if crc != wanted:
        raise CorruptBatch(at, f"its CRC is {wanted:#010x}, its bytes' is {crc:#010x}")


def check_batch(data: BytesLike, at: int = 0) -> BatchHeader:
    """The header of a batch as a producer may send it, checked as far as no record is read.

    Its offsets must have no gaps: those come only with compaction.
    """
    header = read_header(data, at)
    check_crc(data, header, at)
    if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
        raise CorruptBatch(
            at, f"{header.record_count} records with offsets up to {header.last_offset_delta}"
        )
    return header


def iter_headers(data: BytesLike) -> Iterator[tuple[int, BatchHeader]]:
    """The batches that lie back to back in `data`, as positions and headers; CRCs are not checked.

    A last batch that is not all there ends it silently: a fetch response may be cut anywhere.
    """
    at, end = 0, len(data)
    while end - at >= HEADER_BYTES:
        fields = read_fields(data, at)
        next_at = at + fields[1] + LOG_OVERHEAD
        if next_at > end:
            return
        yield at, header_of(fields)
        at = next_at


def place(data: bytearray | memoryview, at: int, *, base_offset: Offset, epoch: Epoch) -> None:
    """Write where the batch stands into it; its CRC leaves these two fields out."""
    _BASE_OFFSET.pack_into(data, at, base_offset)
    _INT32.pack_into(data, at + LOG_OVERHEAD, epoch)


def place_log_append_time(data: bytearray | memoryview, at: int, timestamp_ms: int) -> None:
    """Give all records of the batch the broker's time, and the batch a new CRC."""
    (attributes,) = _ATTRIBUTES.unpack_from(data, at + ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(data, at + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_BIT)
    place_largest_time(data, at, timestamp_ms)


def place_largest_time(data: bytearray | memoryview, at: int, timestamp_ms: int) -> None:
    """Write the largest timestamp of the batch's records into it, and give it a new CRC."""
    _TIMESTAMP.pack_into(data, at + _MAX_TIMESTAMP_AT, timestamp_ms)
    seal(data, at)


def place_producer(
    data: bytearray | memoryview,
    at: int,
    *,
    producer_id: int,
    epoch: int,
    sequence: int,
    is_transactional: bool = False,
) -> None:
    """Write who produced the batch and its first sequence into it, and give it a new CRC."""
    if is_transactional:
        # The lower byte of the attributes has all the bits that are in use.
        data[at + ATTRIBUTES_AT + 1] |= TRANSACTIONAL_BIT
    _PRODUCER.pack_into(data, at + _PRODUCER_AT, producer_id, epoch, sequence)
    seal(data, at)


def says_transactional(data: BytesLike | None) -> bool:
    """Whether what should be a batch says that it is of a transaction. It is not checked."""
    # The lower byte, as above.
    at = ATTRIBUTES_AT + 1
    return data is not None and len(data) > at and bool(data[at] & TRANSACTIONAL_BIT)


def seal(data: bytearray | memoryview, at: int) -> None:
    """Write the CRC of a batch that is otherwise complete."""
    (length,) = _INT32.unpack_from(data, at + _BASE_OFFSET.size)
    end = at + LOG_OVERHEAD + length
    _CRC.pack_into(data, at + _CRC_AT, crc32c(memoryview(data)[at + ATTRIBUTES_AT : end]))
