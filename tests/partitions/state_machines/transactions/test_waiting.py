"""Who waits for a transaction's end or for another change, and until when."""

import pytest

from tests.partitions.state_machines.transactions.driver import (
    CREDIT,
    DEBIT,
    Coordinator,
)
from tidemark.partitions.state_machines.transactions.requests import ProducerAnswer
from tidemark.partitions.state_machines.transactions.shard import PATIENCE_MS, RETRY_MS
from tidemark.partitions.state_machines.transactions.transaction import (
    TransactionState,
)
from tidemark.protocol.errors import ErrorCode


def committing(*, bumps: bool) -> tuple[Coordinator, ProducerAnswer]:
    """A transaction that is decided, whose partition, DEBIT, has no marker yet; and the producer
    as it goes on."""
    coordinator = Coordinator(holds_markers=True)
    session = coordinator.init()
    coordinator.add(session, DEBIT, bumps=bumps)
    return coordinator, coordinator.end(session, commit=True, bumps=bumps)


@pytest.mark.parametrize("bumps", [False, True])
class TestWhoWaits:
    def test_the_next_one_waits_until_all_have_their_marker(self, bumps: bool) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT, CREDIT, bumps=bumps)
        session = coordinator.end(session, commit=True, bumps=bumps)
        coordinator.mark(DEBIT)
        token = coordinator.start_add(session, DEBIT, bumps=bumps)
        assert token not in coordinator.answers
        coordinator.holds_writes = True
        coordinator.mark(CREDIT)
        assert token not in coordinator.answers, "the log does not have the beginning yet"
        coordinator.store()
        assert coordinator.answers[token].error == ErrorCode.NONE
        assert coordinator.value.state is TransactionState.ONGOING
        assert coordinator.value.partitions == {DEBIT}
        assert not coordinator.writes, "one record says that one is over and that one begins"

    def test_who_comes_while_the_end_is_written_waits_for_that(self, bumps: bool) -> None:
        coordinator, session = committing(bumps=bumps)
        coordinator.holds_writes = True
        coordinator.mark(DEBIT)
        token = coordinator.start_add(session, CREDIT, bumps=bumps)
        coordinator.store()
        assert token not in coordinator.answers, "the log has the end, and not the beginning yet"
        coordinator.store()
        assert coordinator.answers[token].error == ErrorCode.NONE
        assert coordinator.value.partitions == {CREDIT}

    def test_one_is_over_although_the_next_cannot_begin(self, bumps: bool) -> None:
        coordinator, session = committing(bumps=bumps)
        coordinator.holds_writes = True
        first = coordinator.start_add(session, DEBIT, bumps=bumps)
        second = coordinator.start_add(session, CREDIT, bumps=bumps)
        coordinator.mark(DEBIT)
        coordinator.refuse_write()
        assert coordinator.answers[first].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert coordinator.value.state.is_prepared
        coordinator.pass_time(PATIENCE_MS)
        assert coordinator.answers[second].error == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.pass_time(RETRY_MS)
        coordinator.store()
        assert coordinator.value.state is TransactionState.COMPLETE_COMMIT

    def test_it_does_not_wait_for_long(self, bumps: bool) -> None:
        coordinator, session = committing(bumps=bumps)
        first = coordinator.start_add(session, DEBIT, bumps=bumps)
        coordinator.pass_time(PATIENCE_MS - 1)
        second = coordinator.start_add(session, CREDIT, bumps=bumps)
        assert first not in coordinator.answers
        coordinator.pass_time(1)
        assert coordinator.answers[first].error == ErrorCode.CONCURRENT_TRANSACTIONS
        assert second not in coordinator.answers
        coordinator.pass_time(PATIENCE_MS)
        assert coordinator.answers[second].error == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.mark(DEBIT)
        assert coordinator.value.state is TransactionState.COMPLETE_COMMIT

    def test_who_waits_is_sent_to_the_next_coordinator(self, bumps: bool) -> None:
        coordinator, session = committing(bumps=bumps)
        token = coordinator.start_add(session, DEBIT, bumps=bumps)
        coordinator.fail_over()
        assert coordinator.answers[token].error == ErrorCode.NOT_COORDINATOR

    def test_who_waits_is_told_when_its_epoch_is_over(self, bumps: bool) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.holds_writes = True
        coordinator.start_init()
        token = coordinator.start_add(session, DEBIT, bumps=bumps)
        coordinator.store()
        assert coordinator.answers[token].error == ErrorCode.PRODUCER_FENCED

    def test_a_change_that_fails_lets_go_on_who_waits_for_it(self, bumps: bool) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.holds_writes = True
        coordinator.start_add(session, DEBIT, bumps=bumps)
        token = coordinator.start_add(session, CREDIT, bumps=bumps)
        coordinator.refuse_write()
        coordinator.store()
        assert coordinator.answers[token].error == ErrorCode.NONE
        assert coordinator.value.partitions == {CREDIT}

    def test_an_end_behind_a_beginning_is_of_what_begins(self, bumps: bool) -> None:
        coordinator, session = committing(bumps=bumps)
        begun = coordinator.start_add(session, CREDIT, bumps=bumps)
        aborted = coordinator.start_end(session, commit=False, bumps=bumps)
        coordinator.mark(DEBIT)
        assert coordinator.answers[begun].error == ErrorCode.NONE
        if coordinator.answers[aborted].error == ErrorCode.CONCURRENT_TRANSACTIONS:
            aborted = coordinator.start_end(session, commit=False, bumps=bumps)
        assert coordinator.answers[aborted].error == ErrorCode.NONE
        coordinator.mark(CREDIT)
        assert coordinator.value.state is TransactionState.COMPLETE_ABORT

    def test_one_change_at_a_time(self, bumps: bool) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.holds_writes = True
        token = coordinator.start_add(session, DEBIT, bumps=bumps)
        others = [coordinator.start_add(session, CREDIT, bumps=bumps) for _ in range(2)]
        busy = coordinator.start_end(session, commit=True, bumps=bumps)
        assert coordinator.answers[busy].error == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.store()
        assert coordinator.answers[token].error == ErrorCode.NONE
        assert not coordinator.answers.keys() & others
        coordinator.store()
        assert [coordinator.answers[other].error for other in others] == [ErrorCode.NONE] * 2
        assert not coordinator.writes
