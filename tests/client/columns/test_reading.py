from collections.abc import Sequence
from contextlib import nullcontext

import pytest

from tidemark.client.columns import COLUMNS, reading, to_columns
from tidemark.client.offsets import Isolation
from tidemark.client.reading import read_records
from tidemark.client.records import FetchedBatches
from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import NO_EPOCH, Offset, TopicPartition

ABORTED, COMMITTED = 7, 8


def batch(
    at: int,
    values: Sequence[bytes],
    producer: int = -1,
    *,
    compression: Compression = Compression.NONE,
) -> bytes:
    return encode_batch(
        [Record(value=value, timestamp_ms=at) for value in values],
        base_offset=Offset(at),
        compression=compression,
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


@pytest.mark.parametrize("piece_bytes", [1, 1000, 2500, 10**6])
@pytest.mark.parametrize("damaged", [None, 2, 4, 5, 8])
def test_what_inflates_a_lot_comes_in_pieces_up_to_the_damage(
    monkeypatch: pytest.MonkeyPatch, piece_bytes: int, damaged: int | None
) -> None:
    """In each of them it is known which transactions were aborted."""
    log = [
        batch(0, [b"a" * 900], COMMITTED, compression=Compression.ZSTD),
        batch(1, [b"b" * 900], ABORTED, compression=Compression.ZSTD),
        batch(2, [b"c" * 5000], COMMITTED, compression=Compression.ZSTD),
        batch(3, [b"d"], COMMITTED),
        marker(4, ABORTED, is_commit=False),
        batch(5, [b"e" * 900], ABORTED, compression=Compression.ZSTD),
        batch(6, [b"f" * 900], COMMITTED, compression=Compression.ZSTD),
        marker(7, COMMITTED, is_commit=True),
        batch(8, [b"g" * 900], ABORTED, compression=Compression.ZSTD),
    ]
    if damaged is not None:
        log[damaged] = log[damaged][:-1] + bytes([log[damaged][-1] ^ 1])
    fetched = FetchedBatches(
        TopicPartition("t", 0),
        Offset(0),
        Offset(9),
        Offset(9),
        NO_EPOCH,
        memoryview(b"".join(log)),
        ((ABORTED, Offset(1)),),
    )
    monkeypatch.setattr(reading, "PIECE_BYTES", piece_bytes)
    pieces = reading._pieces(fetched, Offset(9), ("offset",), Isolation.READ_COMMITTED, Buffers())
    found: list[int] = []
    with (
        nullcontext()
        if damaged is None
        else pytest.raises(CorruptBatch, match=f"t-0 from offset {damaged},")
    ) as damage:
        for piece in pieces:
            found += piece["offset"].to_pylist()
    assert damage is None or damage.value.at == sum(map(len, log[:damaged]))
    assert found == [offset for offset in (0, 2, 3, 5, 6, 8) if damaged is None or offset < damaged]
