"""A broker's own refusals: what follows them is refused like them, and not called out of order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.state_machines.producers import SEQUENCE_END, Partition, batch
from tidemark.partitions.state_machines.producer_entry import BATCHES_KEPT
from tidemark.partitions.state_machines.refused_batches import (
    IN_A_TRANSACTION_MS,
    ON_THE_WAY_MS,
    PRODUCERS_MAX,
    RefusedBatches,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import TRANSACTIONAL_BIT, BatchHeader
from tidemark.protocol.types import Epoch, Offset

FULL = RequestError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
NOT_LED = RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "not here")
NOW_MS = 1_000_000


class Leader(Partition):
    """A partition whose leader remembers what it has refused."""

    def __init__(self, *sequences: int, epoch: int = 0) -> None:
        super().__init__()
        self.refused = RefusedBatches()
        self.now_ms = NOW_MS
        self.led_in = Epoch(1)
        for sequence in sequences:
            self.produce(batch(sequence, epoch=epoch))

    def refuse(self, header: BatchHeader, error: RequestError = FULL) -> None:
        self.refused.note(header, error.code, self.now_ms, self.led_in)

    def cut(self, offset: int) -> None:
        """Another leader's log ends there."""
        batches = self.table.sent_from(Offset(offset), producers_max=PRODUCERS_MAX)
        self.refused.note_cut(batches, self.now_ms, self.now_ms)
        self.table.forget_from(Offset(offset))

    def answer(self, header: BatchHeader) -> ErrorCode:
        """As to a batch that comes when there is room again."""
        try:
            self.refused.check(header, self.table, self.now_ms, self.led_in)
            self.produce(header)
        except RequestError as error:
            self.refuse(header, error)
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
    assert leader.answer(batch(4)) is ErrorCode.KAFKA_STORAGE_ERROR, "1 is missing"
    assert [leader.answer(batch(sequence)) for sequence in (1, 2)] == [ErrorCode.NONE] * 2
    assert leader.answer(batch(5)) is ErrorCode.KAFKA_STORAGE_ERROR, "3 is missing"
    assert [leader.answer(batch(sequence)) for sequence in (3, 4, 5)] == [ErrorCode.NONE] * 3


