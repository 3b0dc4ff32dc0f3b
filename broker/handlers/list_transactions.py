"""ListTransactions: the transactional ids that this broker coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

_TITLES: Final = frozenset(state.title for state in TransactionState)
_TITLES_OF_KAFKA: Final = _TITLES | {"Dead", "PrepareEpochFence"}
"""Kafka's have two more, which nothing is in for longer than a moment."""


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
    # There may be thousands of both.
    states, producers = frozenset(request.state_filters), frozenset(request.producer_id_filters)
    return ListTransactionsResponse(
        unknown_state_filters=sorted(states - _TITLES_OF_KAFKA),
        transaction_states=[
            messages.TransactionState(
                transactional_id=name,
                producer_id=value.producer_id,
                transaction_state=value.state.title,
            )
            for name, value in found
            if (not states or value.state.title in states)
            and (not producers or value.producer_id in producers)
            and _has_lasted(value, request.duration_filter, now_ms)
            and (pattern is None or pattern.matches(name))
        ],
    )


def _has_lasted(value: Transaction, longer_than_ms: int, now_ms: int) -> bool:
    if longer_than_ms < 0:
        return True
    return value.started_ms != NO_TIMESTAMP_MS and now_ms - value.started_ms > longer_than_ms
