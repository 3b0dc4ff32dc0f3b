"""Rows of groups that are in step, as they travel: packed, one behind the other.

What cannot be true of any group is refused, with the whole connection; columns are looked at as a
whole, for there is a row for every batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import starmap
from operator import lt
from struct import Struct
from typing import Final, cast

from tidemark.partitions.replication.steady_messages import (
    AnswerRow,
    AppendRow,
    SteadyAnswers,
    SteadyAppends,
)
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.peer import steady
from tidemark.protocol.types import BytesLike

_APPEND: Final = Struct(">20siqqqi")
_ANSWER: Final = Struct(">20siqq")


def appends_to_wire(appends: SteadyAppends) -> steady.SteadyAppends:
    rows = b"".join(starmap(_APPEND.pack, appends.rows))
    first, *others = appends.records or (b"",)
    if isinstance(first, LogSlice):
        assert not others
        return steady.SteadyAppends(rows=rows, records=first)
    pieces = cast("Sequence[BytesLike]", appends.records)  # one that lies in a file is alone
    return steady.SteadyAppends(rows=rows, records=b"".join(pieces))


def answers_to_wire(answers: SteadyAnswers) -> steady.SteadyAnswers:
    return steady.SteadyAnswers(rows=b"".join(starmap(_ANSWER.pack, answers.rows)))


def appends_of(message: steady.SteadyAppends) -> SteadyAppends:
    """Raises `MalformedMessage`."""
    _check_size(message.rows, _APPEND)
    rows = cast("list[AppendRow]", list(_APPEND.iter_unpack(message.rows)))  # with its fields
    lengths: Sequence[int] = ()
    if rows:
        _, epochs, bases, ends, committed, lengths = zip(*rows)
        are_runs = min(*epochs, *bases, *committed, 0) == 0 and all(map(lt, bases, ends))
        if not are_runs or min(lengths) <= 0:
            raise MalformedMessage("a run that cannot be: below 0, or empty")
    if sum(lengths) != len(message.records):
        raise MalformedMessage(f"runs of {sum(lengths)} bytes in {len(message.records)}")
    records = memoryview(cast("bytes", message.records))  # as it came in
    return SteadyAppends(rows, list(_pieces(records, lengths)))


def _pieces(records: memoryview, lengths: Sequence[int]) -> Iterator[memoryview]:
    at = 0
    for length in lengths:
        yield records[at : at + length]
        at += length


def answers_of(message: steady.SteadyAnswers) -> SteadyAnswers:
    """Raises `MalformedMessage`."""
    _check_size(message.rows, _ANSWER)
    rows = cast("list[AnswerRow]", list(_ANSWER.iter_unpack(message.rows)))  # with its fields
    if rows:
        _, epochs, bases, matches = zip(*rows)
        if min(*epochs, *bases, *matches, 0) < 0:
            raise MalformedMessage("an answer with a position below 0")
    return SteadyAnswers(rows)


def _check_size(rows: bytes, row: Struct) -> None:
    if len(rows) % row.size:
        raise MalformedMessage(f"{len(rows)} bytes of rows that have {row.size} each")
