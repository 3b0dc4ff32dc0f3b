"""Asking transactions' coordinators before the first batch of a transaction is appended.

The produce request waits where it was received, as held ones do (`held.py`), so what its client
sends next stays behind it. When the coordinator has answered, the request is taken as if it had
just come, and finds the answer at its partitions (`state_machines/verifications.py`), unless a
marker has come meanwhile: then it is asked about anew. Where this broker is the coordinator, and
can say so at once, nobody waits.

Clients of Produce 12 and later put no partitions into their transactions: for them the leader has
the coordinator do so, by the same question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import trio

from tidemark.broker.network.requests import NotNow
from tidemark.broker.replicas.held import HeldTask, Waiter
from tidemark.partitions.state_machines.verifications import Question
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError
from tidemark.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidemark.protocol.records.header import TRANSACTIONAL_BIT, read_header
from tidemark.protocol.types import NodeId, ProducerId, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.metadata.topics import Topics
    from tidemark.broker.network.turn import Turn
    from tidemark.broker.replicas.replica import Replica
    from tidemark.protocol.messages.produce import ProduceRequest
    from tidemark.protocol.schema import Message

ADDS_SINCE: Final = 12
"""The Produce version from which on it is the leader that puts a partition into a transaction."""
ANSWER_SECONDS_MAX: Final = 5.0
"""How long a coordinator may be looked for, or busy with the end of the transaction before."""
RETRY_SECONDS: Final = 0.02
_RETRIED: Final = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)

Errors = Mapping[TopicPartition, RequestError | None]
"""By partition: `None` where the transaction is open there."""

Ask = Callable[[str, AddPartitionsToTxnRequest], Awaitable[AddPartitionsToTxnResponse]]
"""Asks the coordinator of a transactional id. Raises `RequestError`."""


class AskBroker(Protocol):
    """Asks any broker, this one among them, in one of Kafka's requests."""

    async def __call__(
        self,
        broker: NodeId,
        request: Message,
        answer_type: type[AddPartitionsToTxnResponse],
        /,
    ) -> AddPartitionsToTxnResponse: ...


def by_coordinator(find: Callable[[str], NodeId], ask: AskBroker) -> Ask:
    """Asks the broker that coordinates an id, as far as that is known."""

    async def ask_it(
        transactional_id: str, request: AddPartitionsToTxnRequest
    ) -> AddPartitionsToTxnResponse:
        return await ask(find(transactional_id), request, AddPartitionsToTxnResponse)

    return ask_it


class Transactional(NamedTuple):
    """Who says to have a transaction open."""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    adds: bool
    """Whether its partitions are to be put into the transaction, and not only looked for."""


AtOnce = Callable[[Transactional, Collection[TopicPartition]], Errors | None]
"""What this broker says itself, as the coordinator; `None` if it is not, or cannot say now."""


def _not_at_once(_who: Transactional, _places: Collection[TopicPartition]) -> None:
    """Who coordinates has to be asked."""


