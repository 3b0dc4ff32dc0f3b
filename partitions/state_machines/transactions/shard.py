"""The coordinator of the transactional ids of one partition of `__transaction_state`.

Pure: a request and the time go in, answers, writes and markers come out. What the caller owes it:

1. append the writes in their order, and report each with `stored` or `not_stored`, in order;
2. send markers until each partition has its own or is no more, and report those with `marked`;
3. call `tick` when `next_deadline_ms` has come;
4. call `resign` when it is not the partition's leader any more, and send what that gives back.
   Whatever is reported afterwards has no effect.

A producer begins its next transaction at once, while the markers of the last one are on their way:
mostly for as long as two syncs take. So who asks for partitions to be added waits a moment for
that, and is told CONCURRENT_TRANSACTIONS only then: clients come again after 20 ms at best. For as
long, Kafka's brokers ask again on behalf of theirs (`add.partitions.to.txn.retry.backoff.max.ms`).
An end that comes meanwhile is of the transaction that is to begin, and waits behind that.
librdkafka sends one if it aborts at once, and taken as another decision about the last transaction
it would be fatal. Where somebody waits when the last marker is there, the record of the end is not
written: that of the next beginning replaces it, and a coordinator that reads it back knows as much.
"""

from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from tidemark.partitions.state_machines.agenda import Agenda
from tidemark.partitions.state_machines.instant import Instant
from tidemark.partitions.state_machines.token import Token
from tidemark.partitions.state_machines.transactions import decisions, transitions
from tidemark.partitions.state_machines.transactions.decisions import Decision
from tidemark.partitions.state_machines.transactions.effects import Effects, Markers, Reply, Write
from tidemark.partitions.state_machines.transactions.held import Asked, Held, Unstored
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
from tidemark.partitions.state_machines.transactions.transaction import (
    Transaction,
    TransactionState,
)
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.types import TopicPartition

RETRY_MS: Final = 1000
"""How long a write waits that was refused and has to be made."""
PATIENCE_MS: Final = 100
"""How long partitions that are to be added wait for what is going on about their id."""


