"""Records one by one, in plain Python: for the broker's own topics, the client's records, the CLI.

The records section of a batch is `record_count` of these, compressed as a whole:

| field           | type    | |
|-----------------|---------|---|
| length          | varint  | bytes that follow |
| attributes      | int8    | 0 |
| timestamp delta | varlong | from the batch's base timestamp, ms |
| offset delta    | varint  | from the batch's base offset |
| key length, key | varint  | -1: null |
| value length, value | varint | -1: null |
| header count    | varint  | then each: key length, key (UTF-8), value length (-1: null), value |

Varints are little-endian groups of seven bits of the zig-zag form: 0, -1, 1, -2 are 0, 1, 2, 3.

Example: value `hi`, no key, no headers, first of its batch:

    10 00 00 00 01 04 68 69 00      length 8, attributes, deltas 0 and 0, key -1, value 2, none
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.compression import (
    DECOMPRESSED_BYTES_MAX,
    Compression,
    compress,
    decompress,
)
from tidemark.protocol.records.header import (
    CONTROL_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    build_batch,
    check_crc,
    iter_headers,
)
from tidemark.protocol.records.varints import read_varint, varint
from tidemark.protocol.types import NO_EPOCH, NO_TIMESTAMP_MS, BytesLike, Epoch, Offset

Header = tuple[str, bytes | None]

_NULL: Final = varint(-1)
_NULL_BYTE: Final = _NULL[0]
_FIRST: Final = Offset(0)


class Record(NamedTuple):
    """One record. A tuple, because a frozen dataclass takes five times as long to make."""

    offset: Offset = _FIRST
    timestamp_ms: int = NO_TIMESTAMP_MS
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()


class RecordLike(Protocol):
    """What a batch can be built of."""

    @property
    def timestamp_ms(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[Header]: ...


def decode_records(
    data: BytesLike, *, decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> list[Record]:
    """The records of all whole batches in `data`, except transaction markers.

    The bound is on each batch. Raises `CorruptBatch`.
    """
    records: list[Record] = []
    for at, header in iter_headers(data):
        if not header.is_control:
            records += decode_batch(data, header, at, decompressed_bytes_max=decompressed_bytes_max)
    return records


def decode_batch(
    data: BytesLike,
    header: BatchHeader,
    at: int = 0,
    *,
    decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
) -> list[Record]:
    """The records of the one batch at `at`, markers included, after checking its CRC."""
    check_crc(data, header, at)
    section = records_section(data, header, at, bytes_max=decompressed_bytes_max)
    try:
        return _decode_section(section, header)
    except (IndexError, ValueError) as error:
        raise CorruptBatch(at, f"its records do not parse: {error}") from error


def records_section(data: BytesLike, header: BatchHeader, at: int, *, bytes_max: int) -> bytes:
    """What follows the header, uncompressed."""
    view = memoryview(data)[at + HEADER_BYTES : at + header.size_bytes]
    return decompress(header.compression, view, bytes_max=bytes_max, at=at)


def _decode_section(data: bytes, header: BatchHeader) -> list[Record]:
    """The records of an uncompressed section.

    The one-byte form of each varint is read in place: a call for each would double the time.
    Raises `IndexError` and `ValueError`, which the caller gives their meaning.
    """
    base_offset = header.base_offset
    base_timestamp = header.base_timestamp
    last_offset_delta = header.last_offset_delta
    append_time = header.max_timestamp if header.is_log_append_time else None
    records: list[Record] = []
    size = len(data)
    at = 0
    for _ in range(header.record_count):
        length, at = read_varint(data, at)
        end = at + length
        if not at < end <= size:
            raise ValueError(f"a record of {length} bytes")
        at += 1  # attributes: no bit is in use
        byte = data[at]
        if byte < 0x80:
            timestamp, at = base_timestamp + ((byte >> 1) ^ -(byte & 1)), at + 1
        else:
            delta, at = read_varint(data, at)
            timestamp = base_timestamp + delta
        byte = data[at]
        if byte < 0x80:
            offset_delta, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            offset_delta, at = read_varint(data, at)
        if not 0 <= offset_delta <= last_offset_delta:
            raise ValueError(f"offset delta {offset_delta} of {last_offset_delta}")
        if data[at] == _NULL_BYTE:
            key, at = None, at + 1
        else:
            key, at = _read_bytes(data, at)
        value, at = _read_bytes(data, at)
        if data[at]:
            headers, at = _read_headers(data, at, end)
        else:
            headers, at = (), at + 1
        if at != end:
            raise ValueError(f"a record that ends {at - end:+} bytes from where it says")
        if append_time is not None:
            timestamp = append_time
        records.append(Record._make((base_offset + offset_delta, timestamp, key, value, headers)))
    if at != size:
        raise ValueError(f"{size - at} bytes after the last of {header.record_count}")
    return records


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = read_varint(data, at)
    if length < 0:
        if length != -1:
            raise ValueError(f"length {length}")
        return None, at
    end = at + length
    return data[at:end], end


def _read_headers(data: bytes, at: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, at = read_varint(data, at)
    # Each takes two bytes at the least.
    if not 0 <= count <= (end - at) // 2:
        raise ValueError(f"{count} headers in {end - at} bytes")
    headers: list[Header] = []
    for _ in range(count):
        key, at = _read_bytes(data, at)
        value, at = _read_bytes(data, at)
        if key is None:
            raise ValueError("a header without a key")
        # Java's client puts the replacement character where the bytes are not UTF-8; so do we,
        # rather than refuse to read past such a record for ever.
        headers.append((key.decode(errors="replace"), value))
    return tuple(headers), at


def encode_batch(
    records: Sequence[RecordLike],
    *,
    base_offset: Offset = _FIRST,
    epoch: Epoch = NO_EPOCH,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    is_log_append_time: bool = False,
) -> bytes:
    """One batch with these records at `base_offset` and after, without gaps.

    `records` must not be empty. Their own offsets, if they have any, do not count.
    """
    assert records
    timestamps = [record.timestamp_ms for record in records]
    section = encode_section(records, base_timestamp=timestamps[0])
    return build_batch(
        compress(compression, section, level),
        BatchHeader.open(
            base_offset=base_offset,
            epoch=epoch,
            attributes=compression
            | (LOG_APPEND_TIME_BIT if is_log_append_time else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0),
            base_timestamp=timestamps[0],
            max_timestamp=max(timestamps),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
    )


def encode_section(records: Sequence[RecordLike], *, base_timestamp: int) -> bytes:
    """What follows a batch's header, before compression."""
    parts: list[bytes] = []
    for offset_delta, record in enumerate(records):
        key, value, headers = record.key, record.value, record.headers
        body = b"".join(
            (
                b"\x00",
                varint(record.timestamp_ms - base_timestamp),
                varint(offset_delta),
                _NULL if key is None else varint(len(key)) + key,
                _NULL if value is None else varint(len(value)) + value,
                _encode_headers(headers) if headers else b"\x00",
            )
        )
        parts += (varint(len(body)), body)
    return b"".join(parts)


def _encode_headers(headers: Sequence[Header]) -> bytes:
    parts = [varint(len(headers))]
    for name, value in headers:
        key = name.encode()
        parts += (varint(len(key)), key)
        parts.append(_NULL if value is None else varint(len(value)) + value)
    return b"".join(parts)
