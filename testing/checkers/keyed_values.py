"""What a reader of what is committed ends with who keeps the last value of each key.

Read from a log's batches by a few lines that know nothing of the broker's tables, or of compaction:
that is not to change any of it.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, decode_batch
from tidemark.protocol.types import Offset
from tidemark.testing.checkers.violation import Violation

Values: TypeAlias = Mapping[bytes, tuple[Offset, bytes]]
"""The last value of each key, and where it lies. A deleted key has none."""


def last_values(pieces: Iterable[bytes]) -> Values:
    """`pieces`: all of a log, in whole batches. What is undecided at its end does not count."""
    last: dict[bytes, tuple[Offset, bytes | None]] = {}
    undecided: dict[int, list[Record]] = {}
    for piece in pieces:
        for at, header in iter_headers(piece):
            batch = piece[at : at + header.size_bytes]
            if header.is_control:
                marker = read_marker(batch, header)
                records = undecided.pop(header.producer_id, []) if marker is not None else []
                if marker is not None and marker.is_commit:
                    _take(last, records)
            elif header.record_count and header.is_transactional:
                undecided.setdefault(header.producer_id, []).extend(decode_batch(batch, header))
            elif header.record_count:
                _take(last, decode_batch(batch, header))
    return {key: (offset, value) for key, (offset, value) in last.items() if value is not None}


def _take(last: dict[bytes, tuple[Offset, bytes | None]], records: Iterable[Record]) -> None:
    """By offsets: a transaction that ends later may have begun earlier."""
    for record in records:
        if record.key is not None:
            known = last.get(record.key)
            if known is None or known[0] < record.offset:
                last[record.key] = record.offset, record.value


def stay(group: str, before: Values, after: Values) -> None:
    """A log has been compacted, and ends where it ended."""
    for key in sorted({*before, *after}):
        was, is_now = before.get(key), after.get(key)
        if was != is_now:
            what = f"{key!r} was {was}, and is {is_now}"
            raise Violation("compaction keeps the last value of each key", group, what)
