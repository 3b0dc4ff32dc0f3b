"""How rpk's formats write a time: `%d{strftime[%F %T]}` and `%d{go[2006-01-02]}`, always in UTC.

A Go layout is the reference time, Mon Jan 2 15:04:05 2006 in the zone MST (-0700), written the way
the output shall look. Its elements are translated to `strftime`'s here, once.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from tidemark.cli.formats.delimiters import read_delimited

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

# Longest first where one starts as another does. UTC's own zone is Z, +00:00 or +0000.
_GO_ELEMENTS: Final = {
    "2006": "%Y",
    "January": "%B",
    "Jan": "%b",
    "Monday": "%A",
    "Mon": "%a",
    "MST": "UTC",
    "Z07:00": "Z",
    "Z0700": "Z",
    "Z07": "Z",
    "-07:00": "+00:00",
    "-0700": "+0000",
    "-07": "+00",
    "002": "%j",
    "01": "%m",
    "02": "%d",
    "_2": "%e",
    "03": "%I",
    "04": "%M",
    "05": "%S",
    "06": "%y",
    "15": "%H",
    "PM": "%p",
    "pm": "%P",
    "1": "%-m",
    "2": "%-d",
    "3": "%-I",
    "4": "%-M",
    "5": "%-S",
}
_GO: Final = re.compile(
    r"(?P<fraction>[.,](?:0+|9+)(?!\d))|" + "|".join(map(re.escape, _GO_ELEMENTS)) + "|%"
)


def time_format(modifier: str) -> Callable[[int], bytes]:
    """The function that writes milliseconds since 1970 so.

    A time that no calendar date can hold (before year 1, after year 9999) is written as the number
    it is. Raises `FormatError` if the argument is not delimited.
    """
    if modifier.startswith("strftime"):
        layout = read_delimited(modifier, "strftime")
        return lambda timestamp_ms: strftime(timestamp_ms, layout).encode()
    layout = read_delimited(modifier, "go")
    return lambda timestamp_ms: _format(timestamp_ms, partial(_go, layout)).encode()


def strftime(timestamp_ms: int, layout: str) -> str:
    """The time by `strftime`, in UTC; the number itself if no calendar date can hold it."""
    return _format(timestamp_ms, lambda time: time.strftime(layout))


def _format(timestamp_ms: int, write: Callable[[datetime], str]) -> str:
    try:
        return write(_EPOCH + timedelta(milliseconds=timestamp_ms))
    except (OverflowError, ValueError):
        return str(timestamp_ms)


def _go(layout: str, time: datetime) -> str:
    def element(match: re.Match[str]) -> str:
        text = match[0]
        if match["fraction"]:
            return _fraction(time, text)
        if text == "%":
            return "%"
        return time.strftime(_GO_ELEMENTS[text])

    return _GO.sub(element, layout)


def _fraction(time: datetime, element: str) -> str:
    """`.000` is always so many digits; `.999` at most so many, without zeros at the end."""
    digits = f"{time.microsecond:06d}000"[: len(element) - 1].ljust(len(element) - 1, "0")
    if element[1] == "9":
        digits = digits.rstrip("0")
    return element[0] + digits if digits else ""
