"""What this broker knows of a transaction that it coordinates, for the leaders of partitions here.

They would ask it as they ask others, in a request and a task, and their clients would wait for
that; but whether a partition is in a transaction it can say at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from tidemark.broker.replicas.verifying import AtOnce, Errors, Transactional, not_in
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.transactions.coordinator import TransactionCoordinator


def by_own(transactions: TransactionCoordinator) -> AtOnce:
    """Says what this broker's coordinator does; nothing of what another broker coordinates, nor of
    an id that is busy, about which it will be asked again."""

    def at_once(who: Transactional, places: Collection[TopicPartition]) -> Errors | None:
        # A broker starts without what only transactions need.
        from tidemark.partitions.state_machines.transactions.requests import Verify

        try:
            answer = transactions.verify(
                Verify(
                    transactional_id=who.transactional_id,
                    producer_id=who.producer_id,
                    epoch=who.epoch,
                    partitions=frozenset(places),
                )
            )
        except RequestError:
            return None
        if answer.error is ErrorCode.CONCURRENT_TRANSACTIONS:
            return None
        if answer.error is not ErrorCode.NONE:
            return dict.fromkeys(places, RequestError(answer.error))
        return {
            place: not_in(place, who.transactional_id) if place in answer.missing else None
            for place in places
        }

    return at_once
