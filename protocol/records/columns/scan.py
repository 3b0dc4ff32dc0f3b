"""Where records begin: the one part of decoding that goes from record to record.

A record's length is all that says where the next one is. Producers' records often have one length;
a run of them is found by looking at every n-th byte at once. Their batches then are often alike:
what was found in one is tried on those that follow it, all at once. Where lengths differ, records
without headers still show by the zeros around their lengths (`guess.py`). Else plain Python hops
from one to the next.
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from tidemark.protocol.records.columns.guess import guess_starts
from tidemark.protocol.records.columns.sections import Section
from tidemark.protocol.records.columns.varints import Bytes, Integers
from tidemark.protocol.records.varints import read_varint
from tidemark.protocol.values import dataclass

_RECORD_BYTES_MIN: Final = 7  # length, attributes, two deltas, two nulls, no headers: a byte each

_VARINT_BYTES_MAX: Final = 10

_RUN_MIN: Final = 16
_WINDOW_FIRST: Final = 128
_WINDOW_GROWTH: Final = 8
_HOPS_FIRST: Final = 64
_HOPS_MAX: Final = 4096
_ALIKE_MAX: Final = 2
"""Sections are tried for likeness if the longest is at most so many times the mean."""


@dataclass(slots=True)
class Starts:
    """The positions of the lengths of all records, and what came to light on the way."""

    positions: Integers
    bodies: Integers
    """Where each record goes on after its length, if `is_measured`."""
    is_measured: bool = True


def find_starts(data: Bytes, sections: Sequence[Section]) -> Starts:
    """Where all records begin.

    Raises `IndexError` or `ValueError` if they do not fill their sections exactly. Where it hopped,
    signs are not looked at: whoever reads the lengths must check that each reaches to the next.
    """
    for section in sections:
        if section.header.record_count * _RECORD_BYTES_MIN > section.end - section.begin:
            raise ValueError("more records than there is room for")
    counts = [section.header.record_count for section in sections]
    model = counts.index(max(counts))
    if not _begins_with_run(data, sections[model]):
        guessed = guess_starts(data, sections)
        if guessed is not None:
            return Starts(*guessed)
    bounds = [0, *accumulate(counts)]
    starts = Starts(np.empty(bounds[-1], np.int64), np.empty(bounds[-1], np.int64))
    starts.is_measured = _fill(starts, bounds[model], bounds[model + 1], data, sections[model])
    done = {model}
    is_worth_it = len(sections) > 1 and len(sections) * counts[model] < _ALIKE_MAX * bounds[-1]
    if starts.is_measured and is_worth_it:
        done |= _lay(starts, bounds, data, sections, model)
    for index, section in enumerate(sections):
        if index not in done:
            is_measured = _fill(starts, bounds[index], bounds[index + 1], data, section)
            starts.is_measured &= is_measured
    return starts


def _begins_with_run(data: Bytes, section: Section) -> bool:
    body = data[section.begin : section.end]
    wanted = min(_RUN_MIN, section.header.record_count)
    return _may_run(body) and find_run(body, wanted)[0] == wanted


def _lay(
    starts: Starts, bounds: Sequence[int], data: Bytes, sections: Sequence[Section], model: int
) -> set[int]:
    """Lay the records of one section, which has the most, over all others; which of them it fits.

    Exact: if the first record's length is the same, so is the place of the second, and so on, up to
    the section's end.
    """
    first, own = sections[model].begin, slice(bounds[model], bounds[model + 1])
    places = np.append(starts.positions[own], sections[model].end) - first
    sizes = starts.bodies[own] - starts.positions[own]
    begins = np.array([section.begin for section in sections])
    counts = np.diff(bounds)
    fits = begins + places[counts] == [section.end for section in sections]
    is_there = np.arange(len(sizes)) < counts[:, np.newaxis]
    for at in range(int(sizes.max())):
        at_places = places[:-1][sizes > at] + at
        same = data.take(begins[:, np.newaxis] + at_places, mode="clip") == data[first + at_places]
        fits &= (same | ~is_there[:, sizes > at]).all(axis=1)
    laid = (begins[:, np.newaxis] + places[:-1])[is_there]
    starts.positions[:] = laid
    starts.bodies[:] = laid + np.broadcast_to(sizes, is_there.shape)[is_there]
    return set(np.flatnonzero(fits).tolist())


def _fill(starts: Starts, filled: int, upto: int, data: Bytes, section: Section) -> bool:
    """Find the records of one section; whether the bodies came to light as well."""
    copy = b""
    at, hops = section.begin, _HOPS_FIRST
    is_measured = True
    while filled < upto:
        run = 0
        if _may_run(data[at : section.end]):
            run, size, stride = find_run(data[at : section.end], upto - filled)
        if run >= _RUN_MIN:
            positions = np.arange(at, at + run * stride, stride)
            starts.positions[filled : filled + run] = positions
            starts.bodies[filled : filled + run] = positions + size
            at += run * stride
            hops = _HOPS_FIRST
        else:
            # bytes are the quickest to look into one by one, and most sections never come here.
            copy = copy or data[section.begin : section.end].tobytes()
            hopped = _hop(copy, at - section.begin, min(hops, upto - filled))
            at = section.begin + hopped.pop()
            run = len(hopped)
            positions = np.frombuffer(array("q", hopped), np.int64)
            starts.positions[filled : filled + run] = positions + section.begin
            is_measured = False
            hops = min(hops * 2, _HOPS_MAX)
        filled += run
    if at != section.end:
        raise ValueError(f"records that end {at - section.end:+} bytes from where their batch does")
    return is_measured


def _may_run(data: Bytes) -> bool:
    """Whether the first record's length is the second's as well; or it is the last.

    To look for a run costs as much as to hop over a hundred records.
    """
    head = data[:_VARINT_BYTES_MAX].tobytes()
    length, size = read_varint(head, 0)
    following = data[size + length : 2 * size + length].tobytes()
    return length < 0 or following in (head[:size], b"")


def find_run(data: Bytes, count: int) -> tuple[int, int, int]:
    """How many records, of `count`, begin with the same length; its size; what is between them.

    Exact, not a guess: a record of this length is followed by the next at this distance, and if
    that has the same length, so is it.
    """
    head = data[:_VARINT_BYTES_MAX].tobytes()
    length, size = read_varint(head, 0)
    stride = size + length
    if length < 0:
        raise ValueError(f"a record of {length} bytes")
    possible = min(count, len(data) // stride)
    matched, window = 0, _WINDOW_FIRST
    while matched < possible:
        tried = min(window, possible - matched)
        first = matched * stride
        same = tried
        for at in range(size):
            # One byte of each length in the window.
            column = data[first + at : first + at + (tried - 1) * stride + 1 : stride].tobytes()
            wanted = head[at : at + 1]
            if column != wanted * tried:
                same = min(same, tried - len(column.lstrip(wanted)))
        matched += same
        if same < tried:
            break
        window *= _WINDOW_GROWTH
    return matched, size, stride


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
