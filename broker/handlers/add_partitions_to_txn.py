"""AddPartitionsToTxn: of a client up to version 3; from 4 a partition's leader asks, about several
transactions, to have its partition added or to be told that it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.transaction_errors import in_version
from tidemark.broker.network.requests import Answer as HandlerAnswer
from tidemark.broker.network.requests import Pending, RequestContext
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS
from tidemark.partitions.state_machines.transactions.requests import (
    Add,
    Answer,
    Verify,
    VerifyAnswer,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from tidemark.protocol.types import ProducerId, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_FENCED_SINCE: Final = 2
_OF_BROKERS_SINCE: Final = 4
_ABORTABLE_SINCE: Final = 5

Outcome = Callable[[TopicPartition], ErrorCode]


def handle(
    node: Node, request: AddPartitionsToTxnRequest, context: RequestContext
) -> HandlerAnswer[AddPartitionsToTxnResponse]:
    if context.api_version >= _OF_BROKERS_SINCE:
        return _ForBroker(node, request, context.api_version).pending
    return _for_client(node, request, context.api_version)


def _for_client(
    node: Node, request: AddPartitionsToTxnRequest, version: int
) -> HandlerAnswer[AddPartitionsToTxnResponse]:
    topics = request.v3_and_below_topics
    partitions = _partitions(topics)
    refused = {each: code for each in partitions if (code := _refused(node, each))}

    def respond(answer: Answer) -> AddPartitionsToTxnResponse:
        code = in_version(answer.error, version, fenced_since=_FENCED_SINCE)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_results(topics, lambda each: refused.get(each, code))
        )

    if refused or not partitions:
        # All of them or none.
        return respond(Answer(error=ErrorCode.OPERATION_NOT_ATTEMPTED))
    asked = Add(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=ProducerId(request.v3_and_below_producer_id),
        epoch=request.v3_and_below_producer_epoch,
        partitions=frozenset(partitions),
    )
    try:
        return node.transactions.ask(asked, Answer, respond)
    except RequestError as error:
        return respond(Answer(error=error.code))


def _refused(node: Node, partition: TopicPartition) -> ErrorCode:
    if partition.topic in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.NONE if node.topics.has(partition) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class _ForBroker:
    """A leader's request, until all its transactions are answered."""

    def __init__(self, node: Node, request: AddPartitionsToTxnRequest, version: int) -> None:
        self.pending: Pending[AddPartitionsToTxnResponse] = Pending()
        self._version = version
        self._results: dict[int, AddPartitionsToTxnResult] = {}
        self._left = len(request.transactions)
        for at, asked in enumerate(request.transactions):
            try:
                self._ask(node, at, asked)
            except RequestError as error:
                self._answered(at, asked, Answer(error=error.code))
        if not request.transactions:
            self._complete()

    def _ask(self, node: Node, at: int, asked: AddPartitionsToTxnTransaction) -> None:
        answered = partial(self._answered, at, asked)
        add = Add(
            transactional_id=asked.transactional_id,
            producer_id=ProducerId(asked.producer_id),
            epoch=asked.producer_epoch,
            partitions=frozenset(_partitions(asked.topics)),
            bumps_epoch=True,
        )
        if asked.verify_only:
            node.transactions.ask(Verify.of(add), VerifyAnswer, answered)
        else:
            node.transactions.ask(add, Answer, answered)

    def _answered(self, at: int, asked: AddPartitionsToTxnTransaction, answer: Answer) -> None:
        missing = answer.missing if isinstance(answer, VerifyAnswer) else frozenset()
        not_in = (
            ErrorCode.TRANSACTION_ABORTABLE
            if self._version >= _ABORTABLE_SINCE
            else ErrorCode.INVALID_TXN_STATE
        )

        def outcome(partition: TopicPartition) -> ErrorCode:
            return not_in if partition in missing else answer.error

        self._results[at] = AddPartitionsToTxnResult(
            transactional_id=asked.transactional_id, topic_results=_results(asked.topics, outcome)
        )
        self._left -= 1
        if not self._left:
            self._complete()

    def _complete(self) -> None:
        self.pending.complete(
            AddPartitionsToTxnResponse(
                results_by_transaction=[self._results[at] for at in sorted(self._results)]
            )
        )


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, each) for topic in topics for each in topic.partitions]


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], outcome: Outcome
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=each,
                    partition_error_code=outcome(TopicPartition(topic.name, each)),
                )
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]
