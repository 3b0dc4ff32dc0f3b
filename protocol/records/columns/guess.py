"""Where records of varying lengths begin, found without going from each to the next.

A record without headers ends with a zero, their count. Its length follows, of one or two bytes
nearly always, and then a zero again: its attributes, of which no bit is in use. So one may begin
wherever two zeros lie so far apart; the length there says where the next would begin. Nearly all
of these candidates are records, and lead to the one after them. Only where one does not, Python
looks where it leads. In the end all that are kept are checked to lead from end to end: then there
is no other way through, and this is what hopping finds. Or else it is nothing.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tidemark.protocol.records.columns.sections import Section
from tidemark.protocol.records.columns.varints import Bytes, Integers

RECORD_BYTES_MAX: Final = 512
"""On average. Where records are longer, hopping over them costs less than to look at every byte."""
_CANDIDATES_MAX: Final = 2
"""For each record. More of them are more than they are worth."""
_BLOCK_BYTES: Final = 1 << 18
"""What is looked at at a time: arrays that stay in the processor's cache."""
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
    starts = _candidates(data, int(begins[0]), int(ends[-1]))
    # What comes before a section is no record's end, and what comes after it is no record.
    starts = np.delete(starts, np.flatnonzero(np.isin(starts, ends)))
    starts = np.insert(starts, np.searchsorted(starts, begins), begins)
    if len(starts) > total * _CANDIDATES_MAX:
        return None
    bodies, following = _read_lengths(data, starts)
    after = dict(zip(ends[:-1].tolist(), begins[1:].tolist(), strict=True))
    chain = _chain(starts, following, after)
    starts, bodies, following = starts[chain], bodies[chain], following[chain]
    if len(starts) != total:
        return None
    expected = np.empty_like(starts)
    expected[:-1] = starts[1:]
    bounds = np.cumsum(counts)
    expected[bounds - 1] = ends
    if (expected != following).any() or (starts[bounds - counts] != begins).any():
        return None
    return starts, bodies


def _candidates(data: Bytes, begin: int, end: int) -> Integers:
    """Where a record may begin after `begin`, in rising order."""
    zeros = np.empty(_BLOCK_BYTES + 3, np.bool_)
    words = np.zeros(_BLOCK_BYTES // 8, np.uint64)
    found = [np.empty(0, np.int64)]
    for low in range(begin + 1, end - 2, _BLOCK_BYTES):
        high = min(low + _BLOCK_BYTES, end - 2)
        size = high - low
        is_zero = np.equal(data[low - 1 : high + 2], 0, out=zeros[: size + 3])
        may_begin = words.view(np.bool_)
        may_begin[size:] = False
        np.logical_or(is_zero[2:-1], is_zero[3:], out=may_begin[:size])
        np.logical_and(may_begin[:size], is_zero[:-3], out=may_begin[:size])
        found.append(_true_positions(words) + low)
    return np.concatenate(found)


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
    return np.sort(np.concatenate(found)) if found else where


def _read_lengths(data: Bytes, starts: Integers) -> tuple[Integers, Integers]:
    """Where each record's length ends, and where the next one would begin.

    A length that is none, because it is negative or longer, leads to where no record begins.
    """
    low = data[starts]
    high = data.take(starts + 1, mode="clip")
    is_long = low >= 0x80
    bodies = starts + 1 + is_long
    lengths = ((low & np.uint8(0x7F)) >> 1) + (high & np.uint8(0x7F)).astype(np.uint16) * (
        is_long.astype(np.uint16) << np.uint16(6)
    )
    lengths *= ((low & np.uint8(1)) | (high >> 7) & is_long) ^ np.uint8(1)
    return bodies, bodies + lengths


def _chain(starts: Integers, following: Integers, after: Mapping[int, int]) -> NDArray[np.bool_]:
    """Which of the candidates are reached from the first; `after` leads from section to section."""
    breaks = np.flatnonzero(following[:-1] != starts[1:])
    breaks = np.append(breaks, len(starts) - 1)
    leads_to = [after.get(end, end) for end in following[breaks].tolist()]
    places = np.searchsorted(starts, leads_to).tolist()
    ends = breaks.tolist()
    is_reached = np.zeros(len(starts), np.bool_)
    at = 0
    while at < len(starts):
        which = bisect_left(ends, at)
        is_reached[at : ends[which] + 1] = True
        at = places[which]
    return is_reached
