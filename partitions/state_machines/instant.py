"""A moment, as the coordinators are told of it: they have no clock of their own."""

from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A moment on both clocks."""

    ticks_ms: int
    """On a clock that only goes forward: what deadlines are in."""
    wall_ms: int
    """The time of day, since 1970: what timestamps are in."""
