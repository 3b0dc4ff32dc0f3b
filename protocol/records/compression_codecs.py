"""The codecs of a record batch, each with a bound on what it may inflate to: see `compression.py`.

The bound holds before memory is taken: a few bytes that claim, or turn into, gigabytes cost no
more than `bytes_max` and end as `CorruptBatch`. gzip is the standard library's zlib, which was as
fast as cramjam's to read and twice as fast to write.
"""

import struct
import zlib
from collections.abc import Iterator
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

import cramjam
import zstandard

from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.types import BytesLike

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 << 10
_BLOCK_LENGTH: Final = struct.Struct(">i")

# The most that one input byte can become. An LZ4 match grows by 255 with each byte of its length;
# the best that Snappy can do is a copy of 64 bytes written in 3.
_LZ4_RATIO_MAX: Final = 255
_SNAPPY_RATIO_MAX: Final = 22

_GZIP_WINDOW_BITS: Final = 16 + zlib.MAX_WBITS  # 16: with gzip's header and trailer
_GZIP_PIECE_BYTES: Final = 256
_ZSTD_LEVEL: Final = 3
_ZSTD_SKIPPABLE: Final = struct.Struct("<II")
_ZSTD_SKIPPABLE_MAGIC: Final = 0x184D2A50
_ZSTD_ROOM_MIN: Final = 64 << 10
_ZSTD_RATIO_GUESS: Final = 16
"""What a frame that does not say inflates to. JSON does 8 to 16 times; much more room is slower."""


class _TooLarge(Exception):
    """The output would pass the bound."""


def compress(codec: Compression, data: BytesLike, level: int | None = None) -> bytes:
    """As in `compression.py`."""
    match codec:
        case Compression.NONE:
            return bytes(data)
        case Compression.GZIP:
            deflate = zlib.compressobj(-1 if level is None else level, wbits=_GZIP_WINDOW_BITS)
            return deflate.compress(data) + deflate.flush()
        case Compression.SNAPPY:
            return _compress_xerial(memoryview(data))
        case Compression.LZ4:
            # Kafka's reader refuses linked blocks (KIP-57).
            lz4 = cramjam.lz4.Compressor(
                level=1 if level is None else level, content_checksum=False, block_linked=False
            )
            lz4.compress(bytes(data))  # it takes nothing else
            return bytes(lz4.finish())
        case Compression.ZSTD:
            zstd = zstandard.ZstdCompressor(level=_ZSTD_LEVEL if level is None else level)
            return zstd.compress(data)


def decompress(codec: Compression, data: BytesLike, *, bytes_max: int, at: int = 0) -> bytes:
    """As in `compression.py`."""
    view = memoryview(data)
    try:
        match codec:
            case Compression.NONE:
                return _bounded(bytes(view), bytes_max)
            case Compression.GZIP:
                return _decompress_gzip(view, bytes_max)
            case Compression.SNAPPY:
                return _decompress_snappy(view, bytes_max)
            case Compression.LZ4:
                return _decompress_lz4(view, bytes_max)
            case Compression.ZSTD:
                return _decompress_zstd(view, bytes_max)
    except _TooLarge:
        raise CorruptBatch(
            at, f"{codec.name.lower()} data of {len(view)} bytes inflates to over {bytes_max}"
        ) from None
    except (zlib.error, zstandard.ZstdError, cramjam.DecompressionError, ValueError) as error:
        raise CorruptBatch(at, f"not {codec.name.lower()} data: {error}") from error


def _bounded(data: bytes, bytes_max: int) -> bytes:
    if len(data) > bytes_max:
        raise _TooLarge
    return data


def _decompress_gzip(data: memoryview, bytes_max: int) -> bytes:
    out, position = _inflate_member(data, bytes_max, piece_bytes=len(data))
    if position == len(data):
        return out
    members, left = [out], bytes_max - len(out)
    while position < len(data):
        out, length = _inflate_member(data[position:], left, piece_bytes=_GZIP_PIECE_BYTES)
        members.append(out)
        position, left = position + length, left - len(out)
    return b"".join(members)


def _inflate_member(data: memoryview, bytes_max: int, *, piece_bytes: int) -> tuple[bytes, int]:
    """What the first member of `data` holds, and how long it is.

    zlib copies what is behind a member's end. So pieces begin small and grow: as a whole, the rest
    would be copied once for each of thousands of members.
    """
    inflate = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
    parts, position, left = [], 0, bytes_max
    while not inflate.eof:
        piece = data[position : position + piece_bytes]
        if not piece:
            raise ValueError("truncated")
        # One byte beyond the bound tells "just fits" from "too much"; zlib reads 0 as "no bound".
        parts.append(_bounded(inflate.decompress(piece, left + 1), left))
        position, left = position + len(piece), left - len(parts[-1])
        piece_bytes *= 2
    whole = parts[0] if len(parts) == 1 else b"".join(parts)
    return whole, position - len(inflate.unused_data)


