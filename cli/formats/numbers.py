"""How rpk's formats write a number: the modifiers `%V{hex32}`, `%p{big16}`, and so on.

| modifier | is |
|---|---|
| `ascii`, `number` | decimal, the default |
| `hex64` `hex32` `hex16` `hex8` `hex4` | that many bits in hex, with leading zeros |
| `hex` | hex without leading zeros |
| `big64` … `big8`, `little64` … `little8`, `byte` | the raw bytes, in that order |
| `bool` | `true` unless it is 0 |

A number that does not fit is cut to its low bits; a negative one is in two's complement.
"""

from collections.abc import Callable
from typing import Final

from tidemark.cli.formats.formatter import FormatError

WriteNumber = Callable[[int], bytes]


def _hex(bits: int) -> WriteNumber:
    mask, template = (1 << bits) - 1, b"%%0%dx" % (bits // 4)
    return lambda number: template % (number & mask)


def _raw(bits: int, *, little: bool) -> WriteNumber:
    mask, size = (1 << bits) - 1, bits // 8
    if little:
        return lambda number: (number & mask).to_bytes(size, "little")
    return lambda number: (number & mask).to_bytes(size, "big")


_FORMATS: Final[dict[str, WriteNumber]] = {
    "ascii": lambda number: b"%d" % number,
    "number": lambda number: b"%d" % number,
    "hex": lambda number: b"%x" % (number & (1 << 64) - 1),
    "bool": lambda number: b"true" if number else b"false",
    "byte": _raw(8, little=False),
    **{f"hex{bits}": _hex(bits) for bits in (4, 8, 16, 32, 64)},
    **{f"big{bits}": _raw(bits, little=False) for bits in (8, 16, 32, 64)},
    **{f"little{bits}": _raw(bits, little=True) for bits in (8, 16, 32, 64)},
}


def number_format(modifier: str) -> WriteNumber:
    """The function that writes a number so; `FormatError` for a modifier there is not."""
    if modifier not in _FORMATS:
        raise FormatError(f"{{{modifier}}} is not a way to write a number: {', '.join(_FORMATS)}")
    return _FORMATS[modifier]
