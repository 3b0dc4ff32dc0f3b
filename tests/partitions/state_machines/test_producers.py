"""Trap P8 and the producer bugs of others: retries, gaps, epochs, the wrap, snapshots."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.partitions.state_machines.producers import SEQUENCE_END, Partition, batch
from tidemark.partitions.state_machines.producers import FRESH, Duplicate, ProducerTable
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.records.header import TRANSACTIONAL_BIT, BatchHeader
from tidemark.protocol.types import Offset, ProducerId


def test_trap_p8_each_of_the_last_five_batches_is_a_duplicate_with_its_original_offset() -> None:
    partition = Partition()
    offsets = {at: partition.produce(batch(at, records=2)) for at in range(0, 10, 2)}
    for at, offset in offsets.items():
        answer = partition.table.check(batch(at, records=2))
        assert answer == Duplicate(
            base_offset=Offset(offset), next_offset=Offset(offset + 2), timestamp_ms=1_000
        )
    assert partition.end == 10


def test_trap_p8_a_duplicate_older_than_the_window_is_named_so() -> None:
    partition = Partition()
    for sequence in range(6):
        partition.produce(batch(sequence))
    assert partition.refusal(batch(0)) is ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    assert isinstance(partition.table.check(batch(1)), Duplicate)


def test_trap_p8_a_duplicate_must_match_both_ends() -> None:
    partition = Partition()
    partition.produce(batch(0, records=5))
    assert partition.refusal(batch(0, records=4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.refusal(batch(3, records=5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_trap_p8_a_gap_is_out_of_order() -> None:
    partition = Partition()
    partition.produce(batch(0))
    assert partition.refusal(batch(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(batch(1)) == 1


def test_trap_p8_a_lower_epoch_is_refused() -> None:
    partition = Partition()
    partition.produce(batch(0, epoch=3))
    assert partition.refusal(batch(1, epoch=2)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_trap_p8_a_new_epoch_starts_at_sequence_zero() -> None:
    partition = Partition()
    partition.produce(batch(0))
    assert partition.refusal(batch(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(batch(0, epoch=1)) == 1
    assert partition.produce(batch(1, epoch=1)) == 2


def test_a_batch_of_a_former_epoch_is_no_duplicate_in_the_new_one() -> None:
    partition = Partition()
    partition.produce(batch(0))
    assert partition.table.check(batch(0, epoch=1)) is FRESH


def test_trap_p8_an_unknown_producer_may_start_at_any_sequence() -> None:
    partition = Partition()
    assert partition.produce(batch(41, epoch=9)) == 0
    assert partition.produce(batch(42, epoch=9)) == 1


def test_what_was_never_seen_is_a_gap_and_not_a_duplicate() -> None:
    """Calling it a duplicate would tell the producer that lost records are safe (KAFKA-14359)."""
    partition = Partition()
    partition.produce(batch(100))
    assert partition.refusal(batch(99)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_trap_p8_the_sequence_goes_on_at_zero_after_two_to_the_31_minus_1() -> None:
    partition = Partition()
    partition.produce(batch(SEQUENCE_END - 3, records=2))
    assert partition.produce(batch(SEQUENCE_END - 1, records=3)) == 2
    assert partition.produce(batch(2)) == 5
    assert partition.produce(batch(SEQUENCE_END - 1, records=3)) == 2
    assert partition.refusal(batch(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_after_more_records_than_there_are_sequences_a_gap_is_still_a_gap() -> None:
    table = ProducerTable()
    step = 2**29
    for round_number in range(8):
        table.append(batch(round_number * step % SEQUENCE_END, records=step), Offset(0))
    with pytest.raises(RequestError) as caught:
        table.check(batch(5))
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_with_a_producer_and_no_sequence_is_invalid() -> None:
    assert Partition().refusal(batch(-1)) is ErrorCode.INVALID_RECORD


def test_batches_without_a_producer_leave_no_trace() -> None:
    table = ProducerTable()
    table.append(batch(-1, producer_id=-1), Offset(0))
    assert len(table) == 0


def test_a_batch_that_was_checked_and_not_appended_is_still_fresh() -> None:
    table = ProducerTable()
    assert table.check(batch(0)) is FRESH
    assert table.check(batch(0)) is FRESH


def test_an_idle_producer_expires_by_when_it_was_heard_and_not_by_its_records() -> None:
    table = ProducerTable()
    table.append(batch(0, producer_id=1, timestamp_ms=5), Offset(0), heard_ms=10_000)
    table.append(batch(0, producer_id=2, timestamp_ms=5), Offset(1))
    assert table.expire(10_500, idle_ms=1_000) == 1
    assert table.newest_epoch(ProducerId(1)) == 0
    assert table.newest_epoch(ProducerId(2)) is None


def test_the_least_recently_heard_producer_gives_way() -> None:
    table = ProducerTable(producers_max=2)
    for producer_id, sequence in ((1, 0), (2, 0), (1, 1), (3, 0)):
        table.append(batch(sequence, producer_id=producer_id), Offset(0))
    assert [table.newest_epoch(ProducerId(n)) for n in (1, 2, 3)] == [0, None, 0]


HISTORIES = st.lists(
    st.tuples(st.integers(1, 3), st.integers(0, 1), st.integers(-2, 2), st.integers(1, 3)),
    max_size=60,
)


def produce_all(partition: Partition, history: list[tuple[int, int, int, int]]) -> None:
    """Batches near what comes next, so that all of fresh, duplicate, gap and new epoch happen."""
    following: dict[tuple[int, int], int] = {}
    for producer_id, epoch, skew, records in history:
        at = max(0, following.get((producer_id, epoch), 0) + skew)
        header = batch(at, records=records, producer_id=producer_id, epoch=epoch)
        try:
            partition.produce(header)
        except RequestError:
            continue
        following[producer_id, epoch] = at + records


@given(history=HISTORIES)
def test_no_record_of_an_epoch_is_appended_twice(history: list[tuple[int, int, int, int]]) -> None:
    partition = Partition()
    produce_all(partition, history)
    seen = [
        (header.producer_id, header.producer_epoch, header.base_sequence + index)
        for header, _ in partition.log
        for index in range(header.record_count)
    ]
    assert len(seen) == len(set(seen))


@given(history=HISTORIES, ahead=st.lists(st.tuples(st.integers(1, 3), st.integers(-1, 1))))
def test_a_run_of_what_comes_next_is_what_its_batches_are_one_by_one(
    history: list[tuple[int, int, int, int]], ahead: list[tuple[int, int]]
) -> None:
    together, alone = Partition(), Partition()
    produce_all(together, history)
    produce_all(alone, history)
    last = together.log[-1][0] if together.log else batch(0)
    headers, at = list[BatchHeader](), last.base_sequence + last.record_count
    for records, skew in ahead or [(1, 0)]:
        headers.append(
            batch(
                at + skew, records=records, producer_id=last.producer_id, epoch=last.producer_epoch
            )
        )
        at += skew + records
    count = together.table.count_fresh(headers)
    for header in headers[:count]:
        assert alone.table.check(header) is FRESH
        alone.produce(header)
    if count:
        together.table.append_run(headers[:count], Offset(together.end), heard_ms=1_000)
    assert together.table.encode() == alone.table.encode()


def test_a_run_is_of_one_producer_and_in_no_transaction() -> None:
    table = ProducerTable()
    for producer_id in (7, 8):
        table.append(batch(0, producer_id=producer_id), Offset(0))
    mine, others = batch(1), batch(1, producer_id=8)
    assert table.count_fresh([mine, batch(2), others]) == 2
    assert table.count_fresh([mine, batch(2, epoch=1)]) == 1
    assert table.count_fresh([mine, batch(2, producer_id=-1)]) == 1
    assert table.count_fresh([batch(-1, producer_id=-1), batch(-1, producer_id=-1), mine]) == 2
    assert table.count_fresh([batch(1, attributes=TRANSACTIONAL_BIT)]) == 0
    assert not table.is_awaiting(batch(1, attributes=TRANSACTIONAL_BIT))
    assert table.count_fresh([mine, batch(2, attributes=TRANSACTIONAL_BIT)]) == 1
    table.append(batch(1, attributes=TRANSACTIONAL_BIT), Offset(2))
    assert table.count_fresh([batch(2)]) == 0, "its producer has a transaction open"


def test_who_was_forgotten_is_awaited_no_more() -> None:
    table = ProducerTable()
    table.append(batch(0), Offset(0), heard_ms=0)
    assert table.is_awaiting(batch(1))
    table.forget_from(Offset(0))
    assert not table.is_awaiting(batch(1))
    table.append(batch(0), Offset(0), heard_ms=0)
    take_in(table, batch(1), Offset(1))
    table.expire(1_000, idle_ms=500)
    assert not table.is_awaiting(batch(2))


def test_after_a_cut_what_was_cut_comes_next() -> None:
    table = ProducerTable()
    table.append(batch(0), Offset(0), heard_ms=0)
    for sequence in (1, 2):
        take_in(table, batch(sequence), Offset(sequence))
    table.forget_from(Offset(2))
    assert table.is_awaiting(batch(2))
    assert not table.is_awaiting(batch(3))


@given(history=HISTORIES)
def test_what_is_awaited_is_what_is_known_to_come_next(
    history: list[tuple[int, int, int, int]],
) -> None:
    partition, table = Partition(), ProducerTable()
    produce_all(partition, history)
    for header, base_offset in partition.log:
        take_in(table, header, base_offset)
        awaited = table.awaited
        if awaited is not None:
            producer_id, epoch, sequence = awaited
            following = batch(sequence, producer_id=producer_id, epoch=epoch)
            assert table.check(following) is FRESH
            assert table.is_awaiting(following)


def test_nothing_is_awaited_of_who_has_a_transaction_open() -> None:
    table = ProducerTable()
    table.append(batch(0), Offset(0), heard_ms=0)
    take_in(table, batch(1), Offset(1))
    assert (table.awaited or ()) == (7, 0, 2)
    table.append(batch(2, attributes=TRANSACTIONAL_BIT), Offset(2), heard_ms=0)
    assert table.awaited is None
    assert not table.is_awaiting(batch(3))


def take_in(table: ProducerTable, header: BatchHeader, base_offset: Offset) -> None:
    """By the short way, where that is open."""
    if not table.is_awaiting(header):
        table.append(header, base_offset, heard_ms=base_offset)
        return
    assert table.check(header) is FRESH
    table.append_awaited(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.last_offset_delta,
        base_offset,
        header.max_timestamp,
        base_offset,
    )


@given(history=HISTORIES)
def test_taking_in_what_was_awaited_is_appending_it(
    history: list[tuple[int, int, int, int]],
) -> None:
    partition, other = Partition(), ProducerTable()
    produce_all(partition, history)
    for header, base_offset in partition.log:
        take_in(other, header, base_offset)
    replayed = ProducerTable()
    for header, base_offset in partition.log:
        replayed.append(header, base_offset, heard_ms=base_offset)
    assert other.encode() == replayed.encode()


@given(history=HISTORIES)
def test_the_table_is_what_replaying_the_log_gives(
    history: list[tuple[int, int, int, int]],
) -> None:
    partition, replayed = Partition(), ProducerTable()
    produce_all(partition, history)
    for header, base_offset in partition.log:
        replayed.append(header, base_offset)
    assert replayed.encode() == partition.table.encode()


@given(history=HISTORIES)
def test_a_snapshot_gives_the_same_table_back(history: list[tuple[int, int, int, int]]) -> None:
    partition = Partition()
    produce_all(partition, history)
    data = partition.table.encode()
    assert ProducerTable.decode(data).encode() == data


@given(cut=st.integers(0, 200), tail=st.binary(max_size=3))
def test_a_snapshot_that_is_cut_or_changed_is_refused(cut: int, tail: bytes) -> None:
    partition = Partition()
    for sequence in range(4):
        partition.produce(batch(sequence))
    broken = partition.table.encode()[:cut] + tail
    assume(broken != partition.table.encode())
    with pytest.raises(StorageError):
        ProducerTable.decode(broken)
