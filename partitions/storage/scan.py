"""Walking through a segment file by its batch headers."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from tidemark.partitions.storage.files import File
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import (
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
    read_header,
)
from tidemark.protocol.types import Offset

_CHUNK_BYTES: Final = 4096
"""One index interval: enough for all headers between two index entries when batches are small,
and little waste when each batch is larger than this."""


def iter_batches(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """The batches that lie between two positions of a file, the first of which starts one.

    Only headers are read; no CRC is checked. Raises `CorruptBatch` with the position in the file
    where something else than a whole batch begins. A length of 0, as in a tail that the file
    system filled with zeros, is not a batch.
    """
    chunk, chunk_position = b"", position
    while position < end:
        at = position - chunk_position
        if at + HEADER_BYTES > len(chunk):
            chunk = file.pread(min(_CHUNK_BYTES, end - position), position)
            chunk_position, at = position, 0
        try:
            header = read_header(chunk, at)
        except CorruptBatch as error:
            raise CorruptBatch(position, error.what) from None
        if position + header.size_bytes > end:
            raise CorruptBatch(
                position, f"a batch of {header.size_bytes} bytes, {end - position} are left"
            )
        yield position, header
        position += header.size_bytes


_PLACE: Final = Struct(">qi11xi")
"""Base offset, batch length and last offset delta: what looking for an offset needs."""


def find_batch(
    file: File, position: int, end: int, offset: int, *, after: int = -1
) -> tuple[int, Offset] | None:
    """Position and base offset of the first batch that ends at or after `offset`, and behind the
    position `after`, if there is one.

    Does what `iter_batches` can do, in a quarter of the time: every fetch looks for an offset, and
    walks on average over half an index interval of small batches. It stops where a length is none;
    a batch that is wrong otherwise is noticed by who reads it.
    """
    unpack_from = _PLACE.unpack_from
    while position < end:
        chunk = file.pread(min(_CHUNK_BYTES, end - position), position)
        at, last_at = 0, len(chunk) - HEADER_BYTES
        if last_at < 0:
            raise CorruptBatch(position, f"{len(chunk)} bytes are no header")
        while at <= last_at:
            base_offset, batch_length, last_offset_delta = unpack_from(chunk, at)
            if batch_length < HEADER_BYTES - LOG_OVERHEAD:
                raise CorruptBatch(position + at, f"its length is {batch_length}")
            next_at = at + batch_length + LOG_OVERHEAD
            if base_offset + last_offset_delta >= offset and position + next_at > after:
                return position + at, base_offset
            at = next_at
        position += at
    return None