class TransactionShard:
    """Transactional ids by name, and what is on its way to the log."""

    def __init__(self, settings: TransactionSettings) -> None:
        self._settings = settings
        self._held: dict[str, Held] = {}
        self._unstored: dict[int, str] = {}
        self._agenda = Agenda()
        self._patience = Agenda()
        """When who waits has waited for long enough."""
        self._next_write = 0
        self._has_resigned = False

    @property
    def next_deadline_ms(self) -> int | None:
        """When `tick` is next needed, in the caller's ticks; it may be early, never late."""
        both = self._agenda.next_ms, self._patience.next_ms
        return min((each for each in both if each is not None), default=None)

    def restore(self, values: Mapping[str, Transaction], at: Instant) -> Effects:
        """Begin with what the log has. Markers of what it says was decided are sent again."""
        effects = self._begin()
        for transactional_id, value in values.items():
            held = self._held[transactional_id] = Held()
            self._become(transactional_id, held, value, effects, at)
        return effects

    def needs_fresh_id(self, transactional_id: str) -> bool:
        """Whether an `Init` or `End` may have to give out a producer id that nobody has had."""
        held = self._held.get(transactional_id)
        return held is None or held.value is None or held.value.is_exhausted

    def step(self, request: Request, token: Token, at: Instant) -> Effects:
        """Take one request in. `token` is answered once: now, or by a later step."""
        effects = self._begin()
        self._take(Asked(request, token, at.ticks_ms + PATIENCE_MS), effects, at)
        return effects

    def verify(self, request: Verify) -> VerifyAnswer:
        """What `step` answers, which is always at once."""
        held = self._held.get(request.transactional_id)
        if held is not None and held.unstored is not None:
            return VerifyAnswer(error=ErrorCode.CONCURRENT_TRANSACTIONS)
        return decisions.verified(None if held is None else held.value, request)

    def marked(
        self, markers: Markers, partitions: frozenset[TopicPartition], at: Instant
    ) -> Effects:
        """These partitions have their marker in a majority's logs, or do not exist any more."""
        effects = self._begin()
        held = self._held.get(markers.transactional_id)
        if held is None or held.value is None or not _is_of(markers, held.value):
            return effects
        held.unmarked -= partitions
        self._complete(markers.transactional_id, held, effects, at)
        return effects

    def tick(self, at: Instant) -> Effects:
        """Abort the transactions whose time is up (their producers are fenced), and try again what
        could not be written."""
        effects = self._begin()
        for name in self._patience.take_due(at.ticks_ms):
            if (held := self._held.get(name)) is not None:
                self._look_at_waiting(held, effects, at)
        for name in self._agenda.take_due(at.ticks_ms):
            held = self._held.get(name)
            if held is None or held.deadline_ms is None:
                continue
            if held.deadline_ms > at.ticks_ms:
                self._agenda.note(name, held.deadline_ms)
            else:
                held.deadline_ms = None
                self._wake(name, held, effects, at)
        return effects

    def expire_ids(self, at: Instant) -> Effects:
        """Forget the ids that nobody has used for long, and that have nothing open."""
        effects = self._begin()
        for transactional_id, held in self._held.items():
            value = held.value
            if value is None or held.unstored is not None or _is_open(value):
                continue
            if at.wall_ms - value.updated_ms >= self._settings.id_expiration_ms:
                self._write(transactional_id, held, None, Answer(), effects=effects)
        return effects

    def stored(self, number: int, at: Instant) -> Effects:
        """The write is durable: below the high watermark, in the epoch it was appended in."""
        effects = Effects()
        if self._has_resigned:
            return effects
        transactional_id, held, unstored = self._settle(number)
        held.forgiven_epoch = unstored.forgiven_epoch
        if unstored.token is not None:
            effects.replies.append(Reply(unstored.token, unstored.answer))
        if unstored.write.value is None:
            del self._held[transactional_id]
        else:
            self._become(transactional_id, held, unstored.write.value, effects, at)
        self._look_at_waiting(held, effects, at)
        return effects

    def not_stored(self, number: int, error: ErrorCode, at: Instant) -> Effects:
        """The write failed for good; whoever waits for it is answered with `error`."""
        effects = Effects()
        if self._has_resigned:
            return effects
        transactional_id, held, unstored = self._settle(number)
        if unstored.token is not None:
            effects.replies.append(Reply(unstored.token, unstored.answer.refused(error)))
        if held.value is None:
            del self._held[transactional_id]
        else:
            self._retry_later(transactional_id, held, at)
        self._look_at_waiting(held, effects, at)
        return effects

    def resign(self) -> Effects:
        """This is not the ids' coordinator any more: everybody is sent to look for it."""
        effects = self._begin()
        for held in self._held.values():
            unstored = held.unstored
            if unstored is not None and unstored.token is not None:
                answer = unstored.answer.refused(ErrorCode.NOT_COORDINATOR)
                effects.replies.append(Reply(unstored.token, answer))
            for asked in held.waiting:
                answer = _empty_answer(asked.request).refused(ErrorCode.NOT_COORDINATOR)
                effects.replies.append(Reply(asked.token, answer))
        self._held.clear()
        self._unstored.clear()
        self._agenda, self._patience = Agenda(), Agenda()
        self._has_resigned = True
        return effects

    def describe(self, transactional_id: str) -> Transaction | None:
        """What the log has of the id."""
        held = self._held.get(transactional_id)
        return None if held is None else held.value

    def unmarked(self, transactional_id: str) -> frozenset[TopicPartition]:
        """The partitions that are in the open transaction; once it is decided, those that have no
        marker yet."""
        held = self._held.get(transactional_id)
        if held is None or held.value is None:
            return frozenset()
        return frozenset(held.unmarked) if held.value.state.is_prepared else held.value.partitions

    def list_ids(self) -> list[tuple[str, Transaction]]:
        """All that the log has. May be called from any thread."""
        values = [(name, held.value) for name, held in list(self._held.items())]
        return [(name, value) for name, value in values if value is not None]

    def _take(self, asked: Asked, effects: Effects, at: Instant) -> None:
        request, token, until_ms = asked
        name = request.transactional_id
        held = self._held.get(name)
        decision = self._decide(held or Held(), request, at)
        is_busy = decision.answer.error is ErrorCode.CONCURRENT_TRANSACTIONS
        has_to_wait = isinstance(request, Add) and is_busy
        if held is not None and decision.answer.error is ErrorCode.INVALID_TXN_STATE:
            has_to_wait = _begins_first(held.waiting, request)
        if has_to_wait and held is not None and at.ticks_ms < until_ms:
            held.waiting += (asked,)
            self._patience.note(name, until_ms)
            return
        is_final = decision.becomes is not None and decision.answer.error is ErrorCode.NONE
        if not is_final:
            effects.replies.append(Reply(token, decision.answer))
        if decision.becomes is not None:
            self._persist(name, decision, token if is_final else None, effects=effects)

    def _look_at_waiting(self, held: Held, effects: Effects, at: Instant) -> None:
        """Something has become of an id, or of somebody's patience: in the order of their coming,
        who waits may go on, or has to wait, or has waited for long enough."""
        waiting, held.waiting = held.waiting, ()
        for asked in waiting:
            self._take(asked, effects, at)

    def _decide(self, held: Held, request: Request, at: Instant) -> Decision:
        if held.unstored is not None:
            return Decision(_empty_answer(request).refused(ErrorCode.CONCURRENT_TRANSACTIONS))
        match request:
            case Init():
                return decisions.decide_init(
                    held.value,
                    request,
                    held.forgiven_epoch,
                    wall_ms=at.wall_ms,
                    settings=self._settings,
                )
            case Add():
                return decisions.decide_add(held.value, request, wall_ms=at.wall_ms)
            case Verify():
                return Decision(decisions.verified(held.value, request))
            case End():
                return decisions.decide_end(held.value, request, wall_ms=at.wall_ms)
            case Abort():
                return _decide_abort(held.value, at)
            case _:
                assert_never(request)

    def _persist(
        self, transactional_id: str, decision: Decision, token: Token | None, *, effects: Effects
    ) -> None:
        held = self._held.setdefault(transactional_id, Held())
        self._write(
            transactional_id,
            held,
            decision.becomes,
            decision.answer,
            token=token,
            forgiven_epoch=decision.forgiven_epoch,
            effects=effects,
        )

    def _write(
        self,
        transactional_id: str,
        held: Held,
        value: Transaction | None,
        answer: Answer,
        *,
        effects: Effects,
        token: Token | None = None,
        forgiven_epoch: int | None = None,
    ) -> None:
        assert held.unstored is None
        write = Write(self._next_write, transactional_id, value)
        self._next_write += 1
        held.unstored = Unstored(write, answer, token, forgiven_epoch)
        self._unstored[write.number] = transactional_id
        effects.writes.append(write)

    def _settle(self, number: int) -> tuple[str, Held, Unstored]:
        assert number == next(iter(self._unstored)), "writes are reported in their order"
        transactional_id = self._unstored.pop(number)
        held = self._held[transactional_id]
        unstored, held.unstored = held.unstored, None
        assert unstored is not None
        return transactional_id, held, unstored

    def _become(
        self, name: str, held: Held, value: Transaction, effects: Effects, at: Instant
    ) -> None:
        """The log has `value`: what follows from that."""
        was_open = held.value is not None and held.value.state is TransactionState.ONGOING
        held.value = value
        if value.state is TransactionState.ONGOING:
            if not was_open:
                self._start_clock(name, held, value, at)
            return
        held.deadline_ms = None
        if value.state.is_prepared:
            held.unmarked = set(value.partitions)
            if value.partitions:
                effects.markers.append(_markers(name, value))
            self._complete(name, held, effects, at)

    def _start_clock(self, name: str, held: Held, value: Transaction, at: Instant) -> None:
        has_run_ms = min(max(at.wall_ms - value.started_ms, 0), value.timeout_ms)
        self._set_deadline(name, held, at.ticks_ms + value.timeout_ms - has_run_ms)

    def _retry_later(self, name: str, held: Held, at: Instant) -> None:
        """A change did not come about. What has to come about is tried again."""
        if held.value is not None and _is_open(held.value) and held.deadline_ms is None:
            self._set_deadline(name, held, at.ticks_ms + RETRY_MS)

    def _set_deadline(self, name: str, held: Held, deadline_ms: int) -> None:
        held.deadline_ms = deadline_ms
        self._agenda.note(name, deadline_ms)

    def _complete(self, name: str, held: Held, effects: Effects, at: Instant) -> None:
        value = held.value
        if value is None or held.unmarked or held.unstored is not None:
            return
        if value.state.is_prepared:
            new = transitions.completed(value, wall_ms=at.wall_ms)
            if not self._goes_on(name, held, new, effects, at):
                # The producer whose end this is may not have heard of it yet.
                self._write(
                    name, held, new, Answer(), forgiven_epoch=held.forgiven_epoch, effects=effects
                )

    def _goes_on(
        self, name: str, held: Held, over: Transaction, effects: Effects, at: Instant
    ) -> bool:
        """Whether the next transaction begins with what ends the last: who waits for that has it
        begun, and one record says both."""
        request, token, _ = held.waiting[0] if held.waiting else (None, None, 0)
        if token is None or not isinstance(request, Add):
            return False
        decision = decisions.decide_add(over, request, wall_ms=at.wall_ms)
        if decision.becomes is None:
            return False
        held.waiting = held.waiting[1:]
        self._persist(name, decision, token, effects=effects)
        return True

    def _wake(self, name: str, held: Held, effects: Effects, at: Instant) -> None:
        """An id's deadline has come: its transaction's, or that of a retry."""
        value = held.value
        if held.unstored is not None:
            # A change of it is on its way to the log: look again when that is there.
            self._set_deadline(name, held, at.ticks_ms + RETRY_MS)
        elif value is not None and value.state is TransactionState.ONGOING:
            fence = decisions.fenced(value, wall_ms=at.wall_ms)
            decision = Decision(Answer(), fence, value.epoch)
            self._persist(name, decision, None, effects=effects)
        else:
            self._complete(name, held, effects, at)

    def _begin(self) -> Effects:
        assert not self._has_resigned
        return Effects()


