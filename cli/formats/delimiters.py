"""The free choice of delimiters around an argument inside a modifier: `strftime[…]`, `go##…##`."""

from typing import Final

from tidemark.cli.formats.formatter import FormatError

_CLOSING: Final = {"[": "]", "{": "}", "(": ")"}


def read_delimited(modifier: str, name: str) -> str:
    """The argument of `modifier`, which starts with `name`.

    The first character after the name opens the argument, repeated as often as one likes, and the
    same number of its counterpart (or of itself, if it has none) closes it, at the modifier's end.
    """
    rest = modifier.removeprefix(name)
    if not rest:
        raise FormatError(f"{name} needs an argument, as in {name}[…]")
    count = len(rest) - len(rest.lstrip(rest[0]))
    closing = _CLOSING.get(rest[0], rest[0]) * count
    if len(rest) < 2 * count or not rest.endswith(closing):
        raise FormatError(f"{modifier!r} does not end in {closing!r}")
    return rest[count : len(rest) - count]
