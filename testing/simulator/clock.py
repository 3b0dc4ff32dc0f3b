"""Each broker's own idea of the time."""

from dataclasses import dataclass
from typing import Final

START_MS: Final = 1_750_000_000_000


@dataclass(slots=True)
class Clock:
    """A monotonic clock that runs too fast or too slow, and a wall clock that also jumps.

    `rate` is seconds of this clock for each second of the world's.
    """

    rate: float = 1.0
    offset_seconds: float = 0.0
    """What the monotonic clock shows at the beginning: no broker may compare it with another's."""
    jump_seconds: float = 0.0
    """How far the wall clock is off, by jumps."""

    def monotonic(self, now: float) -> float:
        return self.offset_seconds + now * self.rate

    def world(self, monotonic: float) -> float:
        """When this clock shows `monotonic`."""
        return (monotonic - self.offset_seconds) / self.rate

    def wall_ms(self, now: float) -> int:
        return START_MS + int(1000 * (self.jump_seconds + now * self.rate))