def _compress_xerial(data: memoryview) -> bytes:
    """Blocks of 32 KiB with their lengths before them, behind a header: xerial's stream format."""
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, bytes_max: int) -> bytes:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(data, bytes_max)
    blocks: list[bytes] = []
    position, left = 0, bytes_max
    while position < len(data):
        if bytes(data[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            # The first stream's, or that of one which was joined to it.
            position = _within(data, position + len(_XERIAL_HEADER))
            continue
        if position + _BLOCK_LENGTH.size > len(data):
            raise ValueError("a block length is cut off")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise ValueError(f"a block of {length} bytes where {len(data) - position} are left")
        blocks.append(_decompress_snappy_block(data[position : position + length], left))
        left -= len(blocks[-1])
        position += length
    return b"".join(blocks)


def _decompress_snappy_block(data: memoryview, bytes_max: int) -> bytes:
    claimed = cramjam.snappy.decompress_raw_len(data)
    if claimed > bytes_max:
        raise _TooLarge
    if claimed > len(data) * _SNAPPY_RATIO_MAX:
        raise ValueError(f"{len(data)} bytes that claim to be {claimed}")
    return bytes(cramjam.snappy.decompress_raw(data))


def _decompress_lz4(data: memoryview, bytes_max: int) -> bytes:
    # Frames hardly ever say how long they are, so there is room for the most. It is mapped: a
    # bytearray is filled with zeros, 30 MB of them for a batch of 120 KB, and a mapping's pages are
    # there once the decoder writes to them. There is no empty mapping.
    most = len(data) * _LZ4_RATIO_MAX
    room = min(most, bytes_max)
    out = memoryview(mmap(-1, max(room, 1), flags=MAP_PRIVATE | MAP_ANONYMOUS))
    try:
        length = cramjam.lz4.decompress_into(data, out[:room])
    except cramjam.DecompressionError as error:
        if most > bytes_max and "whole buffer" in str(error):
            raise _TooLarge from None
        raise
    return bytes(out[:length])


def _decompress_zstd(data: memoryview, bytes_max: int) -> bytes:
    zstd = zstandard.ZstdDecompressor()
    frames, left = [], bytes_max
    for frame in _zstd_frames(data):
        frames.append(_decompress_zstd_frame(zstd, frame, left))
        left -= len(frames[-1])
    return frames[0] if len(frames) == 1 else b"".join(frames)


def _zstd_frames(data: memoryview) -> Iterator[memoryview]:
    """The frames of `data`, without those that are to be skipped (RFC 8878, section 3.1)."""
    start = 0
    while start < len(data) or not start:
        if len(data) - start >= _ZSTD_SKIPPABLE.size:
            magic, length = _ZSTD_SKIPPABLE.unpack_from(data, start)
            if magic & ~0xF == _ZSTD_SKIPPABLE_MAGIC:
                start = _within(data, start + _ZSTD_SKIPPABLE.size + length)
                continue
        end = _zstd_frame_end(data, start)
        yield data[start:end]
        start = end


def _zstd_frame_end(data: memoryview, start: int) -> int:
    """By the lengths of its blocks: the library reads one frame, and does not say where it ends."""
    at = start + zstandard.frame_header_size(data[start:])
    is_last = False
    while not is_last:
        block = int.from_bytes(data[at : _within(data, at + 3)], "little")
        is_last, is_run, length = bool(block & 1), block >> 1 & 3 == 1, block >> 3
        at += 3 + (1 if is_run else length)
    has_checksum = data[start + 4] >> 2 & 1
    return _within(data, at + 4 * has_checksum)


def _within(data: memoryview, end: int) -> int:
    if end > len(data):
        raise ValueError("truncated")
    return end


def _decompress_zstd_frame(
    zstd: zstandard.ZstdDecompressor, data: memoryview, bytes_max: int
) -> bytes:
    size = zstandard.frame_content_size(data)
    if size > bytes_max:
        raise _TooLarge
    if size >= 0:
        return zstd.decompress(data, allow_extra_data=False)
    # The frame does not say, as Java's never do. zstandard's stream reader takes a cut frame for a
    # whole one, so guess the room, and try again with more.
    # Where nothing may come any more an empty frame still may, and no room is read as "it says".
    room = max(1, min(max(_ZSTD_ROOM_MIN, len(data) * _ZSTD_RATIO_GUESS), bytes_max))
    while True:
        try:
            out = zstd.decompress(data, max_output_size=room, allow_extra_data=False)
            return _bounded(out, bytes_max)
        except zstandard.ZstdError:
            if room >= bytes_max:
                raise
            room = min(room * _ZSTD_RATIO_GUESS, bytes_max)
