"""Single options, read strictly: each error names the option, what it may be, and what it was."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, NoReturn

from tidemark.protocol.errors import ConfigError
from tidemark.protocol.values import dataclass

_DURATION: Final = re.compile(r"(\d+) ?(ms|s|sec|m|min|h|d|)", re.ASCII)
_SECONDS: Final = {
    "": 0.001,
    "ms": 0.001,
    "s": 1,
    "sec": 1,
    "m": 60,
    "min": 60,
    "h": 3600,
    "d": 86400,
}


@dataclass(frozen=True, slots=True)
class Options:
    """What was given, with lower-cased names, as Spark hands options over."""

    given: Mapping[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Options":
        return cls({name.lower(): value for name, value in options.items()})

    def __contains__(self, name: str) -> bool:
        return name.lower() in self.given

    def text(self, name: str) -> str | None:
        return self.given.get(name.lower())

    def boolean(self, name: str, *, default: bool) -> bool:
        text = (self.text(name) or str(default)).lower()
        if text not in ("true", "false"):
            refuse(name, "true or false", text)
        return text == "true"

    def count(self, name: str) -> int | None:
        """A whole number above 0; None where the option is not set."""
        text = self.text(name)
        if text is None:
            return None
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            refuse(name, "a whole number above 0", text)
        return int(text)

    def seconds(self, name: str) -> float | None:
        """A time such as `500ms`, `10s` or `15m`; without a unit, milliseconds."""
        text = self.text(name)
        if text is None:
            return None
        match = _DURATION.fullmatch(text.strip().lower())
        if match is None:
            refuse(name, "a time such as 500ms, 10s or 15m", text)
        return int(match[1]) * _SECONDS[match[2]]

    def json(self, name: str, example: str) -> dict[str, object]:
        """A JSON object. Only where the option is set."""
        text = self.text(name)
        assert text is not None
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            refuse(name, f"JSON like {example}", text)
        return value


def refuse(name: str, what: str, text: str) -> NoReturn:
    raise ConfigError(f"the option {name} is {what}, not {text}")


def refuse_unknown(name: str, known: Iterable[str], side: str) -> NoReturn:
    """`side` is the source or the sink, of which it is no option."""
    spelling = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name, spelling, n=1)
    hint = f"; did you mean {spelling[close[0]]}?" if close else ""
    raise ConfigError(f"the {side} tidemark has no option {name}{hint}")


def is_count(value: object) -> bool:
    """Whether JSON's value is a whole number from 0 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
