"""The records sections of many batches as one buffer."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import (
    COMPRESSION_BITS,
    HEADER_BYTES,
    LOG_OVERHEAD,
    BatchHeader,
)
from tidemark.protocol.records.records import records_section
from tidemark.protocol.types import BytesLike

Located: TypeAlias = tuple[int, BatchHeader]
"""A batch: the position of its header, and the header."""


class Section(NamedTuple):
    """Where a batch's uncompressed records lie in the joined buffer."""

    header: BatchHeader
    begin: int
    end: int


def join_sections(
    data: BytesLike, batches: Sequence[Located], *, bytes_max: int
) -> tuple[BytesLike, list[Section]]:
    """One buffer with the records of all `batches`, uncompressed, and where each has its own.

    It is a view of `data` if nothing is compressed. Raises `CorruptBatch`, also over `bytes_max`.
    """
    if not any(header.attributes & COMPRESSION_BITS for _, header in batches):
        return _view(data, batches, bytes_max)
    parts: list[bytes] = []
    sections: list[Section] = []
    at = 0
    for begin, header in batches:
        part = records_section(data, header, begin, bytes_max=bytes_max - at)
        parts.append(part)
        sections.append(Section(header, at, at + len(part)))
        at += len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts), sections


def _view(
    data: BytesLike, batches: Sequence[Located], bytes_max: int
) -> tuple[memoryview, list[Section]]:
    (first, _), (last, header) = batches[0], batches[-1]
    end = last + header.size_bytes
    if end - first > bytes_max:
        raise CorruptBatch(first, f"{end - first} bytes of batches, over {bytes_max}")
    return memoryview(data)[first:end], [
        Section(header, at - first + HEADER_BYTES, at - first + header.batch_length + LOG_OVERHEAD)
        for at, header in batches
    ]
