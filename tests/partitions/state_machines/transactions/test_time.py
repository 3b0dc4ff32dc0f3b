"""Transactions that are open for too long, and ids that nobody uses."""

from tests.partitions.state_machines.transactions.driver import (
    CREDIT,
    DEBIT,
    FIRST_ID,
    TIMEOUT_MS,
    TXN,
    Coordinator,
    producer,
)
from tidemark.partitions.state_machines.transactions.transaction import (
    TransactionState,
)
from tidemark.protocol.errors import ErrorCode


class TestTime:
    def test_a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced(
        self,
    ) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.pass_time(TIMEOUT_MS - 1)
        assert not coordinator.markers
        coordinator.pass_time(1)
        (markers,) = coordinator.markers
        assert (markers.is_commit, markers.epoch) == (False, session.epoch + 1)
        assert coordinator.end(session, commit=True).error == ErrorCode.PRODUCER_FENCED
        # It is the same producer that was late, so it may go on.
        assert coordinator.init((FIRST_ID, session.epoch)).error == ErrorCode.NONE

    def test_a_commit_that_comes_too_late_hears_that_its_producer_is_fenced(self) -> None:
        """Not that the transaction is in another state, which no client goes on from."""
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT, bumps=True)
        coordinator.pass_time(TIMEOUT_MS)
        late = coordinator.end(session, commit=True, bumps=True)
        assert late.error == ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.mark(DEBIT)
        late = coordinator.end(session, commit=True, bumps=True)
        assert late.error == ErrorCode.PRODUCER_FENCED
        assert coordinator.end(session, commit=False, bumps=True) == producer(FIRST_ID, 1)

    def test_more_partitions_give_no_more_time(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.pass_time(TIMEOUT_MS - 1)
        coordinator.add(session, CREDIT)
        coordinator.pass_time(1)
        assert coordinator.markers[-1].partitions == {DEBIT, CREDIT}

    def test_a_transaction_after_another_one_has_its_own_time(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.end(session, commit=True)
        coordinator.pass_time(1_000)
        coordinator.add(session, CREDIT)
        coordinator.pass_time(TIMEOUT_MS - 1)
        assert [markers.is_commit for markers in coordinator.markers] == [True]
        coordinator.pass_time(1)
        assert [markers.is_commit for markers in coordinator.markers] == [True, False]

    def test_transactions_that_are_over_leave_no_alarms_behind(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        for _ in range(50):
            coordinator.add(session, DEBIT)
            coordinator.end(session, commit=True)
            coordinator.pass_time(10)
        alarms = []
        while (due := coordinator.shard.next_deadline_ms) is not None:
            alarms.append(due)
            coordinator.pass_time(due - coordinator.ticks_ms)
        assert len(alarms) == 1

    def test_a_decision_is_never_late(self) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.end(session, commit=True)
        coordinator.pass_time(10 * TIMEOUT_MS)
        assert [markers.is_commit for markers in coordinator.markers] == [True]

    def test_a_time_out_during_an_end_leaves_the_decision_as_it_is(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.holds_writes = True
        coordinator.start_end(session, commit=True)
        coordinator.pass_time(TIMEOUT_MS)
        coordinator.holds_writes = False
        coordinator.store()
        coordinator.pass_time(TIMEOUT_MS)
        assert [markers.is_commit for markers in coordinator.markers] == [True]

    def test_ids_that_nobody_uses_are_forgotten(self) -> None:
        coordinator = Coordinator()
        session = coordinator.init()
        coordinator.pass_time(coordinator.settings.id_expiration_ms - 1)
        coordinator.expire_ids()
        assert coordinator.shard.describe(TXN) is not None
        coordinator.pass_time(1)
        coordinator.expire_ids()
        assert coordinator.shard.describe(TXN) is None
        assert coordinator.replayed() == {}
        assert coordinator.add(session, DEBIT) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        # Its producer asks for the next epoch then (KIP-360), and goes on, as with Kafka.
        next_session = coordinator.init((session.producer_id, session.epoch))
        assert (next_session.error, next_session.epoch) == (ErrorCode.NONE, 0)
        assert next_session.producer_id != session.producer_id
        assert coordinator.add(session, DEBIT) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert coordinator.add(next_session, DEBIT) == ErrorCode.NONE

    def test_ids_with_something_open_are_not_forgotten(self) -> None:
        coordinator = Coordinator(holds_markers=True)
        session = coordinator.init()
        coordinator.add(session, DEBIT)
        coordinator.end(session, commit=True)
        coordinator.pass_time(2 * coordinator.settings.id_expiration_ms)
        coordinator.expire_ids()
        assert coordinator.value.state is TransactionState.PREPARE_COMMIT
