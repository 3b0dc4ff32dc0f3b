"""A request with tens of thousands of elements, answered a little at a time."""

from typing import Final

import trio

_ELEMENTS_AT_ONCE: Final = 1_000
"""Some milliseconds of work, topics, partitions, groups and members alike."""


class Steps:
    """Of one request. Others on the loop have their turn between two."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _ELEMENTS_AT_ONCE

    async def did(self, elements: int) -> None:
        """So many more were worked on."""
        self._left -= elements
        if self._left <= 0:
            self._left = _ELEMENTS_AT_ONCE
            await trio.lowlevel.checkpoint()
