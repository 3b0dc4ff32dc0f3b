"""Java's properties format, as far as a `server.properties` goes.

A line is `name=value`, `name:value` or `name value`; `#` and `!` begin comments; a backslash
escapes a separator, and at the end of a line joins the next one to it. Unlike Java's, this reader
takes UTF-8 as it is.
"""

import re
from collections.abc import Iterator

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# A name runs to the first separator that no backslash stands before.
_ENTRY = re.compile(r"((?:\\.|[^\\=:\s])+)\s*[=:]?\s*(.*)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """The properties in `text`; of a name that comes twice, the last."""
    properties = {}
    for line in _logical_lines(text):
        entry = _ENTRY.match(line)
        if entry:
            properties[_unescape(entry[1])] = _unescape(entry[2]).strip()
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    joined = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not joined and line.startswith(("#", "!")):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            joined += line[:-1]
            continue
        yield joined + line
        joined = ""
    if joined:
        yield joined


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _CONTROLS.get(escaped, escaped)

    return _ESCAPE.sub(replace, text)
