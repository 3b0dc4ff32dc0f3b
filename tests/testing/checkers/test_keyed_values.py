"""The last values of keys: as a reader of what is committed has them, in whatever order it ends."""

from collections.abc import Iterator

import pytest

from tests.testing.checkers.values import breaks
from tidemark.protocol.records.control import Marker, encode_marker
from tidemark.protocol.records.gaps import gap_batch
from tidemark.protocol.records.header import place
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, Offset, ProducerId
from tidemark.testing.checkers.keyed_values import last_values, stay


def placed(*batches: bytes) -> Iterator[bytes]:
    """One behind the other, each by itself: all of them are of one record."""
    for offset, batch in enumerate(batches):
        data = bytearray(batch)
        place(data, 0, base_offset=Offset(offset), epoch=Epoch(1))
        yield bytes(data)


def put(key: bytes, value: bytes | None, *, producer: int = -1) -> bytes:
    record = Record(timestamp_ms=1, key=key, value=value)
    return encode_batch(
        [record], producer_id=producer, producer_epoch=0, is_transactional=producer >= 0
    )


def end(producer: int, *, is_commit: bool) -> bytes:
    return encode_marker(ProducerId(producer), 0, Marker(is_commit, 0), timestamp_ms=1)


def test_the_last_value_of_each_key_counts_and_a_deleted_key_has_none() -> None:
    found = last_values(placed(put(b"a", b"1"), put(b"b", b"1"), put(b"a", b"2"), put(b"b", None)))
    assert found == {b"a": (2, b"2")}


def test_what_is_aborted_or_undecided_replaces_nothing() -> None:
    found = last_values(
        placed(
            put(b"a", b"1"),
            put(b"a", b"aborted", producer=7),
            end(7, is_commit=False),
            put(b"a", b"undecided", producer=8),
        )
    )
    assert found == {b"a": (0, b"1")}


@pytest.mark.parametrize("first", [7, 8])
def test_who_ends_last_does_not_replace_what_lies_behind(first: int) -> None:
    found = last_values(
        placed(
            put(b"a", b"1", producer=7),
            put(b"a", b"2", producer=8),
            end(first, is_commit=True),
            end(15 - first, is_commit=True),
        )
    )
    assert found == {b"a": (1, b"2")}


def test_a_gap_has_no_records() -> None:
    gap = gap_batch(Offset(0), Offset(5), Epoch(1))
    assert last_values([gap]) == {}


def test_compaction_that_changes_a_value() -> None:
    before = {b"a": (Offset(3), b"x")}
    stay("g", before, dict(before))
    for after in ({}, {b"a": (Offset(3), b"y")}, {b"a": (Offset(2), b"x")}):
        with breaks("compaction keeps the last value of each key"):
            stay("g", before, after)
