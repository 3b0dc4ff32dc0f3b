"""Where records begin: the one part of decoding that goes from record to record.

A record's length is all that says where the next one is. Producers' records often have one length;
a run of them is found by looking at every n-th byte at once. Where lengths differ, plain Python
hops from one to the next.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tidemark.protocol.records.columns.sections import Section
from tidemark.protocol.records.columns.varints import Integers
from tidemark.protocol.records.varints import read_varint
from tidemark.protocol.types import BytesLike

_RECORD_BYTES_MIN: Final = 7  # length, attributes, two deltas, two nulls, no headers: a byte each

_VARINT_BYTES_MAX: Final = 10

_RUN_MIN: Final = 16
_WINDOW_FIRST: Final = 128
_WINDOW_GROWTH: Final = 8
_HOPS_FIRST: Final = 64
_HOPS_MAX: Final = 4096


def record_starts(data: BytesLike, sections: Sequence[Section]) -> Integers:
    """The positions of the lengths of all records.

    Raises `IndexError` or `ValueError` if they do not fill their sections exactly. Signs are not
    looked at: whoever reads the lengths must check that each reaches to the next.
    """
    for section in sections:
        if section.header.record_count * _RECORD_BYTES_MIN > section.end - section.begin:
            raise ValueError("more records than there is room for")
    starts = np.empty(sum(section.header.record_count for section in sections), np.int64)
    filled = 0
    for section in sections:
        count = section.header.record_count
        _fill(starts[filled : filled + count], memoryview(data)[section.begin : section.end])
        starts[filled : filled + count] += section.begin
        filled += count
    return starts


def _fill(starts: Integers, data: memoryview) -> None:
    section = b""
    at, filled, hops = 0, 0, _HOPS_FIRST
    while filled < len(starts):
        run, stride = _run(data, at, len(starts) - filled)
        if run >= _RUN_MIN:
            starts[filled : filled + run] = np.arange(at, at + run * stride, stride)
            at += run * stride
            hops = _HOPS_FIRST
        else:
            # bytes are the quickest to look into, and most sections never come here.
            section = section or bytes(data)
            positions = _hop(section, at, min(hops, len(starts) - filled))
            at = positions.pop()
            run = len(positions)
            starts[filled : filled + run] = np.fromiter(positions, np.int64, run)
            hops = min(hops * 2, _HOPS_MAX)
        filled += run
    if at != len(data):
        raise ValueError(f"records that end {at - len(data):+} bytes from where their batch does")


def _run(data: memoryview, at: int, count: int) -> tuple[int, int]:
    """How many records from `at` on, of `count`, have the same length; the distance between them.

    Exact, not a guess: a record of this length is followed by the next at this distance, and if
    that has the same length, so is it.
    """
    head = bytes(data[at : at + _VARINT_BYTES_MAX])
    length, size = read_varint(head, 0)
    stride = size + length
    if length < 0:
        raise ValueError(f"a record of {length} bytes")
    possible = min(count, (len(data) - at) // stride)
    matched, window = 0, _WINDOW_FIRST
    while matched < possible:
        first = at + matched * stride
        tried = min(window, possible - matched)
        same = tried
        for byte in range(size):
            # One byte of each length in the window; those equal to the first are stripped off.
            column = data[first + byte : first + byte + (tried - 1) * stride + 1 : stride]
            others = bytes(column).lstrip(head[byte : byte + 1])
            same = min(same, tried - len(others))
        matched += same
        if same < tried:
            break
        window *= _WINDOW_GROWTH
    return matched, stride


def _hop(data: bytes, at: int, count: int) -> list[int]:
    """The positions of the next `count` records, and of what follows them."""
    steps = _TWO_BYTE_STEP
    positions = [at] * (count + 1)
    for index in range(1, count + 1):
        byte = data[at]
        if byte < 0x80:
            at += (byte >> 1) + 1
        elif (second := data[at + 1]) < 0x80:
            at += steps[byte] + (second << 6)
        else:
            length, body = read_varint(data, at)
            at = body + abs(length)
        positions[index] = at
    return positions


_TWO_BYTE_STEP: Final = tuple(((byte & 0x7F) >> 1) + 2 for byte in range(256))
"""What the first byte of a two-byte length adds to the hop, these two bytes included."""
