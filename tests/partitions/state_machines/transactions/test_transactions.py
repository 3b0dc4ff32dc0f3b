"""Transactions as producers see them: what is decided, and what is answered."""

import pytest

from tests.partitions.state_machines.transactions.driver import (
    CREDIT,
    DEBIT,
    FIRST_ID,
    TIMEOUT_MS,
    Coordinator,
    producer,
)
from tidemark.partitions.state_machines.transactions.requests import ProducerAnswer
from tidemark.partitions.state_machines.transactions.transaction import (
    EPOCH_MAX,
    Transaction,
    TransactionState,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import ProducerId

OLD_ID = ProducerId(7)


def at_the_last_epoch() -> tuple[Coordinator, ProducerAnswer]:
    """A session in the last epoch that may be produced with."""
    coordinator = Coordinator()
    coordinator.read_back(
        Transaction(producer_id=OLD_ID, epoch=EPOCH_MAX - 1, timeout_ms=TIMEOUT_MS)
    )
    return coordinator, producer(OLD_ID, EPOCH_MAX - 1)


class TestASession:
    def test_a_new_id_gets_a_producer_id_of_its_own(self) -> None:
        assert Coordinator().init() == producer(FIRST_ID, 0)

    def test_the_next_session_gets_the_next_epoch_and_fences_the_one_before(self) -> None:
        coordinator = Coordinator()
        zombie = coordinator.init()
        assert coordinator.init() == producer(FIRST_ID, 1)
        assert coordinator.add(zombie, DEBIT) == ErrorCode.PRODUCER_FENCED
        assert coordinator.end(zombie, commit=True).error == ErrorCode.PRODUCER_FENCED

    def test_what_a_session_before_left_open_is_aborted_first(self) -> None:
        coordinator = Coordinator()
        first = coordinator.init()
        coordinator.add(first, DEBIT)
        assert coordinator.init().error == ErrorCode.CONCURRENT_TRANSACTIONS
        (markers,) = coordinator.markers
        assert not markers.is_commit
        assert markers.epoch == first.epoch + 1
        assert coordinator.init() == producer(FIRST_ID, 2)

    def test_a_decision_before_is_carried_out_first(self) -> None:
        coordinator = Coordinator(holds_markers=True)
        first = coordinator.init()
        coordinator.add(first, DEBIT)
        coordinator.end(first, commit=True)
        assert coordinator.init().error == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.mark(DEBIT)
        assert coordinator.init().error == ErrorCode.NONE
        assert [markers.is_commit for markers in coordinator.markers] == [True]

    def test_a_producer_goes_on_with_what_it_was_given(self) -> None:
        coordinator = Coordinator()
        coordinator.init()
        assert coordinator.init((FIRST_ID, 0)) == producer(FIRST_ID, 1)

    def test_the_answer_that_was_lost_is_given_again(self) -> None:
        coordinator = Coordinator()
        coordinator.init()
        coordinator.init((FIRST_ID, 0))
        assert coordinator.init((FIRST_ID, 0)) == producer(FIRST_ID, 1)

    def test_a_zombie_does_not_go_on(self) -> None:
        coordinator = Coordinator()
        coordinator.init()
        coordinator.init()
        assert coordinator.init((FIRST_ID, 0)).error == ErrorCode.PRODUCER_FENCED

    @pytest.mark.parametrize("timeout_ms", [0, -1, 15 * 60_000 + 1])
    def test_a_time_out_out_of_range_is_refused(self, timeout_ms: int) -> None:
        answer = Coordinator().init(timeout_ms=timeout_ms)
        assert answer == ProducerAnswer(error=ErrorCode.INVALID_TRANSACTION_TIMEOUT)


@pytest.mark.parametrize("bumps", [False, True])
class TestATransaction:
    @pytest.mark.parametrize("commit", [True, False])
    def test_every_partition_in_it_gets_the_decision(self, bumps: bool, commit: bool) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        assert coordinator.add(session, DEBIT, bumps=bumps) == ErrorCode.NONE
        assert coordinator.add(session, CREDIT, bumps=bumps) == ErrorCode.NONE
        answer = coordinator.end(session, commit=commit, bumps=bumps)
        assert answer == producer(FIRST_ID, int(bumps))
        (markers,) = coordinator.markers
        assert markers.partitions == {DEBIT, CREDIT}
        assert (markers.is_commit, markers.epoch) == (commit, int(bumps))

    def test_the_decision_is_answered_when_it_is_durable_and_not_before(self, bumps: bool) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT, bumps=bumps)
        coordinator.holds_writes = True
        token = coordinator.start_end(session, commit=True, bumps=bumps)
        assert token not in coordinator.answers
        assert not coordinator.markers
        coordinator.store()
        assert coordinator.answers[token].error == ErrorCode.NONE
        assert coordinator.markers

    def test_an_end_whose_answer_was_lost_is_answered_again(self, bumps: bool) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT, bumps=bumps)
        first = coordinator.end(session, commit=True, bumps=bumps)
        again = coordinator.end(session, commit=True, bumps=bumps)
        assert again.error == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.mark(DEBIT)
        assert coordinator.end(session, commit=True, bumps=bumps) == first
        assert len(coordinator.markers) == 1

    def test_a_decision_cannot_be_taken_back(self, bumps: bool) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT, bumps=bumps)
        coordinator.end(session, commit=True, bumps=bumps)
        answer = coordinator.end(session, commit=False, bumps=bumps)
        assert answer.error == ErrorCode.INVALID_TXN_STATE
        assert coordinator.value.state is TransactionState.COMPLETE_COMMIT

    def test_there_is_nothing_to_commit_where_nothing_was_begun(self, bumps: bool) -> None:
        coordinator = Coordinator()
        answer = coordinator.end(coordinator.init(), commit=True, bumps=bumps)
        assert answer.error == ErrorCode.INVALID_TXN_STATE


