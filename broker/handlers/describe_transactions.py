"""DescribeTransactions: what this broker knows of the transactional ids that it coordinates."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import distinct
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from tidemark.protocol.types import NO_TIMESTAMP_MS

if TYPE_CHECKING:
    from tidemark.broker.node import Node


def handle(
    node: Node, request: DescribeTransactionsRequest, context: RequestContext
) -> DescribeTransactionsResponse:
    del context
    return DescribeTransactionsResponse(
        transaction_states=[_described(node, each) for each in distinct(request.transactional_ids)]
    )


def _described(node: Node, transactional_id: str) -> TransactionState:
    try:
        found = node.transactions.describe(transactional_id)
        if found is None:
            raise RequestError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    except RequestError as error:
        return TransactionState(
            error_code=error.code,
            transactional_id=transactional_id,
            transaction_start_time_ms=NO_TIMESTAMP_MS,
        )
    value, partitions = found
    by_topic = groupby(sorted(partitions), key=lambda partition: partition.topic)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=value.state.title,
        transaction_timeout_ms=value.timeout_ms,
        transaction_start_time_ms=value.started_ms,
        producer_id=value.producer_id,
        producer_epoch=value.epoch,
        topics=[
            TopicData(topic=topic, partitions=[each.partition for each in of_topic])
            for topic, of_topic in by_topic
        ],
    )
