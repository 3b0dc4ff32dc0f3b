import pytest

from tidemark.client.offsets import Isolation
from tidemark.client.reading import next_offset, read_records
from tidemark.client.records import CREATE_TIME, LOG_APPEND_TIME, FetchedBatches
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, Offset, TopicPartition

COMMITTED = Isolation.READ_COMMITTED
UNCOMMITTED = Isolation.READ_UNCOMMITTED


def batch(base: int, *values: bytes, producer: int = -1, epoch: int = 3) -> bytes:
    return encode_batch(
        [Record(timestamp_ms=100 + base, value=value) for value in values],
        base_offset=Offset(base),
        epoch=Epoch(epoch),
        producer_id=producer,
        is_transactional=producer >= 0,
    )


def marker(base: int, producer: int, *, commits: bool) -> bytes:
    key = b"\x00\x00\x00\x01" if commits else b"\x00\x00\x00\x00"
    return encode_batch(
        [Record(timestamp_ms=0, key=key, value=b"\x00" * 6)],
        base_offset=Offset(base),
        producer_id=producer,
        is_transactional=True,
        is_control=True,
    )


def fetched(
    data: bytes, *, start: int = 0, aborted: tuple[tuple[int, int], ...] = ()
) -> FetchedBatches:
    return FetchedBatches(
        TopicPartition("t", 0),
        Offset(start),
        Offset(99),
        Offset(99),
        Epoch(0),
        memoryview(data),
        tuple((producer, Offset(first)) for producer, first in aborted),
    )


def values(
    fetch: FetchedBatches, isolation: Isolation = UNCOMMITTED, end: int | None = None
) -> list[bytes | None]:
    records = read_records(fetch, None if end is None else Offset(end), isolation)
    return [record.value for record in records]


def test_a_record_says_where_it_is_and_whose_time_it_carries() -> None:
    (record,) = read_records(fetched(batch(5, b"x")), None, UNCOMMITTED)
    assert (record.topic, record.partition, record.offset) == ("t", 0, 5)
    assert (record.timestamp_ms, record.timestamp_type, record.leader_epoch) == (
        105,
        CREATE_TIME,
        3,
    )
    stamped = encode_batch([Record(timestamp_ms=7)], is_log_append_time=True)
    (record,) = read_records(fetched(stamped), None, UNCOMMITTED)
    assert record.timestamp_type == LOG_APPEND_TIME


def test_records_before_the_position_are_left_out() -> None:
    data = batch(0, b"a", b"b", b"c") + batch(3, b"d")
    assert values(fetched(data, start=2)) == [b"c", b"d"]


def test_records_from_the_end_on_are_left_out() -> None:
    data = batch(0, b"a", b"b", b"c") + batch(3, b"d")
    assert values(fetched(data), end=2) == [b"a", b"b"]


def test_transaction_markers_are_never_seen() -> None:
    data = batch(0, b"a", producer=1) + marker(1, 1, commits=True) + batch(2, b"b")
    assert values(fetched(data)) == values(fetched(data), COMMITTED) == [b"a", b"b"]


def test_aborted_records_are_hidden_from_readers_of_committed_transactions_only() -> None:
    data = batch(0, b"a", producer=1) + marker(1, 1, commits=False) + batch(2, b"b", producer=1)
    aborted = ((1, 0),)
    assert values(fetched(data, aborted=aborted), COMMITTED) == [b"b"]
    assert values(fetched(data, aborted=aborted)) == [b"a", b"b"]


def test_an_abort_is_its_own_producers_and_begins_where_the_broker_says() -> None:
    data = (
        batch(0, b"kept", producer=1)
        + marker(1, 1, commits=True)
        + batch(2, b"other", producer=2)
        + batch(3, b"gone", producer=1)
        + marker(4, 2, commits=True)
        + marker(5, 1, commits=False)
        + batch(6, b"plain")
    )
    assert values(fetched(data, aborted=((1, 3),)), COMMITTED) == [b"kept", b"other", b"plain"]


def test_a_batch_that_is_cut_off_waits_for_the_next_fetch() -> None:
    data = batch(0, b"a") + batch(1, b"b")[:-1]
    assert values(fetched(data)) == [b"a"]
    assert next_offset(data) == (1, 3)
    assert next_offset(data[:50]) is None


def test_a_damaged_batch_is_not_handed_out() -> None:
    data = bytearray(batch(0, b"a"))
    data[-1] ^= 1
    with pytest.raises(CorruptBatch):
        values(fetched(bytes(data)))
