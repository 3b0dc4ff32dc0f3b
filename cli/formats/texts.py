"""How rpk's formats write bytes: `%v{hex}`, `%v{base64}`, `%v{base64raw}`, `%v{unpack[>Iq]}`.

`unpack` reads the bytes as numbers, in the notation of Python's `struct` with these differences:
`<` and `>` may stand anywhere and hold for what follows (little-endian before the first), `x` is
nothing, `c` or `.` is one byte as it is, `s` all that is left, and `$` says that nothing may be
left. What does not fit is said in the output, because the record before it has been printed
already.
"""

import base64
import struct
from collections.abc import Callable
from typing import Final

from tidemark.cli.formats.delimiters import read_delimited
from tidemark.cli.formats.formatter import FormatError

WriteText = Callable[[bytes], bytes]
Step = Callable[[bytes], tuple[bytes, bytes]]
"""Takes the bytes that are left; returns what to print and the bytes that are left then."""

_FORMATS: Final[dict[str, WriteText]] = {
    "hex": lambda data: data.hex().encode(),
    "base64": base64.b64encode,
    "base64raw": lambda data: base64.b64encode(data).rstrip(b"="),
}


def text_format(modifier: str) -> WriteText:
    """The function that writes bytes so; `FormatError` for a modifier there is not."""
    if modifier.startswith("unpack"):
        return _unpack(read_delimited(modifier, "unpack"))
    if modifier not in _FORMATS:
        raise FormatError(
            f"{{{modifier}}} is not a way to write bytes: {', '.join(_FORMATS)}, unpack[…]"
        )
    return _FORMATS[modifier]


def _unpack(layout: str) -> WriteText:
    steps = _steps(layout)

    def write(data: bytes) -> bytes:
        out = b""
        for step in steps:
            printed, data = step(data)
            out += printed
        return out

    return write


def _steps(layout: str) -> list[Step]:
    order, steps = "<", list[Step]()
    for at, letter in enumerate(layout):
        if letter in "<>":
            order = letter
        elif letter in "bBhHiIqQ":
            steps.append(_number(struct.Struct(order + letter)))
        elif letter in "c.":
            steps.append(_character)
        elif letter in "s$":
            if layout[at + 1 :]:
                raise FormatError(f"unpack: nothing can follow {letter!r} in {layout!r}")
            steps.append(_rest if letter == "s" else _end)
        elif letter != "x":
            raise FormatError(f"unpack: {letter!r} in {layout!r} is none of <>xbBhHiIqQc.s$")
    return steps


def _number(form: struct.Struct) -> Step:
    def step(data: bytes) -> tuple[bytes, bytes]:
        if len(data) < form.size:
            return b"(have %d bytes, need %d)" % (len(data), form.size), b""
        return b"%d" % form.unpack_from(data)[0], data[form.size :]

    return step


def _character(data: bytes) -> tuple[bytes, bytes]:
    return (data[:1] or b"(no bytes left)"), data[1:]


def _rest(data: bytes) -> tuple[bytes, bytes]:
    return data, b""


def _end(data: bytes) -> tuple[bytes, bytes]:
    return (b"(%d bytes left)" % len(data) if data else b""), b""