def test_a_producer_that_has_given_the_refused_batch_up_is_told_that_it_is_missing() -> None:
    leader = Leader(0)
    leader.refuse(batch(1))
    leader.now_ms += ON_THE_WAY_MS
    assert leader.answer(batch(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    leader.now_ms += 1
    assert leader.answer(batch(3)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


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


def test_who_did_not_lead_and_knew_less_of_a_producer_has_noted_the_first_that_it_refused() -> None:
    """A follower may have none of the last batches yet when a producer asks it in vain."""
    led = Leader(0, 1, 2)
    behind = Leader(0)
    for sequence in (3, 4):
        behind.refuse(batch(sequence), NOT_LED)
    led.refused = behind.refused
    assert led.answer(batch(5)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [led.answer(batch(sequence)) for sequence in (3, 4, 5)] == [ErrorCode.NONE] * 3


def test_what_others_have_stored_meanwhile_is_not_missing() -> None:
    led = Leader(0)
    led.refuse(batch(1), NOT_LED)
    led.produce(batch(1))  # as a follower, from the leader
    assert led.answer(batch(2)) is ErrorCode.NONE
    led.refuse(batch(3))
    assert led.answer(batch(4)) is ErrorCode.KAFKA_STORAGE_ERROR, "3 is missing, and not 1"


def test_who_follows_what_was_cut_is_refused_until_that_has_come() -> None:
    leader = Leader()
    for sequence in range(4):
        leader.produce(batch(sequence))
    leader.produce(batch(0, producer_id=8))
    leader.cut(2)
    for sequence in (4, 5):
        assert leader.answer(batch(sequence)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.answer(batch(1, producer_id=8)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [leader.answer(batch(sequence)) for sequence in (2, 3, 4, 5)] == [ErrorCode.NONE] * 4


def test_in_a_transaction_the_refusals_of_another_leadership_do_not_count() -> None:
    """librdkafka would not send it again once the transaction is aborted, but wait for it."""
    leader = Leader()
    for sequence in (0, 1):
        leader.produce(batch(sequence, attributes=TRANSACTIONAL_BIT))
    leader.refuse(batch(2, attributes=TRANSACTIONAL_BIT), NOT_LED)
    leader.led_in = Epoch(2)
    following = batch(3, attributes=TRANSACTIONAL_BIT)
    assert leader.answer(following) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    leader.cut(1)
    assert leader.answer(following) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_in_a_transaction_those_of_the_same_one_do_for_a_while() -> None:
    leader = Leader()
    leader.produce(batch(0, attributes=TRANSACTIONAL_BIT))
    leader.refuse(batch(1, attributes=TRANSACTIONAL_BIT))
    leader.now_ms += IN_A_TRANSACTION_MS
    answers = [leader.answer(batch(n, attributes=TRANSACTIONAL_BIT)) for n in (2, 1, 2)]
    assert answers == [ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NONE, ErrorCode.NONE]
    leader.refuse(batch(3, attributes=TRANSACTIONAL_BIT))
    leader.now_ms += IN_A_TRANSACTION_MS + 1
    following = batch(4, attributes=TRANSACTIONAL_BIT)
    assert leader.answer(following) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_each_of_the_batches_that_were_cut_may_be_the_one_that_is_missing() -> None:
    leader = Leader(0, 1, 2)
    leader.cut(1)
    leader.produce(batch(1))  # as a follower, from another leader, which has not got 2
    assert leader.answer(batch(3)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [leader.answer(batch(sequence)) for sequence in (2, 3)] == [ErrorCode.NONE] * 2


def test_what_is_refused_between_the_loss_of_the_lead_and_the_cut_hides_nothing() -> None:
    leader = Leader(0, 1)
    leader.refuse(batch(2), NOT_LED)
    leader.cut(1)
    for sequence in (2, 3):
        assert leader.answer(batch(sequence)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [leader.answer(batch(sequence)) for sequence in (1, 2, 3)] == [ErrorCode.NONE] * 3


def test_of_more_than_may_be_on_the_way_the_earliest_was_acknowledged() -> None:
    first = SEQUENCE_END - 3
    leader = Leader(first)
    sequences = [(first + n) % SEQUENCE_END for n in range(1, BATCHES_KEPT + 3)]
    for sequence in sequences[:-1]:
        leader.refuse(batch(sequence), NOT_LED)
    leader.produce(batch(sequences[0]))
    leader.refuse(batch(sequences[0]), NOT_LED)  # has come very late
    assert leader.answer(batch(sequences[-1])) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_who_has_begun_a_new_epoch_is_not_missed_in_the_old_one() -> None:
    leader = Leader(0)
    leader.refuse(batch(1), NOT_LED)
    assert leader.answer(batch(0, epoch=1)) is ErrorCode.NONE
    leader.refuse(batch(1, epoch=1), NOT_LED)
    leader.refuse(batch(2), NOT_LED)  # has come late
    assert leader.answer(batch(2, epoch=1)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert [leader.answer(batch(n, epoch=1)) for n in (1, 2)] == [ErrorCode.NONE] * 2


def test_who_comes_again_without_the_one_before_it_is_told_that_it_is_missing() -> None:
    """So is what librdkafka had on the way when it aborted a transaction."""
    leader = Leader(0)
    leader.refuse(batch(1), NOT_LED)
    for sequence in (2, 3):
        assert leader.answer(batch(sequence)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    for sequence in (2, 3):
        assert leader.answer(batch(sequence)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [leader.answer(batch(sequence)) for sequence in (1, 2)] == [ErrorCode.NONE] * 2


def test_of_an_unknown_producer_it_is_taken() -> None:
    """What it was refused may have been stored and forgotten."""
    leader = Leader()
    leader.refuse(batch(1), NOT_LED)
    assert leader.answer(batch(2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert leader.answer(batch(2)) is ErrorCode.NONE


def test_who_comes_again_behind_the_one_before_it_is_refused_as_often_as_that_one() -> None:
    leader = Leader(0)
    for _ in range(3):
        leader.refuse(batch(1))
        assert leader.answer(batch(2)) is ErrorCode.KAFKA_STORAGE_ERROR
    assert [leader.answer(batch(sequence)) for sequence in (1, 2)] == [ErrorCode.NONE] * 2


def test_nothing_is_kept_for_longer_than_it_counts() -> None:
    leader = Leader()
    for producer_id in (7, 8):
        leader.refuse(batch(0, producer_id=producer_id))
        leader.now_ms += ON_THE_WAY_MS
    leader.refused.expire(leader.now_ms)
    assert len(leader.refused) == 1
    leader.now_ms += 1
    leader.refuse(batch(0, producer_id=9))
    assert len(leader.refused) == 1


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


class Replicas:
    """Of one partition. One leads, and another may take its place with a part of what it has."""

    def __init__(self) -> None:
        self.both = Leader(), Leader()
        self.leader, self.committed = 0, 0

    @property
    def values(self) -> list[int]:
        return [header.base_sequence for header, _ in self.both[self.leader].log]

    def move(self, kept: int) -> None:
        """So much of what is not committed is with the other one, which leads now; then the rest is
        cut from the old leader's log."""
        old, new = self.both[self.leader], self.both[1 - self.leader]
        self.committed = min(self.committed + kept, old.end)
        for header, _ in old.log[new.end : self.committed]:
            new.produce(header)
        old.cut(self.committed)
        del old.log[self.committed :]
        old.end = self.committed
        self.leader = 1 - self.leader

    def ask(self, replica: int, header: BatchHeader) -> ErrorCode:
        asked = self.both[replica]
        answer = asked.answer(header) if replica == self.leader else NOT_LED.code
        if answer is not ErrorCode.NONE:
            asked.refuse(header, RequestError(answer, "not now"))
        return answer


@given(
    windows=st.lists(
        st.tuples(st.integers(0, 1), st.lists(st.sampled_from(["", "", 0, 1, 9]), max_size=5)),
        max_size=30,
    )
)
def test_however_the_lead_comes_and_goes_nothing_is_out_of_order_and_all_is_stored_once(
    windows: list[tuple[int, list[str | int]]],
) -> None:
    """Five requests are on the way to one replica, in order, and before each of them the lead may
    go to the other one. What was not committed is sent again once all are answered."""
    replicas = Replicas()
    sequences = list(range(20))
    waiting = list(sequences)
    for asked, moves in [*windows, *[(0, []), (1, [])] * 20]:
        sent = waiting[:5]
        for sequence, move in zip(sent, [*moves, *[""] * 5], strict=False):
            if isinstance(move, int):
                replicas.move(move)
            answer = replicas.ask(asked, batch(sequence))
            assert answer in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        replicas.committed = replicas.both[replicas.leader].end
        stored = replicas.values
        waiting = [sequence for sequence in waiting if sequence not in stored]
        assert stored == sequences[: len(stored)]
    assert not waiting
