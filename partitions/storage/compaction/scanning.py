"""The records of a batch, as far as compaction looks into them: without making them.

A record is a row of where it lies and what decides over it. Its value and its headers are passed
over.
"""

from typing import Final, NamedTuple

from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.compression import DECOMPRESSED_BYTES_MAX
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import records_section
from tidemark.protocol.records.varints import read_varint
from tidemark.protocol.types import BytesLike


class ScannedRecord(NamedTuple):
    """Positions are in the uncompressed records section."""

    start: int
    end: int
    after_timestamp: int
    """Where what follows the timestamp delta begins."""
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    is_tombstone: bool
    """It has a key and no value: the key is deleted."""


class Unreadable(Exception):
    """What is in a batch is no records. Nobody can read it: it is kept as it is."""


_new: Final = tuple.__new__


def scan_batch(
    batch: BytesLike, header: BatchHeader, *, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> tuple[bytes, list[ScannedRecord]]:
    """The uncompressed section and its records. Raises `Unreadable`. The CRC has been checked."""
    try:
        section = records_section(batch, header, 0, bytes_max=bytes_max)
        return section, scan_section(section, header.record_count, header.last_offset_delta)
    except (CorruptBatch, IndexError, ValueError) as error:
        raise Unreadable(str(error)) from error


def scan_section(data: bytes, count: int, last_offset_delta: int) -> list[ScannedRecord]:
    """Raises `IndexError` or `ValueError` where the bytes are no such records.

    The one-byte form of each varint is read in place, as in `records`.
    """
    found: list[ScannedRecord] = []
    size = len(data)
    at = 0
    for _ in range(count):
        start = at
        byte = data[at]
        if byte < 0x80:
            length, at = (byte >> 1) ^ -(byte & 1), at + 1
        elif data[at + 1] < 0x80 and not byte & 1:  # most records' length
            length, at = (byte & 0x7F) >> 1 | data[at + 1] << 6, at + 2
        else:
            length, at = read_varint(data, at)
        end = at + length
        if not at < end <= size:
            raise ValueError(f"a record of {length} bytes")
        at += 1  # attributes
        byte = data[at]
        if byte < 0x80:
            timestamp_delta, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            timestamp_delta, at = read_varint(data, at)
        after_timestamp = at
        byte = data[at]
        if byte < 0x80:
            offset_delta, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            offset_delta, at = read_varint(data, at)
        byte = data[at]
        if byte < 0x80:
            length, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            length, at = read_varint(data, at)
        if length < 0:
            key = None
        else:
            key = data[at : at + length]
            at += length
        if at >= end or not 0 <= offset_delta <= last_offset_delta:
            raise ValueError(f"a record whose key ends {at - end:+} bytes from its end")
        # The length of the value is odd in its zig-zag form if it is negative: there is none.
        is_tombstone = key is not None and data[at] == 1
        row = (start, end, after_timestamp, timestamp_delta, offset_delta, key, is_tombstone)
        found.append(_new(ScannedRecord, row))
        at = end
    if at != size:
        raise ValueError(f"{size - at} bytes after the last of {count} records")
    return found
