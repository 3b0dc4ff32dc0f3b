"""Records as JSON, one a line, both ways: what `consume --json` writes, `produce --json` reads.

```
{"topic":"orders","partition":0,"offset":7,"timestamp":1700000000000,"key":"k","value":"v",
 "headers":[{"key":"trace","value":"1"}]}
```

Bytes that are UTF-8 are a string. Others cannot be one, and travel under another name:
`"value_base64":"/w=="`; so a record comes back as it was, whatever it holds. A header's name is
always a string. When it is read, everything may be left out, `headers` may also be an object, and
a value that is not a string is kept as the JSON that it is. Where it came from (`topic`, `offset`)
means nothing to who produces it; any other name is a mistake, and a record without what it was for.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from json.encoder import encode_basestring as _quote
from typing import Final, NamedTuple

from tidemark.cli.formats.formatter import Record, Source
from tidemark.protocol.errors import TidemarkError

_PARTITION_MAX: Final = 2**31 - 1
_TIMESTAMP_MAX: Final = 2**62  # What a producer takes, on either side of 1970.
_PRODUCED: Final = (
    "value",
    "value_base64",
    "key",
    "key_base64",
    "headers",
    "partition",
    "timestamp",
)
_NAMES: Final = frozenset({*_PRODUCED, "topic", "offset"})


class InputError(TidemarkError):
    """A line of input that is not a record."""


class NewRecord(NamedTuple):
    """A record that is to be produced; None where the producer or the broker decides.

    A tuple, because a frozen dataclass takes several times as long to make.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


def format_json(record: Record, source: Source) -> bytes:
    """The record as a line of JSON. A `Formatter`.

    Written out here: building a dictionary and encoding it takes three times as long.
    """
    headers = ""
    if record.headers:
        items = [f'{{"key":{_quote(k)},{_member("value", v)}}}' for k, v in record.headers]
        headers = f',"headers":[{",".join(items)}]'
    line = (
        f'{{"topic":{_quote(source.topic)},"partition":{source.partition},'
        f'"offset":{record.offset},"timestamp":{record.timestamp_ms},'
        f"{_member('key', record.key)},{_member('value', record.value)}{headers}}}\n"
    )
    return line.encode()


def _member(name: str, data: bytes | None) -> str:
    if data is None:
        return f'"{name}":null'
    try:
        return f'"{name}":{_quote(data.decode())}'
    except UnicodeDecodeError:
        return f'"{name}_base64":"{base64.b64encode(data).decode()}"'


def parse_json(line: bytes) -> NewRecord:
    """The record that a line of JSON describes; `InputError` if it describes none."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InputError("not a JSON object")
    if not fields.keys() <= _NAMES:
        raise InputError(_complaint(next(name for name in fields if name not in _NAMES)))
    return NewRecord(
        value=_data(fields, "value"),
        key=_data(fields, "key"),
        headers=_headers(fields.get("headers")),
        partition=_number(fields, "partition", 0, _PARTITION_MAX),
        timestamp_ms=_number(fields, "timestamp", -_TIMESTAMP_MAX, _TIMESTAMP_MAX),
    )


def _complaint(name: str) -> str:
    near = get_close_matches(name, _PRODUCED, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it takes {', '.join(_PRODUCED)}"
    return f'there is no "{name}" in a record: {hint}'


def _data(fields: Mapping[str, object], name: str) -> bytes | None:
    encoded = fields.get(f"{name}_base64")
    if encoded is None:
        return _bytes(name, fields.get(name))
    if fields.get(name) is not None:
        raise InputError(f"{name} and {name}_base64 exclude each other")
    if not isinstance(encoded, str):
        raise InputError(f"{name}_base64 is not a string")
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise InputError(f"{name}_base64 is not base64") from None


def _bytes(name: str, value: object) -> bytes | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        # An escape such as \\ud800 alone is valid JSON, but no text: UTF-8 has no bytes for it.
        raise InputError(f"{name} holds half a surrogate pair") from None


def _number(fields: Mapping[str, object], name: str, first: int, last: int) -> int | None:
    match fields.get(name):
        case None:
            return None
        case bool():
            pass
        case int(value) if first <= value <= last:
            return value
    raise InputError(f"{name} is not a whole number from {first} to {last}")


def _headers(value: object) -> list[tuple[str, bytes | None]]:
    match value:
        case None:
            return []
        case dict():
            return [(checked_name(name), _bytes(name, item)) for name, item in value.items()]
        case list() if all(isinstance(h, dict) and isinstance(h.get("key"), str) for h in value):
            return [(_header_name(header), _data(header, "value")) for header in value]
    raise InputError('headers are neither an object nor a list of {"key": …, "value": …}')


def _header_name(header: Mapping[str, object]) -> str:
    if other := header.keys() - {"key", "value", "value_base64"}:
        raise InputError(
            f'there is no "{min(other)}" in a header: it takes key, value_base64, value'
        )
    return checked_name(str(header["key"]))


def checked_name(name: str) -> str:
    """A header's name, which is text. Raises `InputError` for one that is none."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"a header's name is text in UTF-8, which {name!a} is not") from None
    return name
