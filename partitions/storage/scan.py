"""Walking through a segment file by its batch headers."""

from collections.abc import Iterator
from typing import Final

from tidemark.partitions.storage.files import File
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import HEADER_BYTES, BatchHeader, read_header

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