class Asking:
    """What one coordinator is asked at once, and the line of those who wait for the answer."""

    def __init__(self, who: Transactional, questions: Mapping[TopicPartition, Question]) -> None:
        self.who = who
        self.questions = questions
        self.scope = trio.CancelScope()
        """Ends the asking, answered or not."""
        self._waiting: dict[Waiter, None] = {}

    def join(self, waiter: Waiter, size_bytes: int) -> None:
        del size_bytes  # It is in its connection's buffer, which has its own limit.
        self._waiting[waiter] = None

    def leave(self, waiter: Waiter) -> None:
        self._waiting.pop(waiter, None)

    def release(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for waiter in waiting:
            waiter.go_on(may_be_held=True)


class Verifier:
    """The one of a broker. Everything is called on the loop's thread."""

    def __init__(
        self,
        topics: Topics,
        tasks: trio.Nursery,
        turn: Turn,
        ask: Ask,
        *,
        at_once: AtOnce = _not_at_once,
    ) -> None:
        self.ask = ask
        self.at_once = at_once
        self._topics = topics
        self._tasks = tasks
        self._turn = turn
        self._asking: dict[Question, Asking] = {}
        self._has_resigned = False

    def resign(self) -> None:
        """The broker is stopping, and has resigned as a coordinator: whoever waits for one is told
        to look elsewhere, before those who ask it have had all their time."""
        self._has_resigned = True
        for asking in self._asking.values():
            asking.scope.cancel()

    def check_known(self, request: ProduceRequest, api_version: int) -> None:
        """Raises `NotNow`, before anything is appended, while it is not known of each partition
        whether its batch's transaction is open."""
        assert request.transactional_id is not None
        unknown: dict[TopicPartition, Replica] = {}
        who = asking = None
        for place, replica, producer_id, epoch in self._transactional_parts(request):
            question = replica.verifications.find(producer_id, epoch)
            if question is None:
                adds = api_version >= ADDS_SINCE
                who = who or Transactional(request.transactional_id, producer_id, epoch, adds)
                if (who.producer_id, who.epoch) == (producer_id, epoch):
                    unknown[place] = replica
            elif not question.is_settled:
                asking = self._asking.get(question)
        if who is not None:
            asking = self._begin(who, unknown)
        if asking is not None:
            raise NotNow(asking)

    def _transactional_parts(
        self, request: ProduceRequest
    ) -> Sequence[tuple[TopicPartition, Replica, ProducerId, int]]:
        """The partitions whose coordinator has something to say. What is wrong otherwise will be
        found when it is appended."""
        found = []
        for topic in request.topic_data:
            for data in topic.partition_data:
                replica = self._topics.replica(topic.name, data.index)
                if replica is None or not replica.is_serving or not data.records:
                    continue
                try:
                    header = read_header(data.records)
                except CorruptBatch:
                    continue
                producer_id, epoch = ProducerId(header.producer_id), header.producer_epoch
                is_somebodys = header.attributes & TRANSACTIONAL_BIT and producer_id >= 0
                if is_somebodys and replica.wants_verification(producer_id, epoch):
                    place = TopicPartition(topic.name, data.index)
                    found.append((place, replica, producer_id, epoch))
        return found

    async def confirm(
        self,
        replica: Replica,
        transactional_id: str,
        producer_id: ProducerId,
        epoch: int,
        *,
        adds: bool,
    ) -> None:
        """Until it is certain that the transaction is open at that partition, and holds for what
        is appended before anything is awaited. Raises `RequestError`, with the coordinator's code.
        """
        who = Transactional(transactional_id, producer_id, epoch, adds)
        while (asking := self.asking_about(replica, who)) is not None:
            waiter = HeldTask()
            asking.join(waiter, 0)
            try:
                await waiter.wait()
            finally:
                asking.leave(waiter)

    def asking_about(self, replica: Replica, who: Transactional) -> Asking | None:
        """The line to wait in; `None`: it is certain, for now. Raises as `confirm` does."""
        if not replica.wants_verification(who.producer_id, who.epoch):
            return None
        verifications = replica.verifications
        question = verifications.find(who.producer_id, who.epoch)
        if question is not None and question.is_settled:
            if question.error is None:
                return None
            verifications.pass_on(question)
            raise question.error
        asking = None if question is None else self._asking.get(question)
        if asking is None:
            place = TopicPartition(replica.topic, replica.partition)
            asking = self._begin(who, {place: replica})
        return self.asking_about(replica, who) if asking is None else asking

    def _begin(
        self, who: Transactional, unknown: Mapping[TopicPartition, Replica]
    ) -> Asking | None:
        """`None`: it is answered already."""
        questions = {
            place: replica.verifications.begin(who.producer_id, who.epoch)
            for place, replica in unknown.items()
        }
        errors = None if who.adds or self._has_resigned else self.at_once(who, questions.keys())
        if errors is not None:
            for place, question in questions.items():
                question.settle(errors[place])
            return None
        asking = Asking(who, questions)
        if self._has_resigned:
            asking.scope.cancel()
        self._asking |= dict.fromkeys(questions.values(), asking)
        self._tasks.start_soon(self._run, asking)
        return asking

    async def _run(self, asking: Asking) -> None:
        error = RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "it did not answer in time")
        errors: Errors = dict.fromkeys(asking.questions, error)
        with trio.move_on_after(ANSWER_SECONDS_MAX), asking.scope:
            answered = await self._ask_once(asking)
            while is_to_be_asked_again(answered):
                await trio.sleep(RETRY_SECONDS)
                answered = await self._ask_once(asking)
            errors = answered
        self._turn.run(partial(self._settle, asking, errors))

    def _settle(self, asking: Asking, errors: Errors) -> None:
        for place, question in asking.questions.items():
            question.settle(errors[place])
            del self._asking[question]
        asking.release()

    async def _ask_once(self, asking: Asking) -> Errors:
        request = _request(asking.who, asking.questions)
        try:
            return _errors_of(
                await self.ask(asking.who.transactional_id, request), asking.questions
            )
        except RequestError as error:
            return dict.fromkeys(asking.questions, error)


def is_to_be_asked_again(errors: Errors) -> bool:
    """Whether one of the answers is none: the coordinator is busy, or moves."""
    return any(error is not None and error.code in _RETRIED for error in errors.values())


def not_in(
    place: TopicPartition,
    transactional_id: str,
    code: ErrorCode = ErrorCode.TRANSACTION_ABORTABLE,
) -> RequestError:
    return RequestError(code, f"{place} is not in the open transaction of {transactional_id}")


def _request(
    who: Transactional, questions: Mapping[TopicPartition, Question]
) -> AddPartitionsToTxnRequest:
    by_topic: dict[str, list[int]] = {}
    for place in questions:
        by_topic.setdefault(place.topic, []).append(place.partition)
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=who.transactional_id,
                producer_id=who.producer_id,
                producer_epoch=who.epoch,
                verify_only=not who.adds,
                topics=[
                    AddPartitionsToTxnTopic(name=name, partitions=partitions)
                    for name, partitions in by_topic.items()
                ],
            )
        ]
    )


def _errors_of(
    answer: AddPartitionsToTxnResponse, questions: Mapping[TopicPartition, Question]
) -> dict[TopicPartition, RequestError | None]:
    """By partition; what the answer leaves out is not in the transaction."""
    errors: dict[TopicPartition, RequestError | None] = {
        place: RequestError(ErrorCode(answer.error_code or ErrorCode.TRANSACTION_ABORTABLE))
        for place in questions
    }
    for transaction in answer.results_by_transaction:
        for topic in transaction.topic_results:
            for result in topic.results_by_partition:
                code = ErrorCode(result.partition_error_code)
                place = TopicPartition(topic.name, result.partition_index)
                is_in = code is ErrorCode.NONE
                errors[place] = None if is_in else not_in(place, transaction.transactional_id, code)
    return errors
