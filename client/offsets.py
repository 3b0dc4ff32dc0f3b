"""Where in a partition to begin, as values: each is one kind of place.

```
Beginning()          the log start
End()                the log end: only what is written from now on
AtOffset(42)         that offset
AtTime(1700000000000)   the first record with that timestamp (ms) or a later one; the end if none
BeforeEnd(10)        ten offsets before the end, or the log start if there are fewer
MaxTime()            the record with the largest timestamp (list_offsets only)
```
"""

from enum import IntEnum

from tidemark.client.limits import INT64_MAX, require_whole
from tidemark.protocol import types
from tidemark.protocol.types import Offset
from tidemark.protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class Beginning:
    """The log start."""


@dataclass(frozen=True, slots=True)
class End:
    """The log end; for a reader of committed transactions, the last stable offset."""


@dataclass(frozen=True, slots=True)
class AtOffset:
    """One offset, whether it exists or not: out of range shows when it is fetched."""

    offset: Offset


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first record whose timestamp is `timestamp_ms` or later."""

    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class BeforeEnd:
    """So many offsets before the end, never before the log start."""

    records: int


@dataclass(frozen=True, slots=True)
class MaxTime:
    """The record with the largest timestamp."""


Start = Beginning | End | AtOffset | AtTime | BeforeEnd
OffsetSpec = Beginning | End | AtTime | MaxTime


class Isolation(IntEnum):
    """What a reader sees of transactions."""

    READ_UNCOMMITTED = types.READ_UNCOMMITTED
    READ_COMMITTED = types.READ_COMMITTED


def as_isolation(isolation: Isolation | str) -> Isolation:
    """By Kafka's names, too. Raises `ValueError` for another word."""
    match isolation:
        case Isolation():
            return isolation
        case "read_uncommitted":
            return Isolation.READ_UNCOMMITTED
        case "read_committed":
            return Isolation.READ_COMMITTED
        case _:
            raise ValueError(
                f'isolation is "read_uncommitted" or "read_committed", not {isolation!r}'
            )


def as_start(start: Start | str | int) -> Start:
    """The short forms: "beginning", "end", 42 (that offset), -10 (ten before the end).

    Raises `ValueError` on any other word and for a number that no offset or time is, `TypeError`
    for anything else.
    """
    match start:
        case "beginning" | "earliest" | "start":
            return Beginning()
        case "end" | "latest":
            return End()
        case str():
            raise ValueError(f'start is "beginning", "end" or a number, not {start!r}')
        case int():
            return as_start(AtOffset(Offset(start)) if start >= 0 else BeforeEnd(-start))
        case AtOffset(offset):
            require_whole("an offset", offset, most=INT64_MAX)
            return start
        case AtTime(timestamp_ms):
            require_whole("a time", timestamp_ms, least=-INT64_MAX, most=INT64_MAX)
            return start
        case BeforeEnd(records):
            require_whole("how many before the end", records, most=INT64_MAX)
            return start
        case Beginning() | End():
            return start
        case _:
            raise TypeError(f"where to begin is a place, a word or a whole number, not {start!r}")
