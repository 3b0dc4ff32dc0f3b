"""Varints by the thousand: the format of `records.varints`, read with numpy.

Nearly all of them take one, two or three bytes: those are put together in arrays of bytes and small
integers, which numpy works through quickest. Longer ones are worked out in lanes of eight bytes.
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]
Integers: TypeAlias = NDArray[np.int64]
_Lanes: TypeAlias = NDArray[np.uint64]

_LANE_BYTES: Final = 8


class Unusual(Exception):
    """Bytes that are legal, or may be, but not worth a vectorised path: take the plain one."""


class VarintReader:
    """Reads the varints at many positions of one buffer."""

    def __init__(self, data: Bytes) -> None:
        if len(data) < _LANE_BYTES:  # room for one lane
            data = np.concatenate([data, np.zeros(_LANE_BYTES - len(data), np.uint8)])
        self.data = data
        # An unaligned uint64 at every byte position: a view with a stride of one byte is free.
        self._last_lane = len(data) - _LANE_BYTES
        self._lanes: _Lanes = np.ndarray(
            (self._last_lane + 1,), "<u8", buffer=data.data, strides=(1,)
        )

    def read(self, positions: Integers) -> tuple[Integers, Integers]:
        """The integers at `positions`, and the position behind each.

        Raises `IndexError` past the end of the buffer, and `Unusual` for more than eight bytes. One
        that is cut off by the end of the buffer has any value, and the position behind it is past
        the end.
        """
        first = self.data.take(positions)
        if first.max(initial=0) < 0x80:
            return _ONE_BYTE.take(first), positions + 1
        more = first >> 7
        second = self.data.take(positions + 1, mode="clip") * more
        value = (first & _LOW) | (second & _LOW).astype(np.uint16) << _SEVEN
        if second.max() < 0x80:
            return unzigzag_short(value).astype(np.int64), positions + (more + 1)
        third = self.data.take(positions + 2, mode="clip") * (second >> 7)
        if third.max() < 0x80:
            sizes = more + 1 + (second >> 7)
            long_value = value | third.astype(np.uint32) << _FOURTEEN
            return unzigzag_short(long_value).astype(np.int64), positions + sizes
        return self._read_lanes(positions)

    def _read_lanes(self, positions: Integers) -> tuple[Integers, Integers]:
        beyond = np.maximum(positions - self._last_lane, 0)
        lanes = self._lanes[positions - beyond] >> (beyond << 3).astype(np.uint64)
        stops = ~lanes & _HIGH_BITS
        if not stops.all():
            raise Unusual
        # All bits below the lowest stop bit: eight for each byte of the varint, less one.
        below = (stops & -stops) - _1
        value = lanes & below & _LOW_BITS
        # Close the gaps where the high bits were: between bytes, pairs, and then fours.
        value = ((value & _ODD_BYTES) >> _1) | (value & _EVEN_BYTES)
        value = ((value & _ODD_PAIRS) >> _2) | (value & _EVEN_PAIRS)
        value = ((value & _ODD_FOURS) >> _4) | (value & _EVEN_FOURS)
        return _unzigzag(value), positions + ((np.bitwise_count(below) >> 3) + 1)


def unzigzag_short(value: NDArray[np.integer]) -> NDArray[np.signedinteger]:
    """Of varints that fit into the type they come in."""
    return ((value >> 1) ^ -(value & 1)).view(f"i{value.itemsize}")


def _unzigzag(value: _Lanes) -> Integers:
    return ((value >> _1) ^ -(value & _1)).view(np.int64)


_LOW: Final = np.uint8(0x7F)
_SEVEN: Final = np.uint16(7)
_FOURTEEN: Final = np.uint32(14)
_1: Final = np.uint64(1)
_2: Final = np.uint64(2)
_4: Final = np.uint64(4)
_HIGH_BITS: Final = np.uint64(0x8080_8080_8080_8080)
_LOW_BITS: Final = np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_ODD_BYTES: Final = np.uint64(0x7F00_7F00_7F00_7F00)
_EVEN_BYTES: Final = np.uint64(0x007F_007F_007F_007F)
_ODD_PAIRS: Final = np.uint64(0x3FFF_0000_3FFF_0000)
_EVEN_PAIRS: Final = np.uint64(0x0000_3FFF_0000_3FFF)
_ODD_FOURS: Final = np.uint64(0x0FFF_FFFF_0000_0000)
_EVEN_FOURS: Final = np.uint64(0x0000_0000_0FFF_FFFF)
_ONE_BYTE: Final = _unzigzag(np.arange(256, dtype=np.uint64))
