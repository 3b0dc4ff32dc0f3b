"""The changes of a transaction: each takes a value, and gives the one that follows."""

from dataclasses import replace

from tidemark.partitions.state_machines.transactions.transaction import (
    EPOCH_MAX,
    Transaction,
    TransactionState,
)
from tidemark.protocol.types import NO_PRODUCER, NO_TIMESTAMP_MS, ProducerId, TopicPartition


def taken_over(
    old: Transaction, *, timeout_ms: int, wall_ms: int, fresh_id: ProducerId | None
) -> Transaction:
    """A producer's new session on an id with nothing open: the next epoch, or a new producer id."""
    new = replace(
        old,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        started_ms=NO_TIMESTAMP_MS,
        updated_ms=wall_ms,
        previous_producer_id=NO_PRODUCER,
    )
    if not old.is_exhausted:
        return replace(new, epoch=old.epoch + 1)
    assert fresh_id is not None
    return replace(new, producer_id=fresh_id, epoch=0, previous_producer_id=old.producer_id)


def extended(
    old: Transaction, partitions: frozenset[TopicPartition], *, wall_ms: int, bumps_epoch: bool
) -> Transaction:
    """With more partitions; the first ones begin the transaction."""
    begins = old.state is not TransactionState.ONGOING
    return replace(
        old,
        state=TransactionState.ONGOING,
        partitions=partitions if begins else old.partitions | partitions,
        started_ms=wall_ms if begins else old.started_ms,
        updated_ms=wall_ms,
        bumps_epoch=bumps_epoch,
    )


def prepared(
    old: Transaction,
    *,
    is_commit: bool,
    raises_epoch: bool,
    bumps_epoch: bool,
    wall_ms: int,
    fresh_id: ProducerId | None = None,
) -> Transaction:
    """Decided. Where the epoch is raised, nothing that the producer sent before counts any more.

    Where the epochs run out by that, `fresh_id` is what its client goes on with.
    """
    assert old.epoch < EPOCH_MAX or not raises_epoch
    return replace(
        old,
        epoch=old.epoch + raises_epoch,
        state=TransactionState.PREPARE_COMMIT if is_commit else TransactionState.PREPARE_ABORT,
        updated_ms=wall_ms,
        next_producer_id=NO_PRODUCER if fresh_id is None else fresh_id,
        bumps_epoch=bumps_epoch,
    )


def completed(old: Transaction, *, wall_ms: int) -> Transaction:
    """All partitions have their marker."""
    is_commit = old.state.is_commit
    new = replace(
        old,
        state=TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
        partitions=frozenset(),
        started_ms=NO_TIMESTAMP_MS,
        updated_ms=wall_ms,
        next_producer_id=NO_PRODUCER,
    )
    if old.next_producer_id == NO_PRODUCER:
        return new
    return renewed(new, wall_ms=wall_ms, fresh_id=old.next_producer_id)


def renewed(old: Transaction, *, wall_ms: int, fresh_id: ProducerId) -> Transaction:
    """Over, as it was; its producer goes on with a producer id that nobody has had."""
    return replace(
        old,
        producer_id=fresh_id,
        epoch=0,
        updated_ms=wall_ms,
        previous_producer_id=old.producer_id,
    )
