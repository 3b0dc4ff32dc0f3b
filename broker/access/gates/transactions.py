"""The gates of transactions and idempotent producers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tidemark.broker.access.gate import (
    CLUSTER,
    GROUP,
    TOPIC,
    TRANSACTIONAL_ID,
    Gate,
    Looking,
    Passed,
    Visitor,
)
from tidemark.broker.access.gates.each import each_named
from tidemark.broker.access.gates.partitions import PartitionGate
from tidemark.protocol.acls import Operation
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import describe_transactions as describing
from tidemark.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tidemark.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from tidemark.protocol.messages.init_producer_id import InitProducerIdRequest
from tidemark.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tidemark.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse

_OF_BROKERS_SINCE: Final = 4


def init_producer_id(visitor: Visitor, request: InitProducerIdRequest) -> Passed:
    """Without a transactional id, who may write any topic may be idempotent, too (KIP-679)."""
    if request.transactional_id is not None:
        visitor.demand(Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    elif not visitor.node.access.may_somewhere(visitor.session, Operation.WRITE, TOPIC):
        visitor.demand(Operation.IDEMPOTENT_WRITE, CLUSTER)
    return Passed(request)


def add_partitions_to_txn(visitor: Visitor, request: AddPartitionsToTxnRequest) -> Passed:
    """All of them or none; from version 4 on brokers ask, and not those that write."""
    if visitor.api_version >= _OF_BROKERS_SINCE:
        visitor.demand(Operation.CLUSTER_ACTION, CLUSTER)
        return Passed(request)
    topics = request.v3_and_below_topics
    error = visitor.refused(
        Operation.WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id
    )
    if error is not None:
        codes = dict.fromkeys((each.name for each in topics), error.code)
    else:
        refused = {each.name: visitor.refused(Operation.WRITE, TOPIC, each.name) for each in topics}
        if not any(refused.values()):
            return Passed(request)
        codes = {
            name: ErrorCode.OPERATION_NOT_ATTEMPTED if why is None else why.code
            for name, why in refused.items()
        }
    results = [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=each, partition_error_code=codes[topic.name]
                )
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]
    return Passed(None, lambda _: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results))


def on_transactional_id(operation: Operation) -> Gate:
    def gate(visitor: Visitor, request: Any) -> Passed:  # Any: of whichever API it is
        visitor.demand(operation, TRANSACTIONAL_ID, request.transactional_id)
        return Passed(request)

    return gate


def add_offsets_to_txn(visitor: Visitor, request: AddOffsetsToTxnRequest) -> Passed:
    _demand_group(visitor, request)
    return Passed(request)


def _demand_group(visitor: Visitor, request: Any) -> None:
    visitor.demand(Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    visitor.demand(Operation.READ, GROUP, request.group_id)


txn_offset_commit: Final = PartitionGate(
    operation=Operation.READ, response=TxnOffsetCommitResponse, for_all=_demand_group
)


_DESCRIBE: Final = each_named(
    Operation.DESCRIBE,
    TRANSACTIONAL_ID,
    response=describing.DescribeTransactionsResponse,
    asked="transactional_ids",
    answered="transaction_states",
    name="transactional_id",
)


def describe_transactions(
    visitor: Visitor, request: describing.DescribeTransactionsRequest
) -> Looking:
    """Of the topics in a transaction those are told that the client may describe."""
    passed = yield from _DESCRIBE(visitor, request)
    return passed.then(
        lambda response: replace(
            response,
            transaction_states=[
                _with_shown_topics(visitor, each) for each in response.transaction_states
            ],
        )
    )


def _with_shown_topics(
    visitor: Visitor, state: describing.TransactionState
) -> describing.TransactionState:
    shown = [each for each in state.topics if visitor.may(Operation.DESCRIBE, TOPIC, each.topic)]
    return replace(state, topics=shown)


def list_transactions(visitor: Visitor, request: ListTransactionsRequest) -> Passed:
    def finish(response: ListTransactionsResponse) -> ListTransactionsResponse:
        shown = [
            each
            for each in response.transaction_states
            if visitor.may(Operation.DESCRIBE, TRANSACTIONAL_ID, each.transactional_id)
        ]
        return replace(response, transaction_states=shown)

    return Passed(request, finish)
