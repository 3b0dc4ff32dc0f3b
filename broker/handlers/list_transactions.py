"""ListTransactions: the transactional ids that this broker coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidemark.broker.network.requests import RequestContext
from tidemark.partitions.state_machines.groups.consumer.pattern import Pattern
from tidemark.partitions.state_machines.transactions.transaction import (
    Transaction,
    TransactionState,
)
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages import list_transactions as messages
from tidemark.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tidemark.protocol.types import NO_TIMESTAMP_MS

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_BY_TITLE = {state.title: state for state in TransactionState}


def handle(
    node: Node, request: ListTransactionsRequest, context: RequestContext
) -> ListTransactionsResponse:
    del context
    try:
        pattern = None
        if request.transactional_id_pattern:
            pattern = Pattern(request.transactional_id_pattern)
        found = node.transactions.list_ids()
    except RequestError as error:
        return ListTransactionsResponse(error_code=error.code)
    now_ms = node.clock.now_ms()
    return ListTransactionsResponse(
        unknown_state_filters=[each for each in request.state_filters if each not in _BY_TITLE],
        transaction_states=[
            messages.TransactionState(
                transactional_id=name,
                producer_id=value.producer_id,
                transaction_state=value.state.title,
            )
            for name, value in found
            if _is_asked_for(request, value, now_ms) and (pattern is None or pattern.matches(name))
        ],
    )


def _is_asked_for(request: ListTransactionsRequest, value: Transaction, now_ms: int) -> bool:
    if request.state_filters and value.state.title not in request.state_filters:
        return False
    if request.producer_id_filters and value.producer_id not in request.producer_id_filters:
        return False
    if request.duration_filter < 0:
        return True
    is_open = value.started_ms != NO_TIMESTAMP_MS
    return is_open and now_ms - value.started_ms > request.duration_filter
