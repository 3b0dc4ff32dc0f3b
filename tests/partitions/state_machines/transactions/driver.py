"""A shard of transactional ids with a log, a clock and partitions that a test moves by hand."""

from collections import deque
from collections.abc import Iterable
from typing import TypeVar

from tidemark.partitions.state_machines.instant import Instant
from tidemark.partitions.state_machines.transactions.effects import Effects, Markers, Write
from tidemark.partitions.state_machines.transactions.records import decode_record, encode_record
from tidemark.partitions.state_machines.transactions.requests import (
    Abort,
    Add,
    Answer,
    End,
    Init,
    ProducerAnswer,
    Request,
    Verify,
    VerifyAnswer,
)
from tidemark.partitions.state_machines.transactions.settings import TransactionSettings
from tidemark.partitions.state_machines.transactions.shard import PATIENCE_MS, TransactionShard
from tidemark.partitions.state_machines.transactions.transaction import (
    Transaction,
    TransactionState,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import NO_PRODUCER, ProducerId, TopicPartition

AnswerT = TypeVar("AnswerT", bound=Answer)

TXN = "transfers"
TIMEOUT_MS = 60_000
DEBIT, CREDIT = TopicPartition("accounts", 0), TopicPartition("accounts", 1)
FIRST_ID = 1000


def producer(producer_id: int, epoch: int) -> ProducerAnswer:
    return ProducerAnswer(producer_id=ProducerId(producer_id), epoch=epoch)


class Coordinator:
    """Writes are stored, and partitions marked, at once, unless they are held."""

    def __init__(self, *, holds_writes: bool = False, holds_markers: bool = False) -> None:
        self.settings = TransactionSettings()
        self.shard = TransactionShard(self.settings)
        self.holds_writes = holds_writes
        self.holds_markers = holds_markers
        self.ticks_ms = 0
        self.log: list[tuple[bytes, bytes | None]] = []
        self.markers: list[Markers] = []
        """All that were ever to be sent."""
        self.answers: dict[int, Answer] = {}
        self.writes: deque[Write] = deque()
        self._next_token = 0
        self._next_id = FIRST_ID

    @property
    def at(self) -> Instant:
        return Instant(ticks_ms=self.ticks_ms, wall_ms=1_700_000_000_000 + self.ticks_ms)

    def init(self, producer: tuple[int, int] = (NO_PRODUCER, -1), **request: int) -> ProducerAnswer:
        return self._answered(self.start_init(producer, **request), ProducerAnswer)

    def start_init(
        self, producer: tuple[int, int] = (NO_PRODUCER, -1), *, timeout_ms: int = TIMEOUT_MS
    ) -> int:
        return self.ask(
            Init(
                transactional_id=TXN,
                timeout_ms=timeout_ms,
                producer_id=ProducerId(producer[0]),
                epoch=producer[1],
                fresh_id=self._fresh_id(),
            )
        )

    def add(
        self, producer: ProducerAnswer, *partitions: TopicPartition, bumps: bool = False
    ) -> ErrorCode:
        """The answer, for which it may have to wait."""
        token = self.start_add(producer, *partitions, bumps=bumps)
        if token not in self.answers:
            self.pass_time(PATIENCE_MS)
        return self._answered(token, Answer).error

    def start_add(
        self, producer: ProducerAnswer, *partitions: TopicPartition, bumps: bool = False
    ) -> int:
        return self.ask(
            Add(
                transactional_id=TXN,
                producer_id=producer.producer_id,
                epoch=producer.epoch,
                partitions=frozenset(partitions),
                bumps_epoch=bumps,
            )
        )

    def verify(self, producer: ProducerAnswer, *partitions: TopicPartition) -> VerifyAnswer:
        request = Verify(
            transactional_id=TXN,
            producer_id=producer.producer_id,
            epoch=producer.epoch,
            partitions=frozenset(partitions),
        )
        return self._answered(self.ask(request), VerifyAnswer)

    def end(self, producer: ProducerAnswer, *, commit: bool, bumps: bool = False) -> ProducerAnswer:
        token = self.start_end(producer, commit=commit, bumps=bumps)
        return self._answered(token, ProducerAnswer)

    def start_end(self, producer: ProducerAnswer, *, commit: bool, bumps: bool = False) -> int:
        return self.ask(
            End(
                transactional_id=TXN,
                producer_id=producer.producer_id,
                epoch=producer.epoch,
                is_commit=commit,
                bumps_epoch=bumps,
                fresh_id=self._fresh_id(),
            )
        )

    def abort(self) -> ErrorCode:
        return self._answered(self.ask(Abort(transactional_id=TXN)), Answer).error

    def ask(self, request: Request) -> int:
        """The number under which `answers` will have the answer."""
        token = self._next_token
        self._next_token += 1
        self._perform(self.shard.step(request, token, self.at))
        return token

    def pass_time(self, ms: int) -> None:
        end_ms = self.ticks_ms + ms
        while (due := self.shard.next_deadline_ms) is not None and due <= end_ms:
            self.ticks_ms = max(self.ticks_ms, due)
            self._perform(self.shard.tick(self.at))
        self.ticks_ms = end_ms

    def expire_ids(self) -> None:
        self._perform(self.shard.expire_ids(self.at))

    def store(self) -> None:
        """The first write that is held is durable."""
        write = self.writes.popleft()
        self.log.append(encode_record(write.transactional_id, write.value))
        self._perform(self.shard.stored(write.number, self.at))

    def refuse_write(self, error: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> None:
        write = self.writes.popleft()
        self._perform(self.shard.not_stored(write.number, error, self.at))

    def mark(self, *partitions: TopicPartition) -> None:
        """The partitions have the last marker."""
        self.mark_of(self.markers[-1], *partitions)

    def mark_of(self, markers: Markers, *partitions: TopicPartition) -> None:
        self._perform(self.shard.marked(markers, frozenset(partitions), self.at))

    def fail_over(self) -> None:
        """Another broker reads the log, and coordinates from here on."""
        self._reply(self.shard.resign())
        self.writes.clear()
        self.shard = TransactionShard(self.settings)
        self._perform(self.shard.restore(self.replayed(), self.at))

    def read_back(self, value: Transaction) -> None:
        """Begin with a log that says this of the one id."""
        self.log.append(encode_record(TXN, value))
        self.fail_over()

    def replayed(self) -> dict[str, Transaction]:
        values = dict[str, Transaction]()
        for record in self.log:
            decoded = decode_record(*record)
            assert decoded is not None
            name, value = decoded
            values.pop(name, None)
            if value is not None:
                values[name] = value
        return values

    def states_in_log(self, producer_id: int, epoch: int | None) -> list[TransactionState]:
        """What the log has said of a producer id, in all its epochs or in one."""
        values = [decoded[1] for record in self.log if (decoded := decode_record(*record))]
        return [
            value.state
            for value in values
            if value is not None
            and value.producer_id == producer_id
            and epoch in (None, value.epoch)
        ]

    @property
    def value(self) -> Transaction:
        value = self.shard.describe(TXN)
        assert value is not None
        return value

    def _fresh_id(self) -> ProducerId | None:
        if not self.shard.needs_fresh_id(TXN):
            return None
        self._next_id += 1
        return ProducerId(self._next_id - 1)

    def _answered(self, token: int, kind: type[AnswerT]) -> AnswerT:
        answer = self.answers[token]
        assert isinstance(answer, kind)
        return answer

    def _reply(self, effects: Effects) -> None:
        for reply in effects.replies:
            assert isinstance(reply.token, int)
            assert reply.token not in self.answers, "answered twice"
            self.answers[reply.token] = reply.answer

    def _perform(self, effects: Effects) -> None:
        self._reply(effects)
        self.markers += effects.markers
        self.writes += effects.writes
        if not self.holds_writes:
            self._store_all(len(effects.writes))
        if not self.holds_markers:
            self._mark_all(effects.markers)

    def _store_all(self, count: int) -> None:
        for _ in range(count):
            self.store()

    def _mark_all(self, all_markers: Iterable[Markers]) -> None:
        for markers in all_markers:
            self._perform(self.shard.marked(markers, markers.partitions, self.at))
