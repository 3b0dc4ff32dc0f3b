"""A transaction as a record of `__transaction_state`, and back."""

from itertools import groupby
from typing import Final

from tidemark.partitions.state_machines.transactions.transaction import (
    Transaction,
    TransactionState,
)
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages import stored, transaction_state
from tidemark.protocol.messages.transaction_state import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from tidemark.protocol.types import ProducerId, TopicPartition

_KEY_VERSION: Final = 0
_VALUE_VERSION: Final = 1
_BUMPS_EPOCH: Final = 2
"""The version of the transaction protocol that raises the epoch at each end."""


def encode_record(transactional_id: str, value: Transaction | None) -> tuple[bytes, bytes | None]:
    """Key and value as Kafka writes them; the value of a tombstone is None."""
    key = stored.encode_record(TransactionLogKey(transactional_id=transactional_id), _KEY_VERSION)
    if value is None:
        return key, None
    return key, stored.encode_record(_to_log(value), _VALUE_VERSION)


def decode_record(key: bytes, value: bytes | None) -> tuple[str, Transaction | None] | None:
    """What a record says of which id; None if it is of a kind that is not known here.

    Raises `MalformedMessage` if it is not what a coordinator wrote.
    """
    decoded = transaction_state.decode_key(key)
    if decoded is None:
        return None
    if value is None:
        return decoded.transactional_id, None
    return decoded.transactional_id, _from_log(stored.decode_value(TransactionLogValue, value))


def _to_log(value: Transaction) -> TransactionLogValue:
    by_topic = groupby(sorted(value.partitions), key=lambda partition: partition.topic)
    return TransactionLogValue(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.epoch,
        transaction_timeout_ms=value.timeout_ms,
        transaction_status=value.state,
        transaction_partitions=tuple(
            PartitionsSchema(topic=topic, partition_ids=tuple(one.partition for one in partitions))
            for topic, partitions in by_topic
        ),
        transaction_last_update_timestamp_ms=value.updated_ms,
        transaction_start_timestamp_ms=value.started_ms,
        client_transaction_version=_BUMPS_EPOCH if value.bumps_epoch else 0,
    )


def _from_log(value: TransactionLogValue) -> Transaction:
    try:
        state = TransactionState(value.transaction_status)
    except ValueError:
        raise MalformedMessage(
            f"a transaction in a state that is not known: {value.transaction_status}"
        ) from None
    return Transaction(
        producer_id=ProducerId(value.producer_id),
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=ProducerId(value.previous_producer_id),
        next_producer_id=ProducerId(value.next_producer_id),
        bumps_epoch=value.client_transaction_version >= _BUMPS_EPOCH,
    )
