"""The judge of what readers may see, on logs made by hand."""

from tidemark.protocol.records.control import Marker, encode_marker
from tidemark.protocol.records.header import place
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, Offset, ProducerId
from tidemark.testing.simulator.transactions.judge import CommittedTransactions

ANN, BOB = ProducerId(1), ProducerId(2)


def record_of(producer_id: ProducerId, value: bytes = b"x") -> bytes:
    records = [Record(Offset(0), 0, None, value, ())]
    return encode_batch(
        records,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )


def marker_of(producer_id: ProducerId, *, is_commit: bool) -> bytes:
    return encode_marker(producer_id, 0, Marker(is_commit, 1), timestamp_ms=0)


def log(*batches: bytes) -> CommittedTransactions:
    """Of batches with one offset each."""
    known = CommittedTransactions()
    for offset, batch in enumerate(batches):
        placed = bytearray(batch)
        place(placed, 0, base_offset=Offset(offset), epoch=Epoch(0))
        known.take(bytes(placed))
    return known


def test_it_is_stable_up_to_the_first_that_is_open() -> None:
    known = log(record_of(ANN), record_of(BOB), marker_of(ANN, is_commit=True))
    assert known.stable_below(Offset(3)) == 1


def test_a_marker_counts_once_it_is_committed() -> None:
    known = log(record_of(ANN), record_of(BOB), marker_of(ANN, is_commit=True))
    assert known.stable_below(Offset(2)) == 0


def test_what_was_aborted_is_told_where_it_lies() -> None:
    known = log(
        record_of(ANN),
        record_of(BOB),
        marker_of(ANN, is_commit=False),
        marker_of(BOB, is_commit=True),
        record_of(ANN),
    )
    assert [*known.aborted(Offset(0), Offset(4))] == [(ANN, 0)]
    assert not [*known.aborted(Offset(3), Offset(5))]


def test_what_is_known_already_changes_nothing() -> None:
    known = log(record_of(ANN), marker_of(ANN, is_commit=True))
    known.take(record_of(ANN))
    assert known.stable_below(Offset(2)) == 2


def test_of_what_is_compacted_all_that_was_committed_is_known_for_ever() -> None:
    known = CommittedTransactions()
    batches = (
        record_of(ANN, b"a"),
        record_of(BOB, b"b"),
        marker_of(ANN, is_commit=True),
        marker_of(BOB, is_commit=False),
        record_of(ANN, b"c"),
    )
    for offset, batch in enumerate(batches):
        placed = bytearray(batch)
        place(placed, 0, base_offset=Offset(offset), epoch=Epoch(0))
        known.take(bytes(placed), is_compacted=True)
    assert known.committed_values == {"a"}
