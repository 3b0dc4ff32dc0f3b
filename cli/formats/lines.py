"""Records as lines of text: what `produce` reads when it is not told that they are JSON.

A record is what stands between two delimiters, to the byte: an empty line is an empty record, a
carriage return belongs to its line, and what follows the last delimiter is a record if it is not
empty.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.cli.formats.json_lines import InputError, NewRecord, checked_name


class LineSplitter:
    """Cuts a stream at a delimiter, however its bytes arrive."""

    def __init__(self, delimiter: bytes, *, line_bytes_max: int) -> None:
        """`delimiter` is not empty. A line may not be longer than `line_bytes_max`."""
        assert delimiter
        self._delimiter = delimiter
        self._line_bytes_max = line_bytes_max
        self._begun: list[bytes] = []  # What is here of the next line, which holds no delimiter.
        self._begun_bytes = 0
        self._tail = b""  # Its last bytes: a delimiter of several may begin there.

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete with `data`; `InputError` when one grows too long."""
        if self._delimiter in self._tail + data:
            data = self._take() + data
        *lines, rest = data.split(self._delimiter)
        self._begun.append(rest)
        self._begun_bytes += len(rest)
        kept = len(self._delimiter) - 1
        self._tail = (self._tail + rest)[-kept:] if kept else b""
        if self._begun_bytes > self._line_bytes_max:
            raise InputError(f"longer than {self._line_bytes_max} bytes, without a delimiter")
        return lines

    def finish(self) -> list[bytes]:
        """What stands after the last delimiter, as a line, unless it is nothing."""
        rest = self._take()
        return [rest] if rest else []

    def _take(self) -> bytes:
        data = b"".join(self._begun)
        self._begun, self._begun_bytes, self._tail = [], 0, b""
        return data


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFormat:
    """How the parts of a record stand in its line, and what all records have in common."""

    key: bytes | None = None
    key_delimiter: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int | None = None
    empty_is_null: bool = False

    def parse(self, line: bytes) -> NewRecord:
        """The record in a line.

        The key is what stands before the first `key_delimiter`; a line without one has `key`.
        With `empty_is_null`, an empty value, and an empty key before a delimiter, are null.
        """
        key, value = self.key, line
        if self.key_delimiter is not None:
            before, delimiter, after = line.partition(self.key_delimiter)
            if delimiter:
                key, value = before, after
        return NewRecord(
            key=None if self.empty_is_null and not key else key,
            value=None if self.empty_is_null and not value else value,
            headers=self.headers,
            partition=self.partition,
        )


def parse_header(text: str) -> tuple[str, bytes | None]:
    """A header as `-H` names it: `name=value`, or `name` alone for a null value."""
    name, equals, value = text.partition("=")
    if not name:
        raise InputError(f"{text!r} is not a header: say NAME=VALUE, or NAME for a null value")
    return checked_name(name), value.encode("utf-8", "surrogateescape") if equals else None
