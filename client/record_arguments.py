"""What a caller gives for a record, checked before it is taken in.

A record that cannot be encoded would fail in the sender's task, and with it all that are sent with
it; one that is encoded wrongly could never be read again.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Final, SupportsIndex

Headers = Sequence[tuple[str, bytes | None]] | Mapping[str, bytes | None]

TIMESTAMP_MAX_MS: Final = 2**62
"""Any two within this, before and after 1970, fit into one batch: it holds the difference of each
from its first, in 64 bits."""


def as_bytes(what: str, given: object) -> bytes | None:
    """The bytes of anything that holds some, as they are now; None for None.

    Raises `TypeError` for what holds none.
    """
    if given is None or given.__class__ is bytes:
        return given
    if isinstance(given, bytes | bytearray | memoryview):
        return bytes(given)
    hint = ": encode it, as in text.encode()" if isinstance(given, str) else ""
    raise TypeError(f"a record's {what} is bytes or None, not {type(given).__name__}{hint}")


def as_headers(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    """The headers as pairs. Raises `TypeError` for what is none, `ValueError` for a name that is
    not UTF-8."""
    if not isinstance(headers, Iterable):
        raise TypeError(f"headers are pairs of a str and bytes, not {headers!r}")
    named = tuple(headers.items() if isinstance(headers, Mapping) else headers)
    for pair in named:
        if not (isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)):
            raise TypeError(f"headers are pairs of a str and bytes, not {pair!r}")
        try:
            pair[0].encode()
        except UnicodeEncodeError:
            raise ValueError(f"a header's name is UTF-8, which {pair[0]!r} is not") from None
    return tuple((name, as_bytes(f"header {name}", value)) for name, value in named)


def headers_bytes(headers: Sequence[tuple[str, bytes | None]]) -> int:
    """How much they add to a record, at most."""
    # Four bytes a character and two lengths.
    return sum(10 + 4 * len(name) + (len(value) if value else 0) for name, value in headers)


def as_timestamp(timestamp_ms: int) -> int:
    """Raises `TypeError` for what is no whole number, `ValueError` for one out of bounds."""
    if not isinstance(timestamp_ms, SupportsIndex):
        raise TypeError(f"a record's timestamp is a whole number of ms, not {timestamp_ms!r}")
    whole = index(timestamp_ms)
    if not -TIMESTAMP_MAX_MS <= whole <= TIMESTAMP_MAX_MS:
        raise ValueError(f"a record's timestamp is within 2**62 ms of 1970, not {whole}")
    return whole
