import gzip
import random
import resource
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress

import cramjam
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from tests.protocol.records.strategies import CODECS
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.compression import Compression, compress, decompress

MB = 1 << 20


@given(codec=CODECS, data=st.binary(max_size=500), repeats=st.integers(1, 300))
def test_what_is_compressed_comes_back(codec: Compression, data: bytes, repeats: int) -> None:
    data *= repeats
    assert decompress(codec, compress(codec, data), bytes_max=len(data)) == data


@given(codec=CODECS, data=st.binary(min_size=1, max_size=2000))
def test_one_byte_over_the_bound_is_refused(codec: Compression, data: bytes) -> None:
    with pytest.raises(CorruptBatch):
        decompress(codec, compress(codec, data), bytes_max=len(data) - 1)


@given(codec=CODECS, data=st.binary(max_size=300), cut=st.integers(0, 300))
def test_garbage_is_a_corrupt_batch_or_bytes(codec: Compression, data: bytes, cut: int) -> None:
    for garbage in (data, compress(codec, data)[:cut], compress(codec, data)[:cut] + data):
        with suppress(CorruptBatch):
            assert len(decompress(codec, garbage, bytes_max=MB)) <= MB


@pytest.mark.parametrize("codec", [c for c in Compression if c != Compression.NONE])
def test_a_cut_stream_is_refused_not_shortened(codec: Compression) -> None:
    whole = compress(codec, b"some words, and some words again" * 10)
    with pytest.raises(CorruptBatch):
        decompress(codec, whole[:-3], bytes_max=MB)


@pytest.mark.parametrize("size", [0, 5, 32 << 10, (32 << 10) + 1, 100_000])
def test_snappy_is_read_raw_as_librdkafka_may_write_it(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    raw = bytes(cramjam.snappy.compress_raw(data[:size]))
    assert decompress(Compression.SNAPPY, raw, bytes_max=size) == data[:size]


def test_snappy_is_written_in_xerial_blocks_of_32_kib() -> None:
    stream = compress(Compression.SNAPPY, bytes(33 << 10))
    assert stream[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    (first,) = struct.unpack_from(">i", stream, 16)
    assert cramjam.snappy.decompress_raw_len(stream[20 : 20 + first]) == 32 << 10


def test_lz4_frames_have_independent_blocks() -> None:
    frame = compress(Compression.LZ4, bytes(200_000))
    assert frame[:4] == b"\x04\x22\x4d\x18"
    assert frame[4] & 0x20, "KIP-57: Kafka's reader refuses linked blocks"


def test_memory_is_touched_for_what_a_frame_holds_not_for_what_it_could() -> None:
    data = random.Random(1).randbytes(MB)
    frame = compress(Compression.LZ4, data)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    assert decompress(Compression.LZ4, frame, bytes_max=128 * MB) == data
    pages = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    assert pages * resource.getpagesize() < 8 * MB


def test_zstd_without_a_content_size_is_read() -> None:
    # Java's client streams, so its frames do not say how long they are.
    data = b"streamed" * 100_000
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(data)
    assert decompress(Compression.ZSTD, frame, bytes_max=len(data)) == data


def zstd_bomb() -> bytes:
    return zstandard.ZstdCompressor().compress(bytes(512 * MB))


def sized_zstd_lie() -> bytes:
    """A frame header that promises 2^60 bytes, and no data."""
    return struct.pack("<IBBQ", 0xFD2FB528, 0xC0, 0x50, 1 << 60)


def gzip_bomb() -> bytes:
    deflate = zlib.compressobj(1, wbits=31)
    block = bytes(16 * MB)
    return b"".join([deflate.compress(block) for _ in range(8)]) + deflate.flush()


def lz4_bomb() -> bytes:
    lz4 = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
    block = bytes(16 * MB)
    for _ in range(16):
        lz4.compress(block)
    return bytes(lz4.finish())


def snappy_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(16 * MB)))
    return (
        b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
        + (struct.pack(">i", len(block)) + block) * 64
    )


