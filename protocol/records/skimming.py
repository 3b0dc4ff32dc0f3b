"""One thing of each record in a batch, where there is no time to read all of it.

The broker looks into a client's batch in two cases: whether each record has a key, where the topic
is compacted, and which record is the first of a time. A batch of a megabyte, compressed, may hold a
million records, and to make them takes a broker's loop seconds; to go from length to length takes a
third to a half of that.

How a record is laid out is in `records`. The look for keys refuses what is refused there, for
compaction reads the batch later; the look for times goes no further than it has to.
"""

from collections.abc import Iterator
from typing import Final

from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.compression import DECOMPRESSED_BYTES_MAX
from tidemark.protocol.records.header import BatchHeader, check_crc
from tidemark.protocol.records.records import records_section
from tidemark.protocol.records.varints import read_varint
from tidemark.protocol.types import BytesLike, Offset

KEYLESS_MAX: Final = 100
"""So many records without a key are told apart. A few bytes that are compressed hold a million, and
the answer to who sent them would name each."""
_NULL: Final = -1
_TIME_MIN: Final = -(2**63)
_TIME_MAX: Final = 2**63 - 1


def keyless(data: BytesLike, header: BatchHeader, at: int = 0) -> list[int]:
    """Which records of the batch at `at` have no key, by their places in it: the first
    `KEYLESS_MAX` of them, behind which it does not look. Raises `CorruptBatch`."""
    check_crc(data, header, at)
    section = records_section(data, header, at, bytes_max=DECOMPRESSED_BYTES_MAX)
    try:
        return _keyless(section, header)
    except (IndexError, ValueError) as error:
        raise CorruptBatch(at, f"its records do not parse: {error}") from error


def times(data: BytesLike, header: BatchHeader, at: int = 0) -> Iterator[tuple[int, Offset]]:
    """When each record of the batch at `at` was made, in ms, and its offset. Raises `CorruptBatch`
    when it comes to what is none, or is of no time that an answer could state. The CRC has been
    checked."""
    section = records_section(data, header, at, bytes_max=DECOMPRESSED_BYTES_MAX)
    try:
        yield from _times(section, header)
    except (IndexError, ValueError) as error:
        raise CorruptBatch(at, f"its records do not parse: {error}") from error


def _keyless(data: bytes, header: BatchHeader) -> list[int]:
    """As `records` decodes them, and refusing the same; but nothing is made of them."""
    found: list[int] = []
    last_offset_delta, record_count = header.last_offset_delta, header.record_count
    size, at = len(data), 0
    for index in range(record_count):
        # One-byte varints are read in place: a call for each would double the time.
        byte = data[at]
        if byte < 0x80:
            length, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            length, at = read_varint(data, at)
        end = at + length
        if not at < end <= size:
            raise ValueError(f"a record of {length} bytes")
        at += 1  # attributes
        if data[at] < 0x80:
            at += 1  # the timestamp's delta
        else:
            _, at = read_varint(data, at)
        byte = data[at]
        if byte < 0x80:
            offset_delta, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            offset_delta, at = read_varint(data, at)
        if not 0 <= offset_delta <= last_offset_delta:
            raise ValueError(f"offset delta {offset_delta} of {last_offset_delta}")
        byte = data[at]
        if byte < 0x80 and not byte & 1:
            at += 1 + (byte >> 1)
        else:
            has_key, at = _skip(data, at)
            if not has_key:
                found.append(index)
                if len(found) == KEYLESS_MAX:
                    return found
        byte = data[at]
        if byte < 0x80 and not byte & 1:
            at += 1 + (byte >> 1)
        else:
            _, at = _skip(data, at)
        at = at + 1 if not data[at] else _skip_headers(data, at, end)
        if at != end:
            raise ValueError(f"a record that ends {at - end:+} bytes from where it says")
    if at != size:
        raise ValueError(f"{size - at} bytes after the last of {record_count}")
    return found


def _skip(data: bytes, at: int) -> tuple[bool, int]:
    """Whether there is a value at `at`, or null, and where it ends."""
    length, at = read_varint(data, at)
    if length < _NULL:
        raise ValueError(f"length {length}")
    return length != _NULL, at + max(length, 0)


def _skip_headers(data: bytes, at: int, end: int) -> int:
    count, at = read_varint(data, at)
    # Each takes two bytes at the least.
    if not 0 <= count <= (end - at) // 2:
        raise ValueError(f"{count} headers in {end - at} bytes")
    for _ in range(count):
        has_name, at = _skip(data, at)
        if not has_name:
            raise ValueError("a header without a key")
        _, at = _skip(data, at)
    return at


def _times(data: bytes, header: BatchHeader) -> Iterator[tuple[int, Offset]]:
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    last_offset_delta = header.last_offset_delta
    append_time = header.max_timestamp if header.is_log_append_time else None
    size, at = len(data), 0
    for _ in range(header.record_count):
        byte = data[at]
        if byte < 0x80:
            length, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            length, at = read_varint(data, at)
        end = at + length
        if not at < end <= size:
            raise ValueError(f"a record of {length} bytes")
        at += 1  # attributes
        byte = data[at]
        if byte < 0x80:
            delta, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            delta, at = read_varint(data, at)
        offset_delta, at = read_varint(data, at)
        if not 0 <= offset_delta <= last_offset_delta:
            raise ValueError(f"offset delta {offset_delta} of {last_offset_delta}")
        timestamp = base_timestamp + delta if append_time is None else append_time
        if not _TIME_MIN <= timestamp <= _TIME_MAX:
            raise ValueError(f"timestamp {timestamp}")
        yield timestamp, Offset(base_offset + offset_delta)
        at = end
    if at != size:
        raise ValueError(f"{size - at} bytes after the last of {header.record_count}")
