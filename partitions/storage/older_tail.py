"""Telling what an older segment has left from damage, behind the end of a segment.

A file that is written over (`recycled_file.py`) is longer than its segment until that is complete.
What follows the end may begin anywhere in an old batch, and then looks as if a crash had torn it.
But the next batches that are whole tell: old ones have smaller offsets than the file's name says,
and behind one that is damaged there are others of this segment.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.recycled_file import spoilt
from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    read_header,
)
from tidemark.protocol.types import Offset

LEFT_BY_OLDER: Final = (
    "from here on it is what an older segment has left, in a file that is used again"
)
_MAGIC: Final = bytes([MAGIC])
_MAGIC_AT: Final = 16
_LOOK_BYTES: Final = 4 << 20
"""So far is looked for a whole batch: one may have been written over in its middle."""
_TRIES_MAX: Final = 1000
"""So many CRCs are taken: a record may hold whatever looks like batches."""


def is_left_by_older(file: File, position: int, base_offset: Offset) -> bool:
    """Whether what lies in a segment's file from a position on, where its batches do not go on, is
    of a segment before it. Reads some 4 MiB."""
    # Two: a base offset is in no CRC, so that of a single one may be what is damaged.
    found = list(islice(_whole_batches(file, position), 2))
    return bool(found) and all(header.next_offset <= base_offset for header in found)


def _whole_batches(file: File, position: int) -> Iterator[BatchHeader]:
    """Batches whose CRC is right, or was and is spoilt, wherever they begin."""
    end = file.size()
    chunk = file.pread(min(_LOOK_BYTES, end - position), position)
    at, tries = -1, 0
    while tries < _TRIES_MAX:
        at = chunk.find(_MAGIC, at + 1 + _MAGIC_AT) - _MAGIC_AT
        if at < 0 or at + HEADER_BYTES > len(chunk):
            return
        header = _header_at(chunk, at)
        if header is None or position + at + header.size_bytes > end:
            continue
        tries += 1
        batch = file.pread(header.size_bytes, position + at)
        if crc32c(batch[ATTRIBUTES_AT:]) in (header.crc, spoilt(header.crc)):
            yield header
            at += header.size_bytes - 1


def _header_at(chunk: bytes, at: int) -> BatchHeader | None:
    try:
        return read_header(chunk, at)
    except CorruptBatch:
        return None
