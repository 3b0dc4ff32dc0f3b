"""Backslash escapes, in the two dialects that the two percent formats use."""

import re

from tidemark.cli.formats.formatter import FormatError

_SIMPLE = {"t": b"\t", "n": b"\n", "r": b"\r", "\\": b"\\"}

_KCAT_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]+)|(0[0-7]*|[1-9][0-9]*)|(.))", re.DOTALL)


def read_escape(text: str, at: int) -> tuple[bytes, int]:
    """The bytes that the escape at `text[at]` (its backslash) stands for, and where it ends.

    rpk's dialect: `\\t \\n \\r \\\\ \\xNN`, two hex digits always; all else is an error.
    """
    kind = text[at + 1 : at + 2]
    if kind in _SIMPLE:
        return _SIMPLE[kind], at + 2
    digits = text[at + 2 : at + 4]
    if kind == "x" and re.fullmatch("[0-9a-fA-F]{2}", digits):
        return bytes([int(digits, 16)]), at + 4
    raise FormatError(
        f"{text[at : at + 4]!r} is not an escape: there are \\t, \\n, \\r, \\\\ and \\xNN"
    )


def unescape_kcat(text: str) -> bytes:
    """The bytes of a literal as kcat reads it.

    `\\x` takes as many hex digits as follow, a number in C's notation as many digits as follow
    (octal after a leading 0), and the low byte counts. Any other character stands for itself.
    """
    out, at = b"", 0
    for escape in _KCAT_ESCAPE.finditer(text):
        out += _bytes(text[at : escape.start()]) + _kcat_escape(*escape.groups())
        at = escape.end()
    return out + _bytes(text[at:])


def _kcat_escape(hexadecimal: str | None, number: str | None, character: str | None) -> bytes:
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16) & 0xFF])
    if number is not None:
        return bytes([int(number, 8 if number.startswith("0") else 10) & 0xFF])
    assert character is not None
    return _SIMPLE.get(character) or _bytes(character)


def _bytes(text: str) -> bytes:
    """An argument's own bytes, even where they are not UTF-8."""
    return text.encode("utf-8", "surrogateescape")
