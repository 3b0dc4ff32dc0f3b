"""Clients that raise the epoch and clients that do not, in one transaction: whatever they ask, a
partition has a transaction open only as long as the coordinator owes it a marker."""

from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.partitions.state_machines.transactions.driver import (
    CREDIT,
    DEBIT,
    TIMEOUT_MS,
    TXN,
    Coordinator,
)
from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.partitions.state_machines.transactions.effects import Markers
from tidemark.partitions.state_machines.transactions.requests import ProducerAnswer, VerifyAnswer
from tidemark.partitions.state_machines.transactions.transaction import (
    EPOCH_MAX,
    Transaction,
    TransactionState,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.control import Marker
from tidemark.protocol.records.header import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader
from tidemark.protocol.types import Epoch, Offset, ProducerId, TopicPartition

PARTITIONS = [DEBIT, CREDIT]
A_PARTITION = st.sampled_from(PARTITIONS)
SESSIONS = st.sampled_from([0, 0, 0, 0, 1, 2])
"""How many back: all but the last are zombies."""
BUMPS = st.booleans()


class Owed(NamedTuple):
    coordinator_epoch: int
    markers: Markers
    partition: TopicPartition


class Partition:
    def __init__(self) -> None:
        self.table = ProducerTable()
        self.end = 0

    def take(self, producer: ProducerAnswer) -> None:
        """A batch of one record, if it is what comes next."""
        header = self.header(producer.producer_id, producer.epoch)
        known = dict(self.table.producers).get(producer.producer_id)
        if known is not None and known.epoch == producer.epoch:
            header = header._replace(base_sequence=known.next_sequence)
        try:
            self.table.check(header)
        except RequestError:
            return
        self.table.append(header, Offset(self.end))
        self.end += 1

    def mark(self, owed: Owed) -> ErrorCode:
        markers, marker = owed.markers, Marker(owed.markers.is_commit, owed.coordinator_epoch)
        try:
            is_new = self.table.check_marker(
                markers.producer_id, markers.epoch, marker, raises_epoch=markers.bumps_epoch
            )
        except RequestError as error:
            return error.code
        if is_new:
            header = self.header(markers.producer_id, markers.epoch, CONTROL_BIT)
            self.table.append_marker(header, Offset(self.end), marker)
            self.end += 1
        return ErrorCode.NONE

    def header(self, producer_id: int, epoch: int, attributes: int = 0) -> BatchHeader:
        return BatchHeader.open(
            base_offset=Offset(self.end),
            epoch=Epoch(0),
            attributes=TRANSACTIONAL_BIT | attributes,
            base_timestamp=0,
            max_timestamp=0,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            record_count=1,
        )


class MixedClients(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator(holds_markers=True)
        self.coordinator_epoch = 0
        self.partitions = {each: Partition() for each in PARTITIONS}
        self.coordinator.read_back(
            Transaction(producer_id=ProducerId(7), epoch=EPOCH_MAX - 3, timeout_ms=TIMEOUT_MS)
        )
        self.sessions = [ProducerAnswer(producer_id=ProducerId(7), epoch=EPOCH_MAX - 3)]
        self.owed: list[Owed] = []
        self.sent = 0

    def session(self, back: int) -> ProducerAnswer:
        return self.sessions[max(-1 - back, -len(self.sessions))]

    def goes_on(self, answer: ProducerAnswer) -> None:
        if answer.error is ErrorCode.NONE:
            assert answer.epoch < EPOCH_MAX, "that one is for fencing alone"
            self.sessions.append(answer)

    @rule(back=SESSIONS, names_itself=st.booleans())
    def init(self, back: int, names_itself: bool) -> None:
        session = self.session(back)
        own = (session.producer_id, session.epoch) if names_itself else (-1, -1)
        self.goes_on(self.coordinator.init(own))

    @rule(back=SESSIONS, partition=A_PARTITION, bumps=BUMPS)
    def produce(self, back: int, partition: TopicPartition, bumps: bool) -> None:
        """The partition's leader has it added, or asks whether it is in."""
        session = self.session(back)
        if bumps:
            answer = VerifyAnswer(error=self.coordinator.add(session, partition, bumps=True))
        else:
            answer = self.coordinator.verify(session, partition)
        if answer.error is ErrorCode.NONE and not answer.missing:
            self.partitions[partition].take(session)

    @rule(back=SESSIONS, partition=A_PARTITION)
    def add(self, back: int, partition: TopicPartition) -> None:
        self.coordinator.add(self.session(back), partition, bumps=False)

    @rule(back=SESSIONS, commit=st.booleans(), bumps=BUMPS)
    def end(self, back: int, commit: bool, bumps: bool) -> None:
        self.goes_on(self.coordinator.end(self.session(back), commit=commit, bumps=bumps))

    @rule(ms=st.sampled_from([1, TIMEOUT_MS]))
    def pass_time(self, ms: int) -> None:
        self.coordinator.pass_time(ms)

    @rule()
    def fail_over(self) -> None:
        self.coordinator.fail_over()
        self.coordinator_epoch += 1

    @precondition(lambda self: self.owed)
    @rule(which=st.integers(0, 9))
    def mark(self, which: int) -> None:
        """A marker comes, perhaps late, of a coordinator that may be none any more."""
        owed = self.owed.pop(which % len(self.owed))
        outcome = self.partitions[owed.partition].mark(owed)
        if owed.coordinator_epoch != self.coordinator_epoch:
            return
        if outcome in (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH):
            self.coordinator.mark_of(owed.markers, owed.partition)
        else:
            self.owed.append(owed)

    @invariant()
    def markers_are_sent(self) -> None:
        for markers in self.coordinator.markers[self.sent :]:
            self.owed += [
                Owed(self.coordinator_epoch, markers, each) for each in sorted(markers.partitions)
            ]
        self.sent = len(self.coordinator.markers)

    @invariant()
    def what_is_open_is_to_be_ended(self) -> None:
        value, unmarked = self.coordinator.value, self.coordinator.shard.unmarked(TXN)
        is_open = value.state is TransactionState.ONGOING or value.state.is_prepared
        for name, partition in self.partitions.items():
            for producer_id in partition.table.transactions.opened:
                assert is_open
                assert producer_id == value.producer_id
                assert name in unmarked


MixedClients.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestMixedClients = MixedClients.TestCase
