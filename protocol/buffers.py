"""Memory that is used again as soon as nobody looks into it any more.

A new buffer of some megabytes is new to the kernel as well, which finds and clears a page for every
four kilobytes that are written, and takes them back when the buffer goes: as dear as the copy that
the buffer is for. Where buffers of about one size follow one another, the same few do.
"""

from typing import Final

_SPARE_MAX: Final = 4
_ROOM: Final = 8
"""A new buffer is an eighth longer than asked for: the next need not be of quite the same size."""


class Buffers:
    """Gives out buffers, and those that were given back again. Not for several threads at a time.

    A buffer is given back by letting go of it: a `bytearray` knows whether there are views of it,
    and those of `memoryview`, Arrow and `numpy.frombuffer` count. `numpy.ndarray(buffer=...)` of a
    `memoryview` does not: whoever makes one keeps the view for as long.
    """

    def __init__(self) -> None:
        self._spare: list[bytearray] = []

    def take(self, size: int) -> memoryview:
        """`size` bytes, of any content."""
        for spare in self._spare:
            if len(spare) >= size and _try_to_grow(spare):
                return memoryview(spare)[:size]
        if len(self._spare) == _SPARE_MAX:
            del self._spare[0]  # it is too small, or kept by somebody
        new = bytearray(size + size // _ROOM)
        # It grows once, with nobody looking on, and from then on has room where it is.
        _try_to_grow(new)
        self._spare.append(new)
        return memoryview(new)[:size]


def _try_to_grow(buffer: bytearray) -> bool:
    """For a moment. False: somebody looks at it."""
    try:
        buffer.append(0)
    except BufferError:
        return False
    buffer.pop()
    return True