def snappy_lie() -> bytes:
    return b"\xff\xff\xff\xff\x0f" + bytes(20)


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        (Compression.ZSTD, zstd_bomb),
        (Compression.ZSTD, sized_zstd_lie),
        (Compression.GZIP, gzip_bomb),
        (Compression.LZ4, lz4_bomb),
        (Compression.SNAPPY, snappy_bomb),
        (Compression.SNAPPY, snappy_lie),
    ],
)
def test_a_bomb_is_refused_quickly_and_in_little_memory(
    codec: Compression, bomb: Callable[[], bytes]
) -> None:
    data, bound = bomb(), 8 * MB
    tracemalloc.start()
    started = time.process_time()
    with pytest.raises(CorruptBatch):
        decompress(codec, data, bytes_max=bound)
    seconds = time.process_time() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * bound
    assert seconds < 1


def in_frames(
    codec: Compression, parts: list[bytes], *, says_size: bool = True, checks: bool = False
) -> bytes:
    """Each part compressed by itself, as what writes them in parallel does."""
    if codec is Compression.GZIP:
        return b"".join(map(gzip.compress, parts))
    if codec is Compression.SNAPPY:
        return b"".join(compress(codec, part) for part in parts)
    zstd = zstandard.ZstdCompressor(write_content_size=says_size, write_checksum=checks)
    return b"".join(map(zstd.compress, parts))


FRAMED = st.sampled_from([Compression.GZIP, Compression.SNAPPY, Compression.ZSTD])
PARTS = st.lists(
    st.builds(bytes.__mul__, st.binary(max_size=300), st.integers(1, 2000)), min_size=1
)


@given(codec=FRAMED, parts=PARTS, says_size=st.booleans(), checks=st.booleans())
@example(codec=Compression.ZSTD, parts=[b"x", b""], says_size=False, checks=False)
def test_several_frames_are_read_as_one(
    codec: Compression, parts: list[bytes], says_size: bool, checks: bool
) -> None:
    data = b"".join(parts)
    frames = in_frames(codec, parts, says_size=says_size, checks=checks)
    assert decompress(codec, frames, bytes_max=max(len(data), 1)) == data
    if data:
        with pytest.raises(CorruptBatch):
            decompress(codec, frames, bytes_max=len(data) - 1)


@given(
    parts=st.lists(st.binary(max_size=20), min_size=1, max_size=4), skipped=st.binary(max_size=9)
)
def test_what_zstd_is_to_skip_is_skipped(parts: list[bytes], skipped: bytes) -> None:
    between = struct.pack("<II", 0x184D2A5F, len(skipped)) + skipped
    frames = between.join(map(zstandard.compress, parts))
    for data in (frames, between + frames, frames + between):
        assert decompress(Compression.ZSTD, data, bytes_max=MB) == b"".join(parts)
    with pytest.raises(CorruptBatch):
        decompress(Compression.ZSTD, frames + between[:-1], bytes_max=MB)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
@pytest.mark.parametrize("tail", [b"\0", b"words behind it", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08"])
def test_what_is_behind_the_last_frame_and_none_is_refused(codec: Compression, tail: bytes) -> None:
    frames = in_frames(codec, [b"some words", b"and others"])
    with pytest.raises(CorruptBatch):
        decompress(codec, frames + tail, bytes_max=MB)
    for cut in range(1, 12):
        with pytest.raises(CorruptBatch):
            decompress(codec, frames[:-cut], bytes_max=MB)


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.ZSTD])
def test_many_small_frames_take_time_by_their_number_not_by_its_square(codec: Compression) -> None:
    frames = in_frames(codec, [b"words"] * 100_000)
    started = time.process_time()
    assert len(decompress(codec, frames, bytes_max=MB)) == 500_000
    assert time.process_time() - started < 10


def test_an_xerial_block_longer_than_the_stream_is_refused() -> None:
    header = compress(Compression.SNAPPY, b"")
    for tail in (b"\x00\x00", struct.pack(">i", 5), struct.pack(">i", -1), header[:-1]):
        with pytest.raises(CorruptBatch):
            decompress(Compression.SNAPPY, header + tail, bytes_max=MB)
