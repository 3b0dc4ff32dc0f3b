"""Requests, failures and successors of the coordinator in any order, of zombies too."""

from dataclasses import dataclass

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.partitions.state_machines.transactions.driver import (
    CREDIT,
    DEBIT,
    TIMEOUT_MS,
    Coordinator,
)
from tidemark.partitions.state_machines.transactions.requests import ProducerAnswer
from tidemark.partitions.state_machines.transactions.transaction import TransactionState
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition

SESSIONS = st.integers(min_value=0, max_value=5)
A_PARTITION = st.sampled_from([DEBIT, CREDIT])


@dataclass(frozen=True)
class Asked:
    """An end that is not answered yet."""

    session: ProducerAnswer
    commit: bool


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator(holds_writes=True, holds_markers=True)
        self.sessions: list[ProducerAnswer] = []
        """All that were ever given out; most are zombies."""
        self.asked: dict[int, Asked] = {}
        self.inits: list[int] = []
        self.added: dict[tuple[int, int], set[TopicPartition]] = {}
        """By producer and epoch: what may be in its transaction."""

    def session(self, number: int) -> ProducerAnswer | None:
        return self.sessions[-1 - number % len(self.sessions)] if self.sessions else None

    @rule(number=SESSIONS, goes_on=st.booleans())
    def start_session(self, number: int, goes_on: bool) -> None:
        session = self.session(number)
        own = (session.producer_id, session.epoch) if session is not None and goes_on else (-1, -1)
        self.inits.append(self.coordinator.start_init(own))

    @rule(number=SESSIONS, partition=A_PARTITION, bumps=st.booleans())
    def add(self, number: int, partition: TopicPartition, bumps: bool) -> None:
        session = self.session(number)
        if session is not None:
            self.coordinator.start_add(session, partition, bumps=bumps)
            key = session.producer_id, session.epoch
            self.added.setdefault(key, set()).add(partition)

    @rule(number=SESSIONS, commit=st.booleans(), bumps=st.booleans())
    def end(self, number: int, commit: bool, bumps: bool) -> None:
        session = self.session(number)
        if session is not None:
            token = self.coordinator.start_end(session, commit=commit, bumps=bumps)
            self.asked[token] = Asked(session, commit)

    @precondition(lambda self: self.coordinator.writes)
    @rule()
    def store(self) -> None:
        self.coordinator.store()

    @precondition(lambda self: self.coordinator.writes)
    @rule()
    def refuse_write(self) -> None:
        self.coordinator.refuse_write()

    @precondition(lambda self: self.coordinator.markers)
    @rule(partition=A_PARTITION)
    def mark(self, partition: TopicPartition) -> None:
        self.coordinator.mark(partition)

    @rule(ms=st.sampled_from([1, 1000, TIMEOUT_MS]))
    def pass_time(self, ms: int) -> None:
        self.coordinator.pass_time(ms)

    @rule()
    def fail_over(self) -> None:
        self.coordinator.fail_over()

    @invariant()
    def sessions_differ(self) -> None:
        for token in list(self.inits):
            answer = self.coordinator.answers.get(token)
            if answer is not None:
                self.inits.remove(token)
                assert isinstance(answer, ProducerAnswer)
                if answer.error is ErrorCode.NONE:
                    self.sessions.append(answer)

    @invariant()
    def what_is_is_what_the_log_has(self) -> None:
        assert dict(self.coordinator.shard.list_ids()) == self.coordinator.replayed()

    @invariant()
    def each_epoch_is_decided_once_for_all_partitions(self) -> None:
        decided = dict[tuple[int, int, frozenset[TopicPartition]], bool]()
        for markers in self.coordinator.markers:
            key = markers.producer_id, markers.epoch, markers.partitions
            assert decided.setdefault(key, markers.is_commit) == markers.is_commit or (
                # Where epochs are not raised, transaction follows transaction in one.
                self.was_decided_in_order(markers.producer_id, markers.epoch)
            )

    def was_decided_in_order(self, producer_id: int, epoch: int) -> bool:
        """In the log each decision is followed by its end, before the next one."""
        open_decision: TransactionState | None = None
        for state in self.coordinator.states_in_log(producer_id, epoch):
            if state.is_prepared and open_decision not in (None, state):
                return False
            open_decision = state if state.is_prepared else None
        return True

    @invariant()
    def an_end_that_was_answered_is_in_the_log(self) -> None:
        for token, asked in list(self.asked.items()):
            answer = self.coordinator.answers.get(token)
            if answer is None:
                continue
            del self.asked[token]
            if answer.error is ErrorCode.NONE:
                states = self.coordinator.states_in_log(asked.session.producer_id, None)
                assert any(
                    state.is_commit == asked.commit
                    for state in states
                    if state is not TransactionState.EMPTY and state is not TransactionState.ONGOING
                )

    @invariant()
    def only_what_was_added_is_marked(self) -> None:
        for markers in self.coordinator.markers:
            in_epoch = self.added.get((markers.producer_id, markers.epoch), set())
            before = self.added.get((markers.producer_id, markers.epoch - 1), set())
            assert markers.partitions <= in_epoch | before


AnyOrder.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestAnyOrder = AnyOrder.TestCase
