"""A leader's own refusals: what follows them is refused like them, and not called out of order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.state_machines.producers import SEQUENCE_END, Partition, batch
from tidemark.partitions.state_machines.refused_batches import (
    ON_THE_WAY_MS,
    PRODUCERS_MAX,
    RefusedBatches,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import BatchHeader

FULL = RequestError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
NOW_MS = 1_000_000


class Leader(Partition):
    """A partition whose leader remembers what it has refused."""

    def __init__(self, *sequences: int, epoch: int = 0) -> None:
        super().__init__()
        self.refused = RefusedBatches()
        self.now_ms = NOW_MS
        for sequence in sequences:
            self.produce(batch(sequence, epoch=epoch))

    def refuse(self, header: BatchHeader, error: RequestError = FULL) -> None:
        self.refused.note(header, error, self.table, self.now_ms)

    def answer(self, header: BatchHeader) -> ErrorCode:
        """As to a batch that comes when there is room again."""
        try:
            self.refused.check(header, self.table, self.now_ms)
            self.produce(header)
        except RequestError as error:
            return error.code
        return ErrorCode.NONE


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ],
)
def test_who_follows_a_refused_batch_is_refused_alike_until_that_one_has_come(
    code: ErrorCode,
) -> None:
    leader = Leader(0)
    leader.refuse(batch(1), RequestError(code, "not now"))
    for sequence in (2, 3, 4):
        assert leader.answer(batch(sequence)) is code
    for sequence in (1, 2, 3, 4):
        assert leader.answer(batch(sequence)) is ErrorCode.NONE
    assert leader.end == 5


def test_the_first_batches_of_an_unknown_producer_keep_their_order_too() -> None:
    leader = Leader()
    leader.refuse(batch(0))
    assert leader.answer(batch(1)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert [leader.answer(batch(sequence)) for sequence in (0, 1)] == [ErrorCode.NONE] * 2


def test_so_do_the_first_batches_of_an_epoch() -> None:
    leader = Leader(0, 1)
    leader.refuse(batch(0, epoch=1))
    assert leader.answer(batch(1, epoch=1)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert leader.answer(batch(2)) is ErrorCode.NONE, "the epoch before it is not concerned"
    assert leader.answer(batch(0, epoch=1)) is ErrorCode.NONE


def test_the_first_of_several_that_were_refused_is_the_one_that_is_missing() -> None:
    leader = Leader(0)
    for sequence in (1, 2, 3):
        leader.refuse(batch(sequence))
    assert leader.answer(batch(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert leader.answer(batch(1)) is ErrorCode.NONE
    assert leader.answer(batch(2)) is ErrorCode.NONE
    assert leader.answer(batch(4)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "3 was not kept"


def test_a_producer_that_has_given_the_refused_batch_up_is_told_that_it_is_missing() -> None:
    leader = Leader(0)
    leader.refuse(batch(1))
    leader.now_ms += ON_THE_WAY_MS
    assert leader.answer(batch(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    leader.now_ms += 1
    assert leader.answer(batch(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_clock_that_is_put_back_has_nobody_refused_until_it_is_there_again() -> None:
    leader = Leader(0)
    leader.refuse(batch(1))
    leader.now_ms -= 3_600_000
    assert leader.answer(batch(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_the_producer_did_wrong_is_answered_as_ever() -> None:
    leader = Leader(0)
    leader.refuse(batch(1), RequestError(ErrorCode.MESSAGE_TOO_LARGE, "too large"))
    assert leader.answer(batch(2)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    leader.refuse(batch(7))
    assert leader.answer(batch(8)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "7 has a gap itself"
    leader.refuse(batch(1))
    assert leader.answer(batch(0)) is ErrorCode.NONE, "a duplicate of what is in the log"
    assert leader.answer(batch(5, producer_id=8)) is ErrorCode.NONE, "another producer"


def test_no_more_producers_are_remembered_than_the_limit() -> None:
    leader = Leader()
    for producer_id in range(PRODUCERS_MAX + 1):
        leader.refuse(batch(0, producer_id=producer_id))
    assert leader.answer(batch(1, producer_id=0)) is ErrorCode.NONE
    assert leader.answer(batch(1, producer_id=1)) is ErrorCode.KAFKA_STORAGE_ERROR


@given(
    first=st.integers(0, SEQUENCE_END - 1),
    room=st.lists(st.booleans(), min_size=40, max_size=40),
)
def test_however_the_disk_fills_and_empties_nothing_is_out_of_order_and_all_is_stored_once(
    first: int, room: list[bool]
) -> None:
    """Five requests on the way, whose refused ones are all sent again, in order."""
    leader = Leader(first)
    header = [batch((first + n) % SEQUENCE_END) for n in range(1, 12)]
    waiting, disk = list(range(len(header))), iter([*room, *[True] * 100])
    while waiting:
        again = list[int]()
        for n in waiting[:5]:
            if next(disk):
                answer = leader.answer(header[n])
                assert answer in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
            else:
                answer = FULL.code
            if answer is not ErrorCode.NONE:
                leader.refuse(header[n], RequestError(answer, "no room"))
                again.append(n)
        waiting = again + waiting[5:]
    assert [entry.base_sequence for entry, _ in leader.log[1:]] == [
        each.base_sequence for each in header
    ]
