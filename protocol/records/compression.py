"""Which codec a record batch has, and the way to what it does.

The codecs are imported when one of them is first used: a broker stores batches as they come, and
hardly ever looks into one, and the two libraries are a hundredth of its start.
"""

from enum import IntEnum
from typing import Final

from tidemark.protocol.types import BytesLike

DECOMPRESSED_BYTES_MAX: Final = 128 << 20
"""What one batch's records may inflate to unless the caller says otherwise."""


class Compression(IntEnum):
    """The codec in the lowest three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Compression, data: BytesLike, level: int | None = None) -> bytes:
    """`data` in the framing that Kafka's Java client writes; snappy has no `level`."""
    if codec is Compression.NONE:
        return bytes(data)
    from tidemark.protocol.records import compression_codecs

    return compression_codecs.compress(codec, data, level)


def decompress(codec: Compression, data: BytesLike, *, bytes_max: int, at: int = 0) -> bytes:
    """What `compress` was given. `at` is where `data` lies, for the error.

    Raises `CorruptBatch` for bytes that the codec does not accept, and for more than `bytes_max`.
    """
    if codec is Compression.NONE and len(data) <= bytes_max:
        return bytes(data)
    from tidemark.protocol.records import compression_codecs

    return compression_codecs.decompress(codec, data, bytes_max=bytes_max, at=at)