class TestEpochs:
    def test_a_late_request_of_a_transaction_before_is_fenced_where_ends_bump(self) -> None:
        coordinator = Coordinator()
        first = coordinator.init()
        coordinator.add(first, DEBIT, bumps=True)
        second = coordinator.end(first, commit=True, bumps=True)
        coordinator.add(second, DEBIT, bumps=True)
        assert coordinator.add(first, CREDIT, bumps=True) == ErrorCode.PRODUCER_FENCED
        assert coordinator.end(first, commit=False, bumps=True).error == ErrorCode.PRODUCER_FENCED
        assert coordinator.value.partitions == {DEBIT}

    def test_an_abort_of_nothing_raises_the_epoch_for_what_may_still_be_late(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        answer = coordinator.end(session, commit=False, bumps=True)
        assert answer == producer(FIRST_ID, 1)
        assert coordinator.verify(session, DEBIT).error == ErrorCode.PRODUCER_FENCED

    def test_an_abort_of_nothing_whose_answer_was_lost_is_answered_again(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        answer = coordinator.end(session, commit=False, bumps=True)
        assert coordinator.end(session, commit=False, bumps=True) == answer

    @pytest.mark.parametrize("bumps", [False, True])
    def test_its_end_says_whether_a_transaction_raises_the_epoch(self, bumps: bool) -> None:
        """Not who has added partitions: a client may know newer versions of one API only."""
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT, bumps=not bumps)
        ended = coordinator.end(session, commit=True, bumps=bumps)
        assert coordinator.markers[-1].bumps_epoch is bumps
        assert coordinator.markers[-1].epoch == session.epoch + bumps
        assert coordinator.end(session, commit=True, bumps=bumps) == ended

    @pytest.mark.parametrize("commit", [False, True])
    def test_an_abort_of_nothing_waits_for_the_transaction_before(self, commit: bool) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT, bumps=True)
        following = coordinator.end(session, commit=commit, bumps=True)
        # Java's producer, whose records were dropped before any was sent.
        answer = coordinator.end(following, commit=False, bumps=True)
        assert answer.error == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.mark(DEBIT)
        assert coordinator.end(following, commit=False, bumps=True) == producer(FIRST_ID, 2)

    def test_who_is_fenced_by_an_end_does_not_keep_it_from_being_over(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.holds_writes = True
        coordinator.start_end(session, commit=False, bumps=True)
        token = coordinator.start_add(session, DEBIT, bumps=True)
        coordinator.store()
        coordinator.store()
        assert coordinator.answers[token].error == ErrorCode.PRODUCER_FENCED
        assert coordinator.value.state is TransactionState.COMPLETE_ABORT

    def test_where_they_run_out_a_new_producer_id_follows(self) -> None:
        coordinator, session = at_the_last_epoch()
        coordinator.add(session, DEBIT, bumps=True)
        following = coordinator.end(session, commit=True, bumps=True)
        assert following.epoch == 0
        assert following.producer_id == FIRST_ID
        assert coordinator.markers[-1].producer_id == OLD_ID
        assert coordinator.markers[-1].epoch == EPOCH_MAX
        assert coordinator.end(session, commit=True, bumps=True) == following
        assert coordinator.add(following, DEBIT, bumps=True) == ErrorCode.NONE

    def test_the_last_one_fences_and_a_session_after_it_has_a_new_producer_id(self) -> None:
        coordinator, session = at_the_last_epoch()
        coordinator.add(session, DEBIT)
        assert coordinator.abort() == ErrorCode.NONE
        assert coordinator.markers[-1].epoch == EPOCH_MAX
        assert coordinator.init() == producer(FIRST_ID, 0)

    def test_who_aborts_what_the_last_one_has_ended_goes_on_with_a_new_producer_id(self) -> None:
        coordinator, session = at_the_last_epoch()
        coordinator.add(session, DEBIT, bumps=True)
        coordinator.pass_time(TIMEOUT_MS)
        assert coordinator.value.epoch == EPOCH_MAX
        following = coordinator.end(session, commit=False, bumps=True)
        assert following == producer(following.producer_id, 0)
        assert following.producer_id != OLD_ID
        assert coordinator.end(session, commit=False, bumps=True) == following
        assert coordinator.add(following, DEBIT, bumps=True) == ErrorCode.NONE

    def test_nobody_produces_in_the_last_one(self) -> None:
        coordinator, session = at_the_last_epoch()
        coordinator.add(session, DEBIT)
        assert coordinator.abort() == ErrorCode.NONE
        forged = producer(OLD_ID, EPOCH_MAX)
        assert coordinator.add(forged, DEBIT) == ErrorCode.PRODUCER_FENCED
        assert coordinator.verify(forged, DEBIT).error == ErrorCode.PRODUCER_FENCED
        answer = coordinator.end(forged, commit=False, bumps=True)
        assert answer.error == ErrorCode.PRODUCER_FENCED


class TestVerifying:
    def test_partitions_in_the_open_transaction_are_there_and_others_are_missing(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        assert coordinator.verify(session, DEBIT).missing == {DEBIT}
        coordinator.add(session, DEBIT)
        assert coordinator.verify(session, DEBIT, CREDIT).missing == {CREDIT}

    def test_a_late_batch_is_in_no_transaction_once_its_own_is_over(self) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.end(session, commit=True)
        assert coordinator.verify(session, DEBIT).error == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.mark(DEBIT)
        assert coordinator.verify(session, DEBIT).missing == {DEBIT}


class TestAnOperator:
    def test_ends_one_that_hangs(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        assert coordinator.abort() == ErrorCode.NONE
        assert coordinator.value.state is TransactionState.COMPLETE_ABORT
        assert coordinator.end(session, commit=True).error == ErrorCode.PRODUCER_FENCED

    def test_is_told_that_there_is_none(self) -> None:
        coordinator = Coordinator()
        assert coordinator.abort() == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        coordinator.init()
        assert coordinator.abort() == ErrorCode.INVALID_TXN_STATE
