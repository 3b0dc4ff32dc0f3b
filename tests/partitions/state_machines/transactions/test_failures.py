"""Transactions whose coordinator goes, or cannot write."""

from tests.partitions.state_machines.transactions.driver import (
    CREDIT,
    DEBIT,
    TIMEOUT_MS,
    Coordinator,
)
from tidemark.partitions.state_machines.transactions.transaction import (
    TransactionState,
)
from tidemark.protocol.errors import ErrorCode


class TestAnotherCoordinator:
    def test_it_carries_out_what_was_decided(self) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT, CREDIT)
        coordinator.end(session, commit=True)
        coordinator.mark(DEBIT)
        coordinator.fail_over()
        first, again = coordinator.markers
        assert again == first
        coordinator.mark(DEBIT, CREDIT)
        assert coordinator.value.state is TransactionState.COMPLETE_COMMIT

    def test_it_knows_nothing_of_what_was_not_durable(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.holds_writes = True
        token = coordinator.start_end(session, commit=True)
        coordinator.fail_over()
        assert coordinator.answers[token].error == ErrorCode.NOT_COORDINATOR
        assert coordinator.value.state is TransactionState.ONGOING
        assert not coordinator.markers

    def test_it_gives_an_open_transaction_the_time_that_is_left(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.pass_time(TIMEOUT_MS - 10)
        coordinator.fail_over()
        coordinator.pass_time(9)
        assert not coordinator.markers
        coordinator.pass_time(1)
        assert coordinator.markers

    def test_a_report_about_markers_before_says_nothing_of_these(self) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT, bumps=True)
        session = coordinator.end(session, commit=True, bumps=True)
        late = coordinator.markers[-1]
        coordinator.mark(DEBIT)
        coordinator.add(session, DEBIT, bumps=True)
        coordinator.end(session, commit=False, bumps=True)
        effects = coordinator.shard.marked(late, frozenset({DEBIT}), coordinator.at)
        assert not effects.writes
        assert coordinator.value.state is TransactionState.PREPARE_ABORT


class TestAWriteThatFails:
    def test_nothing_has_changed_and_the_producer_is_told(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.holds_writes = True
        token = coordinator.start_add(session, DEBIT)
        coordinator.refuse_write()
        assert coordinator.answers[token].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert coordinator.value.state is TransactionState.EMPTY
        coordinator.holds_writes = False
        assert coordinator.add(session, DEBIT) == ErrorCode.NONE

    def test_a_first_session_that_is_not_stored_is_none(self) -> None:
        coordinator = Coordinator(holds_writes=True)
        token = coordinator.start_init()
        coordinator.refuse_write()
        assert coordinator.answers[token].error == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert coordinator.shard.list_ids() == []

    def test_what_has_to_come_about_is_tried_again_later(self) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.end(session, commit=True)
        coordinator.holds_writes = True
        coordinator.mark(DEBIT)
        coordinator.refuse_write()
        assert not coordinator.writes
        coordinator.pass_time(1000)
        coordinator.store()
        assert coordinator.value.state is TransactionState.COMPLETE_COMMIT

    def test_so_is_an_abort_of_one_that_is_too_old(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.holds_writes = True
        coordinator.pass_time(TIMEOUT_MS)
        coordinator.refuse_write()
        coordinator.pass_time(1000)
        coordinator.store()
        assert coordinator.value.state is TransactionState.PREPARE_ABORT
