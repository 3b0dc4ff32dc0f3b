"""What is open, stable and aborted, against the plainest way to say it."""

from dataclasses import dataclass
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.partitions.state_machines.open_transactions import OpenTransactions
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Offset, ProducerId


@dataclass(frozen=True)
class Entry:
    """One offset of a log."""

    producer: int
    kind: str
    """`data`, `commit` or `abort`."""


LOGS = st.lists(
    st.builds(Entry, st.integers(0, 3), st.sampled_from(["data", "data", "commit", "abort"])),
    max_size=30,
)


def fed(log: list[Entry], table: OpenTransactions | None = None, at: int = 0) -> OpenTransactions:
    table = table or OpenTransactions()
    for offset, entry in enumerate(log, at):
        if entry.kind == "data":
            table.append(ProducerId(entry.producer), Offset(offset), 1)
        else:
            is_commit = entry.kind == "commit"
            table.end(ProducerId(entry.producer), Offset(offset), is_commit=is_commit)
    return table


class Span(NamedTuple):
    """A transaction, by looking for its marker."""

    producer_id: int
    first_offset: int
    marker_offset: int
    """The log's end, if there is none."""


def spans(log: list[Entry]) -> list[tuple[Span, str]]:
    """Every transaction."""
    found, taken = [], set[int]()
    for first, entry in enumerate(log):
        if entry.kind != "data" or first in taken:
            continue
        own = [
            (offset, other)
            for offset, other in enumerate(log)
            if offset >= first and other.producer == entry.producer
        ]
        marker = next(((o, e.kind) for o, e in own if e.kind != "data"), (len(log), "open"))
        taken.update(offset for offset, _ in own if offset <= marker[0])
        found.append((Span(entry.producer, first, marker[0]), marker[1]))
    return found


@given(LOGS, st.data())
def test_below_the_last_stable_offset_all_is_decided_and_committed(
    log: list[Entry], data: st.DataObject
) -> None:
    high_watermark = data.draw(st.integers(0, len(log)))
    undecided = [
        over.first_offset for over, _ in spans(log) if over.marker_offset >= high_watermark
    ]
    expected = min([high_watermark, *undecided])
    assert fed(log).last_stable_offset(Offset(high_watermark)) == expected


@given(LOGS, st.data())
def test_a_reader_is_told_of_all_that_were_aborted_where_it_reads(
    log: list[Entry], data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(log)))
    end = data.draw(st.integers(start, len(log)))
    expected = {
        over
        for over, kind in spans(log)
        if kind == "abort" and over.marker_offset >= start and over.first_offset < end
    }
    assert {over[:3] for over in fed(log).aborted(Offset(start), Offset(end))} == expected


def test_the_last_that_a_reader_is_told_of_may_end_far_behind() -> None:
    table = fed([Entry(1, "data"), Entry(2, "data"), Entry(1, "abort"), Entry(2, "abort")])
    told = [over.producer_id for over in table.aborted(Offset(0), Offset(2))]
    assert told == [1, 2]


@given(LOGS, st.data())
def test_a_snapshot_goes_on_where_it_was_taken(log: list[Entry], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log)))
    table = fed(log[:cut])
    high_watermark = Offset(data.draw(st.integers(0, cut)))
    table.last_stable_offset(high_watermark)
    resumed = fed(log[cut:], OpenTransactions.decode(table.encode()), cut)
    whole = fed(log)
    whole.last_stable_offset(high_watermark)
    assert resumed.encode() == whole.encode()


def test_what_lies_below_the_log_start_is_forgotten() -> None:
    table = fed([Entry(1, "data"), Entry(1, "abort"), Entry(2, "data"), Entry(2, "abort")])
    table.trim(Offset(2))
    assert [over.producer_id for over in table.aborted(Offset(0), Offset(4))] == [2]
    table.trim(Offset(3))
    assert table.aborted(Offset(0), Offset(4)) != []
    table.trim(Offset(4))
    assert table.aborted(Offset(0), Offset(4)) == []


@pytest.mark.parametrize("data", [b"", bytes(11), bytes(13), b"\xff" * 12, b"\0\0\0\1" + bytes(8)])
def test_other_bytes_are_no_snapshot(data: bytes) -> None:
    with pytest.raises(StorageError):
        OpenTransactions.decode(data)


def test_an_abort_that_the_log_has_lost_did_not_happen() -> None:
    table = fed([Entry(1, "data"), Entry(1, "abort"), Entry(2, "data")])
    table.forget_from(Offset(1))
    assert [*table.opened] == [1]


@given(LOGS, st.data())
def test_what_the_log_has_lost_is_as_if_it_had_never_come_but_for_commits(
    log: list[Entry], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(log)))
    table = fed(log)
    table.forget_from(Offset(cut))
    before = fed(log[:cut])
    committed = {
        span.producer_id
        for span, kind in spans(log)
        if kind == "commit" and span.first_offset < cut <= span.marker_offset
    }
    assert {producer: each.first_offset for producer, each in table.opened.items()} == {
        producer: each.first_offset
        for producer, each in before.opened.items()
        if producer not in committed
    }
    assert [over[:3] for over in table.aborted(Offset(0), Offset(cut))] == [
        over[:3] for over in before.aborted(Offset(0), Offset(cut))
    ]
