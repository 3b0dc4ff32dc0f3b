"""Where records begin and end: the one part of decoding that goes from record to record.

A record's length is all that says where the next one is. Producers' records often have one length,
so a run of them is checked at one stride with numpy; where lengths differ, plain Python hops.
"""

from typing import Final

import numpy as np

from tidemark.protocol.records.columns.varints import Bytes, Integers, VarintReader
from tidemark.protocol.records.varints import read_varint

_RECORD_BYTES_MIN: Final = 7  # length, attributes, two deltas, two nulls, no headers: a byte each
_VARINT_BYTES_MAX: Final = 10

_RUN_MIN: Final = 16
_WINDOW_FIRST: Final = 32
_WINDOW_GROWTH: Final = 4
_HOPS_FIRST: Final = 256
_HOPS_MAX: Final = 4096

Extents = tuple[Integers, Integers]
"""Where the fields of each record begin, behind its length, and where they end."""


def find_records(reader: VarintReader, begin: int, end: int, count: int) -> list[Extents]:
    """The `count` records that fill the bytes from `begin` to `end`, in one piece or more.

    Raises `IndexError` or `ValueError` if they do not fill them exactly.
    """
    if count * _RECORD_BYTES_MIN > end - begin:
        raise ValueError(f"{count} records in {end - begin} bytes")
    section = b""
    found: list[Extents] = []
    at, left, hops = begin, count, _HOPS_FIRST
    while left:
        run, piece = _run(reader.data, at, end, left)
        if run >= _RUN_MIN:
            hops = _HOPS_FIRST
        else:
            # bytes are the quickest to index, and most sections never come here.
            section = section or reader.data[begin:end].tobytes()
            run = min(left, hops)
            piece = _hop(reader, section, begin, at, run)
            hops = min(hops * 2, _HOPS_MAX)
        found.append(piece)
        at, left = int(piece[1][-1]), left - run
    if at != end:
        raise ValueError(f"records that end {at - end:+} bytes from where their batch does")
    return found


def _run(data: Bytes, at: int, end: int, left: int) -> tuple[int, Extents]:
    """The records from `at` on that have the same length; how many, and their extents.

    Exact, not a guess: a record of this length is followed by the next at this distance, and if
    that has the same length, so is it.
    """
    head = data[at : min(at + _VARINT_BYTES_MAX, end)].tobytes()
    length, size = read_varint(head, 0)
    if length < 0:
        raise ValueError(f"a record of {length} bytes")
    stride = size + length
    possible = min(left, (end - at) // stride)
    matched, window = min(1, possible), _WINDOW_FIRST
    while matched < possible:
        upto = min(possible, matched + window)
        same = data[at + matched * stride : at + upto * stride : stride] == head[0]
        for byte in range(1, size):
            first = at + byte + matched * stride
            same &= data[first : first + (upto - matched - 1) * stride + 1 : stride] == head[byte]
        if not same.all():
            matched += int(same.argmin())
            break
        matched, window = upto, window * _WINDOW_GROWTH
    bodies = np.arange(at + size, at + size + matched * stride, stride, dtype=np.int64)
    return matched, (bodies, bodies + length)


def _hop(reader: VarintReader, section: bytes, begin: int, at: int, count: int) -> Extents:
    """The next `count` records, one by one; `section` is what the reader has from `begin` on."""
    try:
        return _measure(reader, _hop_short(section, at - begin, count) + begin)
    except (IndexError, ValueError):
        return _measure(reader, _hop_any(section, at - begin, count) + begin)


def _hop_short(data: bytes, at: int, count: int) -> Integers:
    """The positions of `count` records and of what follows, if no length takes over two bytes.

    A length of one byte is followed by the attributes, a zero byte, which adds nothing. With longer
    ones, or other attributes, the result is wrong, and `_measure` says so.
    """
    first, second = _FIRST_STEP, _SECOND_STEP
    positions = [at] * (count + 1)
    for index in range(1, count + 1):
        at += first[data[at]] + second[data[at + 1]]
        positions[index] = at
    return np.fromiter(positions, np.int64, count + 1)


def _hop_any(data: bytes, at: int, count: int) -> Integers:
    positions = [at]
    for _ in range(count):
        length, body = read_varint(data, at)
        at = body + length
        if length < 0:
            raise ValueError(f"a record of {length} bytes")
        positions.append(at)
    return np.array(positions, np.int64)


def _measure(reader: VarintReader, positions: Integers) -> Extents:
    """The extents of records at all `positions` but the last, which is where the last one ends."""
    starts, ends = positions[:-1], positions[1:]
    lengths, bodies = reader.read(starts)
    if (bodies + lengths != ends).any():
        raise ValueError("a record's length is not the distance to the next")
    return bodies, ends


_FIRST_STEP: Final = tuple(
    (byte >> 1) + 1 if byte < 0x80 else ((byte & 0x7F) >> 1) + 2 for byte in range(256)
)
_SECOND_STEP: Final = tuple(byte << 6 for byte in range(256))
