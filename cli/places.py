"""Reads the words of the command line that name a place in a log: `--from`, `--to`.

| written | is |
|---|---|
| `beginning`, `start`, `earliest` | the log start |
| `end`, `latest` | the log end |
| `42` | that offset |
| `-10` | ten records before the end, in each partition |
| `@1700000000000` | the first record of that time (milliseconds since 1970) or later |
| `@-1h30m` | the same, so long before now: `d`, `h`, `m`, `s` |
| `2026-11-21`, `2026-11-21T10:30:00+01:00` | the same, in ISO 8601; UTC if it does not say |

A group's offsets can be moved as well as set, so there `+10` and `-10` are a shift.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from tidemark.client.offsets import AtOffset, AtTime, BeforeEnd, Beginning, End, Start
from tidemark.protocol.types import Offset

_BEGINNING: Final = {"beginning", "start", "earliest"}
_END: Final = {"end", "latest"}
_AGO: Final = re.compile(
    r"-(?=\d)(?:(?P<days>\d+)d)?(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?"
)
_SECONDS: Final = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
_NUMBER_MAX: Final = 2**63 - 1
"""What a record's offset, and its timestamp in milliseconds, have room for."""


@dataclass(frozen=True, slots=True)
class Shift:
    """So many records on from where a group is; back, if it is negative."""

    records: int


def parse_start(text: str, *, now_ms: int) -> Start:
    """Where to begin reading; `ValueError` if it is none of the ways to say that."""
    if text in _BEGINNING:
        return Beginning()
    if text in _END:
        return End()
    if re.fullmatch(r"\d+", text, re.ASCII):
        return AtOffset(Offset(_checked(text, int(text), "an offset")))
    if re.fullmatch(r"-\d+", text, re.ASCII):
        return BeforeEnd(-_checked(text, int(text), "an offset"))
    return AtTime(_parse_time(text, now_ms))


def parse_target(text: str, *, now_ms: int) -> Start | Shift:
    """Where to move a group's offsets; `ValueError` as above."""
    if re.fullmatch(r"[+-]\d+", text, re.ASCII):
        return Shift(int(text))
    return parse_start(text, now_ms=now_ms)


def _parse_time(text: str, now_ms: int) -> int:
    if re.fullmatch(r"@\d+", text, re.ASCII):
        return _checked(text, int(text[1:]), "a time")
    if text.startswith("@") and (ago := _AGO.fullmatch(text[1:])):
        parts = {unit: int(count) for unit, count in ago.groupdict(default="0").items()}
        seconds = sum(count * _SECONDS[unit] for unit, count in parts.items())
        return _checked(text, now_ms - seconds * 1000, "a time")
    try:
        time = datetime.fromisoformat(text.removeprefix("@"))
    except ValueError:
        raise ValueError(
            f"{text!r} is not a place in a log: say beginning, end, an offset, -N for the last N, "
            "@MILLISECONDS, @-1h30m, or a date and time such as 2026-11-21T10:30:00Z"
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def _checked(text: str, number: int, what: str) -> int:
    if abs(number) > _NUMBER_MAX:
        raise ValueError(f"{text!r} is {what} further off than a record's can be")
    return number
