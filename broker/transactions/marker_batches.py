"""Markers for partitions of one broker as one request, and its answer as what became of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TypeAlias

from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidemark.protocol.types import Epoch, ProducerId, TopicPartition

if TYPE_CHECKING:
    from tidemark.partitions.state_machines.transactions.effects import Markers

_BUMPS_EPOCH: Final = 2
"""The version of the transaction protocol that raises the epoch at each end."""

Ending: TypeAlias = "tuple[Markers, Epoch]"
"""A transaction that ends, and the epoch of its coordinator."""


def request_of(
    owed: Iterable[tuple[Ending, Iterable[TopicPartition]]],
) -> WriteTxnMarkersRequest:
    """Markers of each of these ends for these partitions; of one producer there is one end."""
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=markers.producer_id,
                producer_epoch=markers.epoch,
                transaction_result=markers.is_commit,
                topics=_by_topic(partitions),
                coordinator_epoch=epoch,
                transaction_version=_BUMPS_EPOCH if markers.bumps_epoch else 0,
            )
            for (markers, epoch), partitions in owed
        ]
    )


def outcomes_of(
    response: WriteTxnMarkersResponse,
) -> dict[tuple[ProducerId, TopicPartition], ErrorCode]:
    """By producer and partition; what is not named was not written."""
    return {
        (
            ProducerId(marker.producer_id),
            TopicPartition(topic.name, partition.partition_index),
        ): ErrorCode(partition.error_code)
        for marker in response.markers
        for topic in marker.topics
        for partition in topic.partitions
    }


def _by_topic(partitions: Iterable[TopicPartition]) -> list[WritableTxnMarkerTopic]:
    by_topic: dict[str, list[int]] = {}
    for partition in partitions:
        by_topic.setdefault(partition.topic, []).append(partition.partition)
    return [
        WritableTxnMarkerTopic(name=topic, partition_indexes=indexes)
        for topic, indexes in by_topic.items()
    ]
