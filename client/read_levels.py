"""How fresh what a consumer reads must be, by name."""

from enum import StrEnum
from typing import Final

ANY_RACK: Final = "*"
"""What a reader without a rack says to a Tidemark broker, if any replica is near enough for it."""


class ReadLevel(StrEnum):
    """Whatever the level, only what is committed is read, and a consumer never goes back."""

    COMMITTED = "committed"
    """From the leader, up to its high watermark. One that has just been cut off may not know of
    what another leader commits meanwhile, for as long as it takes to notice."""
    STRICT = "strict"
    """From the leader, once a majority has said that it still leads: all that was committed when
    it was asked (linearizable)."""
    TWO_STEP = "two-step"
    """As strict, but read from the nearest replica or observer, once it has all that."""
    REPLICA = "replica"
    """From the nearest replica or observer, as far as that is."""

    @property
    def is_confirmed(self) -> bool:
        """Whether a majority is asked."""
        return self in (ReadLevel.STRICT, ReadLevel.TWO_STEP)

    def rack_to_name(self, rack: str | None) -> str:
        """What a fetch says of where its reader is; nothing keeps it at the leader."""
        if self in (ReadLevel.COMMITTED, ReadLevel.STRICT):
            return ""
        return rack or ANY_RACK


def read_level(level: ReadLevel | str | None, rack: str | None) -> ReadLevel:
    """The level that was asked for; without any, who has a rack reads from what is near, as
    Kafka's clients do. Raises `ValueError` for another word."""
    if level is None:
        return ReadLevel.COMMITTED if rack is None else ReadLevel.REPLICA
    try:
        return ReadLevel(level)
    except ValueError:
        raise ValueError(f"read_level is one of {', '.join(ReadLevel)}, not {level!r}") from None
