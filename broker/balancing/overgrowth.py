"""When a table is to be looked through for what is gone: not each time, for it may hold much."""

from __future__ import annotations

from typing import Final

_ALWAYS_KEPT: Final = 64


class Overgrowth:
    """Of one table, or of several together."""

    __slots__ = ("_look_above",)

    def __init__(self) -> None:
        self._look_above = _ALWAYS_KEPT

    def is_due(self, count: int) -> bool:
        """Whether there is twice as much as was kept the last time."""
        return count > self._look_above

    def kept(self, count: int) -> None:
        """So much was left by a look."""
        self._look_above = 2 * count + _ALWAYS_KEPT
