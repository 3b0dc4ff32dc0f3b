"""rpk's format strings (`rpk topic consume --format`): the native format of `tidemark consume`.

| token | is | token | is |
|---|---|---|---|
| `%t` `%T` | topic, its length | `%o` `%e` | offset, leader epoch |
| `%k` `%K` | key, its length | `%x` `%y` | producer id, producer epoch |
| `%v` `%V` | value, its length | `%i` | how many were printed, from 1 |
| `%h{…}` | each header, by the format inside | `%[` | the partition's log start |
| `%H` | the number of headers | `%|` | its last stable offset |
| `%p` | partition | `%]` | its high watermark |
| `%d` | timestamp, in ms | `%a{…}` | an attribute |
| `%%` `%{` `%}` | the character | | |

Modifiers follow in braces: numbers take those of `numbers.py`, texts those of `texts.py`, `%d` the
numbers', `strftime[…]` and `go[…]`, `%a` one of `compression`, `timestamp-type`,
`transactional-bit`, `control-bit`, with `;` and a number's modifier behind it. A null key or value
prints as nothing and has length 0. The word `json` alone is a line of JSON a record.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Final

from tidemark.cli.formats.escapes import read_escape
from tidemark.cli.formats.formatter import (
    RECORD_ARGUMENTS,
    Data,
    FormatError,
    Formatter,
    Literal,
    Number,
    Piece,
    compile_pieces,
)
from tidemark.cli.formats.json_lines import format_json
from tidemark.cli.formats.numbers import number_format
from tidemark.cli.formats.texts import text_format
from tidemark.cli.formats.times import time_format

_NUMBERS: Final = {
    "T": "len(source.topic.encode())",
    "K": "len(record.key or b'')",
    "V": "len(record.value or b'')",
    "H": "len(record.headers)",
    "p": "source.partition",
    "o": "record.offset",
    "e": "source.leader_epoch",
    "x": "source.producer_id",
    "y": "source.producer_epoch",
    "[": "source.log_start",
    "|": "source.last_stable_offset",
    "]": "source.high_watermark",
}

_TEXTS: Final = {
    "t": "source.topic.encode()",
    "k": "record.key or b''",
    "v": "record.value or b''",
}

_ATTRIBUTES: Final = {
    "compression": "source.compression",
    "timestamp-type": "source.timestamp_type",
    "transactional-bit": "int(source.is_transactional)",
    "control-bit": "int(source.is_control)",
}

_CODECS: Final = (b"none", b"gzip", b"snappy", b"lz4", b"zstd")

# Inside `%h{…}`, where there is one header and no record.
_HEADER_ARGUMENTS: Final = "name, value"
_HEADER_NUMBERS: Final = {"K": "len(name.encode())", "V": "len(value or b'')"}
_HEADER_TEXTS: Final = {"k": "name.encode()", "v": "value or b''"}


def compile_rpk(text: str) -> Formatter:
    """The function that prints a record as rpk's format `text` says; `FormatError` if it cannot."""
    if text == "json":
        return format_json
    return compile_pieces(_parse(text, _record_token), RECORD_ARGUMENTS)


_Token = Callable[[str, str | None], Piece]
"""What a token letter means, with its modifier (None: no braces)."""


def _parse(text: str, token: _Token) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    while at < len(text):
        if text[at] == "\\":
            data, at = read_escape(text, at)
            pieces.append(Literal(data))
        elif text[at] != "%":
            # An argument's own bytes, even where they are not UTF-8.
            pieces.append(Literal(text[at].encode("utf-8", "surrogateescape")))
            at += 1
        elif text[at + 1 : at + 2] in ("%", "{", "}"):
            pieces.append(Literal(text[at + 1].encode()))
            at += 2
        else:
            letter = text[at + 1 : at + 2]
            if not letter:
                raise FormatError("a format cannot end in %; %% prints a percent sign")
            modifier, at = _read_modifier(text, at + 2)
            pieces.append(token(letter, modifier))
    return pieces


def _read_modifier(text: str, at: int) -> tuple[str | None, int]:
    """What stands in the braces that open at `at`, if any do, and where to go on.

    Braces nest (a header's format has its own); `%{` and `%}` are characters and do not count.
    """
    if text[at : at + 1] != "{":
        return None, at
    depth, end = 1, at + 1
    while depth:
        character = text[end : end + 1]
        if not character:
            raise FormatError(f"the brace of {text[at - 2 :]!r} is not closed")
        if character == "%" and text[end + 1 : end + 2] in ("{", "}", "%"):
            end += 2
            continue
        depth += {"{": 1, "}": -1}.get(character, 0)
        end += 1
    return text[at + 1 : end - 1], end


def _record_token(letter: str, modifier: str | None) -> Piece:
    if letter in _NUMBERS:
        return _number(_NUMBERS[letter], modifier)
    if letter in _TEXTS:
        return _text(_TEXTS[letter], modifier)
    match letter:
        case "i":
            return Data("", _counter(modifier))
        case "h":
            return Data("record.headers", _headers(modifier))
        case "d":
            return _time("record.timestamp_ms", modifier)
        case "a":
            return _attribute(modifier)
    raise FormatError(f"%{letter} is not a token; %% prints a percent sign")


def _header_token(letter: str, modifier: str | None) -> Piece:
    if letter in _HEADER_NUMBERS:
        return _number(_HEADER_NUMBERS[letter], modifier)
    if letter in _HEADER_TEXTS:
        return _text(_HEADER_TEXTS[letter], modifier)
    raise FormatError(f"%{letter} is not a token of a header: there are %k %K %v %V")


def _number(expression: str, modifier: str | None) -> Piece:
    if modifier in (None, "ascii", "number"):
        return Number(expression)
    assert modifier is not None
    return Data(expression, number_format(modifier))


def _text(expression: str, modifier: str | None) -> Piece:
    return Data(expression, None if modifier is None else text_format(modifier))


def _time(expression: str, modifier: str | None) -> Piece:
    if modifier is not None and modifier.startswith(("strftime", "go")):
        return Data(expression, time_format(modifier))
    return _number(expression, modifier)


def _counter(modifier: str | None) -> Callable[[], bytes]:
    """Counts its own calls: what `%i` prints."""
    write = number_format(modifier or "ascii")
    numbers = itertools.count(1)
    return lambda: write(next(numbers))


def _headers(inner: str | None) -> Callable[[Sequence[tuple[str, bytes | None]]], bytes]:
    if inner is None:
        raise FormatError("%h needs the format of one header in braces, as in %h{%k=%v }")
    write = compile_pieces(_parse(inner, _header_token), _HEADER_ARGUMENTS)
    return lambda headers: b"".join([write(name, value) for name, value in headers])


def _attribute(modifier: str | None) -> Piece:
    name, _, form = (modifier or "").partition(";")
    if name not in _ATTRIBUTES:
        raise FormatError(f"%a needs one of {', '.join(_ATTRIBUTES)} in braces")
    if name == "compression" and not form:
        return Data(_ATTRIBUTES[name], _CODECS.__getitem__)
    return _number(_ATTRIBUTES[name], form or None)
