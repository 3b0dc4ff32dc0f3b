from collections.abc import Sequence

import pytest

from tidemark.client.columns import COLUMNS, to_columns
from tidemark.client.offsets import Isolation
from tidemark.client.reading import read_records
from tidemark.client.records import FetchedBatches
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import NO_EPOCH, Offset, TopicPartition

ABORTED, COMMITTED = 7, 8


def batch(at: int, values: Sequence[bytes], producer: int = -1) -> bytes:
    return encode_batch(
        [Record(value=value, timestamp_ms=at) for value in values],
        base_offset=Offset(at),
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=producer >= 0,
    )


def marker(at: int, producer: int, *, is_commit: bool) -> bytes:
    key = b"\x00\x00" + (b"\x00\x01" if is_commit else b"\x00\x00")
    return encode_batch(
        [Record(key=key, value=bytes(6))],
        base_offset=Offset(at),
        producer_id=producer,
        is_transactional=True,
        is_control=True,
    )


LOG = (
    batch(0, [b"plain", b"words"])
    + batch(2, [b"taken", b"back"], ABORTED)
    + batch(4, [b"kept"], COMMITTED)
    + marker(5, ABORTED, is_commit=False)
    + marker(6, COMMITTED, is_commit=True)
    + batch(7, [b"after", b"it", b"all"], ABORTED)
)


@pytest.mark.parametrize("isolation", Isolation)
@pytest.mark.parametrize(("start", "end"), [(0, None), (1, 9), (3, 5), (5, 7), (9, 9)])
def test_a_fetch_has_the_same_records_in_columns(
    isolation: Isolation, start: int, end: int | None
) -> None:
    aborted = ((ABORTED, Offset(2)),) if isolation is Isolation.READ_COMMITTED else ()
    fetched = FetchedBatches(
        TopicPartition("t", 0),
        Offset(start),
        Offset(10),
        Offset(10),
        NO_EPOCH,
        memoryview(LOG),
        aborted,
    )
    bound = None if end is None else Offset(end)
    records = read_records(fetched, bound, isolation)
    columns = to_columns(fetched, end=bound, isolation=isolation)
    assert tuple(columns.schema.names) == COLUMNS
    assert columns["offset"].to_pylist() == [record.offset for record in records]
    assert columns["value"].to_pylist() == [record.value for record in records]


def test_damage_is_named_by_its_place_in_what_was_fetched() -> None:
    """Also where an aborted transaction lies before it, which is left out."""
    damaged = bytearray(LOG)
    damaged[-1] ^= 1
    aborted = ((ABORTED, Offset(2)),)
    fetched = FetchedBatches(
        TopicPartition("t", 0), Offset(0), Offset(10), Offset(10), NO_EPOCH, memoryview(damaged)
    )._replace(aborted=aborted)
    with pytest.raises(CorruptBatch, match="t-0 from offset 7,") as found:
        to_columns(fetched, isolation=Isolation.READ_COMMITTED)
    (*_, last) = (at for at, _ in iter_headers(LOG))
    assert found.value.at == last
