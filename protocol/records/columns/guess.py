"""Where records of varying lengths begin, found without going from each to the next.

A record without headers ends with a zero, their count. Its length follows, of one or two bytes
nearly always, and then a zero again: its attributes, of which no bit is in use. So one may begin
wherever two zeros lie so far apart; the length there says where the next would begin. Nearly all
of these candidates are records, and lead to the one after them. The others mostly have none that
leads to them, and are dropped for it, round after round. In the end all that are left are checked
to lead from end to end: then there is no other way through, and this is what hopping finds. Or else
it is nothing.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tidemark.protocol.records.columns.sections import Section
from tidemark.protocol.records.columns.varints import Bytes, Integers

RECORD_BYTES_MAX: Final = 512
"""On average. Where records are longer, hopping over them costs less than to look at every byte."""
_CANDIDATES_MAX: Final = 2
"""For each record. More of them are more than they are worth."""
_ROUNDS_MAX: Final = 8
"""Of dropping candidates. What looks like records inside of values takes one for each of these."""
_BLOCK_BYTES: Final = 1 << 17
"""What is looked at at a time: arrays that stay in the processor's cache."""
_RECORD_LENGTH_MIN: Final = 6  # attributes, two deltas, two nulls and no headers, a byte each
_1: Final = np.uint64(1)


def guess_starts(data: Bytes, sections: Sequence[Section]) -> tuple[Integers, Integers] | None:
    """The positions of all records' lengths, and of what follows each; None if they do not show.

    `sections` lie in `data` one after the other, each with a record at least.
    """
    counts = np.array([section.header.record_count for section in sections])
    total = int(counts.sum())
    begins = np.array([section.begin for section in sections])
    ends = np.array([section.end for section in sections])
    if ends[-1] - begins[0] > total * RECORD_BYTES_MAX:
        return None
    starts = _candidates(data, begins, ends)
    if len(starts) > total * _CANDIDATES_MAX:
        return None
    bodies, following = _read_lengths(data, starts, nowhere=int(ends[-1]) + 1)
    for _ in range(_ROUNDS_MAX):
        if len(starts) <= total:
            break
        is_led_to = np.zeros(ends[-1] + 2, np.bool_)
        is_led_to[following] = True
        is_led_to[begins] = True
        kept = is_led_to[starts]
        starts, bodies, following = starts[kept], bodies[kept], following[kept]
    if len(starts) != total:
        return None
    expected = np.empty_like(starts)
    expected[:-1] = starts[1:]
    bounds = np.cumsum(counts)
    expected[bounds - 1] = ends
    if (expected != following).any() or (starts[bounds - counts] != begins).any():
        return None
    return starts, bodies


def _candidates(data: Bytes, begins: Integers, ends: Integers) -> Integers:
    """Where a record may begin, in rising order; sections' own beginnings are among them."""
    first, last = int(begins[0]), int(ends[-1]) - 2
    words = np.zeros((last - first >> 3) + 1, np.uint64)
    may_begin = words.view(np.bool_)
    zeros = np.empty(_BLOCK_BYTES + 3, np.bool_)
    for low in range(first + 1, last, _BLOCK_BYTES):
        high = min(low + _BLOCK_BYTES, last)
        is_zero = np.equal(data[low - 1 : high + 2], 0, out=zeros[: high - low + 3])
        found = may_begin[low - first : high - first]
        np.logical_or(is_zero[2:-1], is_zero[3:], out=found)
        np.logical_and(found, is_zero[:-3], out=found)
    # What comes before a section is no record's end, and what comes after it is no record.
    may_begin[ends[:-1] - first] = False
    may_begin[begins - first] = True
    return _true_positions(words) + first


def _true_positions(words: NDArray[np.uint64]) -> Integers:
    """The positions of the bytes that are 1; all others are 0.

    Looking at eight of them at a time is quicker than at each.
    """
    where = np.flatnonzero(words != 0)
    word = words[where]
    found = []
    while len(where):
        rest = word - _1
        found.append((where << 3) + (np.bitwise_count(~word & rest) >> 3))
        rest &= word  # without the lowest
        more = np.flatnonzero(rest)
        where, word = where[more], rest[more]
    if len(found) == 1:
        return found[0]
    return np.sort(np.concatenate(found), kind="stable")  # which merges what is sorted


def _read_lengths(data: Bytes, starts: Integers, *, nowhere: int) -> tuple[Integers, Integers]:
    """Where each record's length ends, and where the next one would begin.

    What is no length, because it is too short, negative or longer than two bytes, leads nowhere.
    """
    low = data[starts]
    high = data.take(starts + 1, mode="clip")
    is_long = low >> 7
    bodies = starts + (is_long + 1)
    lengths = ((low & np.uint8(0x7F)) >> 1) + high * (is_long.astype(np.uint16) << np.uint16(6))
    following = bodies + lengths
    is_none = ((low & 1) | (high >> 7 & is_long) | (lengths < _RECORD_LENGTH_MIN)) != 0
    following[is_none | (following > nowhere)] = nowhere
    return bodies, following
