"""kcat's format strings (`kcat -f`), for those whose fingers or scripts know them.

| token | is |
|---|---|
| `%s` `%S` `%R` | the value; its length in decimal, -1 for null; the same as 4 bytes, big-endian |
| `%k` `%K` | the key; its length, -1 for null |
| `%h` | the headers, `name=value` with commas between; a null value is `NULL` |
| `%T` | the timestamp, milliseconds since 1970 |
| `%t` `%p` `%o` | topic, partition, offset |
| `%%` | a percent sign |

Backslash escapes are kcat's too (`escapes.unescape_kcat`); they are undone in each stretch of
text between tokens by itself.
"""

import re
import struct
from collections.abc import Sequence
from typing import Final

from tidemark.cli.formats.escapes import unescape_kcat
from tidemark.cli.formats.formatter import (
    Data,
    FormatError,
    Formatter,
    Literal,
    Number,
    Piece,
    compile_pieces,
)


def _headers(headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    return b",".join(
        name.encode() + b"=" + (b"NULL" if value is None else value) for name, value in headers
    )


_VALUE_LENGTH = "-1 if record.value is None else len(record.value)"

_TOKENS: Final[dict[str, Piece]] = {
    "S": Number(_VALUE_LENGTH),
    "R": Data(_VALUE_LENGTH, struct.Struct(">i").pack),
    "K": Number("-1 if record.key is None else len(record.key)"),
    "h": Data("record.headers", _headers),
    "T": Number("record.timestamp_ms"),
    "t": Data("source.topic.encode()"),
    "p": Number("source.partition"),
    "o": Number("record.offset"),
    "%": Literal(b"%"),
}


def compile_kcat(text: str, *, null: bytes = b"") -> Formatter:
    """The function that prints a record as `kcat -f text` does.

    `null` is printed for a key or value that is null or empty: what `kcat -Z` does with `NULL`.
    Raises `FormatError` on a token that kcat does not have.
    """
    tokens = _TOKENS | {"s": _text("value", null), "k": _text("key", null)}
    pieces: list[Piece] = []
    # Split keeps the captured token letters at the odd places.
    for at, part in enumerate(re.split(r"%(.|\Z)", text, flags=re.DOTALL)):
        if at % 2 == 0:
            pieces.append(Literal(unescape_kcat(part)))
        elif part in tokens:
            pieces.append(tokens[part])
        else:
            raise FormatError(f"%{part} is not a token of kcat's; %% prints a percent sign")
    return compile_pieces(pieces)


def _text(field: str, null: bytes) -> Data:
    return Data(f"record.{field} or {null!r}")
