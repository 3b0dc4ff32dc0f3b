"""The filters of `--template`: jinja2's names, written anew so that none can be made to cost much.

jinja2's own would do for templates one trusts: its `replace` and `join` build results that are the
product of their arguments' sizes, and `center` any number of spaces.
"""

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tidemark.cli.formats.times import strftime

RESULT_CHARACTERS_MAX: Final = 16 * 1024 * 1024


class TooMuch(ValueError):
    """A template asks for more than it may have."""


def _check_size(characters: int) -> None:
    if characters > RESULT_CHARACTERS_MAX:
        raise TooMuch(f"a result of {characters} characters")


def printed(value: object) -> object:
    """What a value is in the output: null is nothing, what JSON has other words for is JSON."""
    if value is None:
        return ""
    return _json(value) if isinstance(value, bool | dict | list) else value


def _string(value: object) -> str:
    if isinstance(value, str):
        return value
    text = str(printed(value))
    _check_size(len(text))
    return text


def _bytes(value: object) -> bytes:
    return _string(value).encode("utf-8", "surrogateescape")


def _default(value: object, instead: object = "") -> object:
    """`instead` where there is nothing: an undefined variable or null."""
    from jinja2 import Undefined

    return instead if value is None or isinstance(value, Undefined) else value


def _join(items: Iterable[object], separator: object = "") -> str:
    texts = [_string(item) for item in items]
    between = _string(separator)
    _check_size(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


def _replace(value: object, old: object, new: object) -> str:
    text, before, after = _string(value), _string(old), _string(new)
    _check_size(len(text) + text.count(before) * max(len(after) - len(before), 0))
    return text.replace(before, after)


def _truncate(value: object, length: int = 80, end: str = "…") -> str:
    """The first `length` characters; `end` stands for the rest if there is one."""
    text = _string(value)
    return text if len(text) <= length else text[:length] + end


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _items(value: Mapping[object, object]) -> list[tuple[object, object]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _first(value: Sequence[object]) -> object:
    return value[0] if value else None


def _last(value: Sequence[object]) -> object:
    return value[-1] if value else None


def _date(timestamp_ms: int, layout: str = "%Y-%m-%dT%H:%M:%SZ") -> str:
    """Milliseconds since 1970 by `strftime`, in UTC."""
    if len(layout) > 100:
        raise TooMuch("a date's layout of more than 100 characters")
    return strftime(timestamp_ms, layout)


FILTERS: Final[dict[str, Callable[..., object]]] = {
    "base64": lambda value: base64.b64encode(_bytes(value)).decode(),
    "date": _date,
    "default": _default,
    "first": _first,
    "from_json": lambda value: json.loads(_string(value)),
    "hex": lambda value: _bytes(value).hex(),
    "int": lambda value: int(value),
    "items": _items,
    "join": _join,
    "json": _json,
    "last": _last,
    "length": len,
    "lower": lambda value: _string(value).lower(),
    "replace": _replace,
    "string": _string,
    "trim": lambda value: _string(value).strip(),
    "truncate": _truncate,
    "upper": lambda value: _string(value).upper(),
}
