"""Numbers on the command line: those that a request has room for, and that can be counted with.

Help shows what they have to be at least. What they cannot be above is too far off to be of use
there: it is said of a number that is.
"""

from math import isfinite
from typing import Any, Final

import click

WHOLE_MAX: Final = 2**31 - 1
"""What 32 bits hold."""

SECONDS_MAX: Final = 2_147_483.0
"""What 32 bits hold in milliseconds: more than three weeks."""


class Whole(click.IntRange):
    """A whole number that fits into so many bits, of which one is its sign."""

    name = "integer"  # click says "'x' is not a valid integer range"

    def __init__(self, least: int, *, bits: int = 32) -> None:
        super().__init__(min=least)
        self._most = 2 ** (bits - 1) - 1

    def convert(  # Any, as click has it
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        number = super().convert(value, param, ctx)
        assert isinstance(number, int)
        if number > self._most:
            self.fail(f"{number} is above {self._most}.", param, ctx)
        return number


class Real(click.FloatRange):
    """A number that is neither infinite nor `nan`, which click would find in every range."""

    name = "number"

    def __init__(
        self,
        least: float,
        most: float | None = None,
        *,
        min_open: bool = False,
        fits: float | None = None,
    ) -> None:
        """`fits` is the largest that there is room for; a `most` is one that help shows."""
        super().__init__(min=least, max=most, min_open=min_open)
        self._fits = fits

    def convert(  # Any, as click has it
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = super().convert(value, param, ctx)
        assert isinstance(number, float)
        if not isfinite(number):
            self.fail(f"{number} is not in the range of finite numbers.", param, ctx)
        if self._fits is not None and number > self._fits:
            self.fail(f"{number:g} is above {self._fits:.0f}.", param, ctx)
        return number
