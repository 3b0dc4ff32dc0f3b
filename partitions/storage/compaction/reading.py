"""Reading a segment from its beginning to its end, a megabyte at a time."""

from collections.abc import Callable, Iterator
from typing import Final

from tidemark.partitions.storage.files import Files, corrupt
from tidemark.partitions.storage.names import LOG_SUFFIX, file_name
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import HEADER_BYTES, BatchHeader, check_crc, read_header
from tidemark.protocol.types import Offset

CHUNK_BYTES: Final = 1 << 20

Pace = Callable[[int], None]
"""Told of bytes that were read or written; takes its time where that was too fast."""


def segment_path(directory: str, base_offset: Offset) -> str:
    return f"{directory}/{file_name(base_offset, LOG_SUFFIX)}"


def read_batches(
    files: Files, path: str, size_bytes: int, pace: Pace
) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch of a file with its header, its CRC checked.

    Raises `StorageError` for what is not sound: it must not become the one copy of it.
    """
    file = files.open_reader(path)
    position = 0
    wanted = CHUNK_BYTES
    while position < size_bytes:
        chunk = memoryview(file.pread(min(wanted, size_bytes - position), position))
        at, header = 0, None
        try:
            while len(chunk) - at >= HEADER_BYTES:
                header = read_header(chunk, at)
                if at + header.size_bytes > len(chunk):
                    break
                check_crc(chunk, header, at)
                yield header, chunk[at : at + header.size_bytes]
                at, header = at + header.size_bytes, None
        except CorruptBatch as error:
            raise corrupt(path, position + at, error.what) from error
        if at == 0 and (header is None or header.size_bytes > size_bytes - position):
            raise corrupt(path, position, "the file ends within a batch")
        pace(at)
        position += at
        wanted = max(CHUNK_BYTES, header.size_bytes if header is not None else 0)
