"""What a partition's table does about transactions: markers, who may write them, what is open."""

import pytest

from tests.partitions.state_machines.producers import Partition, batch
from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.control import Marker
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Offset, ProducerId

PRODUCER = ProducerId(7)
COMMIT = Marker(is_commit=True, coordinator_epoch=3)
ABORT = COMMIT._replace(is_commit=False)


def data(sequence: int, *, epoch: int = 0) -> BatchHeader:
    """A batch in a transaction."""
    return batch(sequence, epoch=epoch, attributes=0x10)


def mark(partition: Partition, marker: Marker, *, epoch: int = 0, bumps: bool = False) -> bool:
    """The end of the producer's transaction; whether it was written."""
    if not partition.table.check_marker(PRODUCER, epoch, marker, raises_epoch=bumps):
        return False
    header = batch(-1, epoch=epoch, attributes=0x30)
    partition.table.append_marker(header, Offset(partition.end), marker)
    partition.end += 1
    return True


def refusal(
    partition: Partition, marker: Marker, *, epoch: int = 0, bumps: bool = False
) -> ErrorCode:
    with pytest.raises(RequestError) as caught:
        partition.table.check_marker(PRODUCER, epoch, marker, raises_epoch=bumps)
    return caught.value.code


def is_open(partition: Partition) -> bool:
    return PRODUCER in partition.table.transactions.opened


def test_a_transaction_begins_with_its_first_batch_and_ends_with_its_marker() -> None:
    partition = Partition()
    partition.produce(data(0))
    partition.produce(data(1))
    assert partition.table.transactions.opened[PRODUCER].first_offset == 0
    assert mark(partition, COMMIT)
    assert not is_open(partition)


def test_a_marker_raises_the_epoch_and_takes_no_sequence() -> None:
    partition = Partition()
    partition.produce(data(0))
    mark(partition, COMMIT, epoch=1, bumps=True)
    assert partition.table.newest_epoch(PRODUCER) == 1
    assert partition.refusal(data(1)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert partition.refusal(data(1, epoch=1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(data(0, epoch=1)) == 2


def test_a_marker_of_the_same_epoch_leaves_the_sequences_as_they_are() -> None:
    partition = Partition()
    partition.produce(data(0))
    mark(partition, COMMIT)
    assert partition.refusal(data(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.produce(data(1)) == 2


def test_a_marker_that_comes_again_is_not_written_again() -> None:
    partition = Partition()
    partition.produce(data(0))
    assert mark(partition, COMMIT)
    assert not mark(partition, COMMIT)


def test_a_marker_is_written_where_the_producer_is_unknown_for_it_fences() -> None:
    partition = Partition()
    assert mark(partition, ABORT, epoch=4)
    assert partition.refusal(data(0, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_marker_of_a_former_coordinator_is_refused() -> None:
    partition = Partition()
    partition.produce(data(0))
    mark(partition, COMMIT)
    partition.produce(data(1))
    former = ABORT._replace(coordinator_epoch=2)
    assert refusal(partition, former) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert is_open(partition)


def test_another_coordinators_marker_is_written_though_it_changes_nothing_else() -> None:
    """Else a late one of the former coordinator would end the next transaction."""
    partition = Partition()
    partition.produce(data(0))
    mark(partition, COMMIT)
    assert mark(partition, COMMIT._replace(coordinator_epoch=4))
    partition.produce(data(1))
    assert refusal(partition, COMMIT) is ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_late_marker_ends_no_later_transaction_of_a_producer_that_bumps() -> None:
    partition = Partition()
    partition.produce(data(0))
    mark(partition, COMMIT, epoch=1, bumps=True)
    partition.produce(data(0, epoch=1))
    late = refusal(partition, COMMIT, epoch=1, bumps=True)
    assert late is ErrorCode.INVALID_PRODUCER_EPOCH
    assert mark(partition, ABORT, epoch=2, bumps=True)


def test_a_marker_of_a_lower_epoch_is_refused() -> None:
    partition = Partition()
    partition.produce(data(0, epoch=2))
    assert refusal(partition, ABORT, epoch=1) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_coordinator_writes_into_a_transaction_only_in_its_newest_epoch() -> None:
    partition = Partition()
    partition.produce(data(0, epoch=2))
    partition.table.check_epoch(PRODUCER, 2)
    with pytest.raises(RequestError) as caught:
        partition.table.check_epoch(PRODUCER, 1)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_batch_in_no_transaction_does_not_go_into_the_one_that_is_open() -> None:
    partition = Partition()
    partition.produce(data(0))
    assert partition.refusal(batch(1)) is ErrorCode.INVALID_TXN_STATE
    mark(partition, COMMIT)
    partition.produce(batch(1))


def test_who_has_a_transaction_open_does_not_expire() -> None:
    partition = Partition()
    partition.produce(data(0))
    assert partition.table.expire(10**9, idle_ms=1) == 0
    mark(partition, COMMIT)
    assert partition.table.expire(10**9, idle_ms=1) == 1


def test_a_transaction_stays_open_when_its_producer_gives_way() -> None:
    table = ProducerTable(producers_max=1)
    table.append(data(0), Offset(0))
    table.append(batch(0, producer_id=8), Offset(1))
    assert table.newest_epoch(PRODUCER) is None
    assert table.transactions.last_stable_offset(Offset(2)) == 0
    assert table


def test_a_snapshot_has_what_is_open_and_who_ended_the_last_one() -> None:
    partition = Partition()
    partition.produce(data(0))
    mark(partition, ABORT)
    partition.produce(data(1))
    table = ProducerTable.decode(partition.table.encode())
    assert table.encode() == partition.table.encode()
    with pytest.raises(RequestError, match="TRANSACTION_COORDINATOR_FENCED"):
        table.check_marker(PRODUCER, 0, ABORT._replace(coordinator_epoch=2), raises_epoch=False)
    assert [over.first_offset for over in table.transactions.aborted(Offset(0), Offset(9))] == [0]