def _decide_abort(old: Transaction | None, at: Instant) -> Decision:
    if old is None:
        return Decision(Answer(error=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND))
    if old.state is not TransactionState.ONGOING:
        return Decision(Answer(error=ErrorCode.INVALID_TXN_STATE))
    return Decision(Answer(), decisions.fenced(old, wall_ms=at.wall_ms))


def _begins_first(waiting: Sequence[Asked], end: Request) -> bool:
    """Whether the same producer waits to begin a transaction, which this ends."""
    return isinstance(end, End) and any(
        isinstance(each.request, Add)
        and (each.request.producer_id, each.request.epoch) == (end.producer_id, end.epoch)
        for each in waiting
    )


def _empty_answer(request: Request) -> Answer:
    match request:
        case Init() | End():
            return ProducerAnswer()
        case Verify():
            return VerifyAnswer()
        case Add() | Abort():
            return Answer()
        case _:
            assert_never(request)


def _markers(transactional_id: str, value: Transaction) -> Markers:
    return Markers(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        epoch=value.epoch,
        is_commit=value.state.is_commit,
        bumps_epoch=value.bumps_epoch,
        partitions=value.partitions,
    )


def _is_of(markers: Markers, value: Transaction) -> bool:
    """Whether a report is about the end that is going on, and not about one before."""
    return value.state.is_prepared and (markers.producer_id, markers.epoch, markers.is_commit) == (
        value.producer_id,
        value.epoch,
        value.state.is_commit,
    )


def _is_open(value: Transaction) -> bool:
    return value.state is TransactionState.ONGOING or value.state.is_prepared
