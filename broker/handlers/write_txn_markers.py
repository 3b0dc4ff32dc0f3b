"""WriteTxnMarkers: a coordinator of transactions says how some have ended, to partitions' leaders.

Each partition has its own outcome. A marker is answered once it is committed: the coordinator takes
the transaction to be over when all partitions have theirs, and does not ask again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidemark.protocol.records.control import Marker
from tidemark.protocol.types import Offset, ProducerId, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.groups.coordinator import GroupCoordinator
    from tidemark.broker.node import Node
    from tidemark.broker.replicas.replica import Replica

BUMPS_SINCE = 2
"""The transactions' version from which on each end raises the producer's epoch."""

_AT_ONCE: Final = 100
"""Markers that are begun before others on the loop have their turn: a request may name tens of
thousands of partitions."""

_Outcomes = dict[TopicPartition, ErrorCode]


async def handle(
    node: Node, request: WriteTxnMarkersRequest, context: RequestContext
) -> WriteTxnMarkersResponse:
    del context
    outcomes: list[_Outcomes] = [{} for _ in request.markers]
    writing, places = _Writing(node), 0
    for marker, of_marker in zip(request.markers, outcomes, strict=True):
        for topic in marker.topics:
            for partition in topic.partition_indexes:
                writing.begin(marker, TopicPartition(topic.name, partition), of_marker)
                places += 1
                if places % _AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
    await writing.wait_known()
    steps, markers = Steps(), list[WritableTxnMarkerResult]()
    for marker, of_marker in zip(request.markers, outcomes, strict=True):
        markers.append(_result(marker, of_marker))
        await steps.did(1 + len(of_marker))
    return WriteTxnMarkersResponse(markers=markers)


class _Writing:
    """The markers of one request, until it is known what became of each."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._held: list[Callable[[], Awaitable[None]]] = []
        self._left = 0
        """How many are not known to be committed."""
        self._all_known: trio.Event | None = None

    def begin(self, asked: WritableTxnMarker, place: TopicPartition, outcomes: _Outcomes) -> None:
        outcomes[place] = ErrorCode.NONE
        try:
            replica = self._node.topics.replica_here(place.topic, place.partition)
            if replica.is_holding:
                self._held.append(partial(self._write_later, replica, asked, place, outcomes))
            else:
                self._write(replica, asked, place, outcomes)
        except RequestError as error:
            outcomes[place] = error.code

    async def wait_known(self) -> None:
        if self._held:
            async with trio.open_nursery() as tasks:
                for write_later in self._held:
                    tasks.start_soon(write_later)
        if self._left:
            self._all_known = trio.Event()
            await self._all_known.wait()

    async def _write_later(
        self,
        replica: Replica,
        asked: WritableTxnMarker,
        place: TopicPartition,
        outcomes: _Outcomes,
    ) -> None:
        try:
            await replica.wait_flowing()
            self._write(replica, asked, place, outcomes)
        except RequestError as error:
            outcomes[place] = error.code

    def _write(
        self,
        replica: Replica,
        asked: WritableTxnMarker,
        place: TopicPartition,
        outcomes: _Outcomes,
    ) -> None:
        end_offset = append_marker(self._node.coordinator, replica, asked)
        self._left += 1
        replica.when_committed(end_offset, partial(self._known, place, outcomes))

    def _known(
        self, place: TopicPartition, outcomes: _Outcomes, error: RequestError | None
    ) -> None:
        if error is not None:
            outcomes[place] = error.code
        self._left -= 1
        if not self._left and self._all_known is not None:
            self._all_known.set()


def append_marker(
    coordinator: GroupCoordinator, replica: Replica, asked: WritableTxnMarker
) -> Offset:
    """Append it, where it is not there, and have the groups in the partition hear of it in their
    turn. It is for good once all below the offset is committed. Raises `RequestError`."""
    if asked.producer_id < 0:
        raise RequestError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "no producer has that id")
    if asked.producer_epoch < 0:
        raise RequestError(ErrorCode.INVALID_PRODUCER_EPOCH, "no producer has that epoch")
    has_groups = replica.topic == CONSUMER_OFFSETS
    if has_groups:
        coordinator.check_serves(replica.partition)
    end_offset = replica.append_marker(
        ProducerId(asked.producer_id),
        asked.producer_epoch,
        Marker(asked.transaction_result, asked.coordinator_epoch),
        raises_epoch=asked.transaction_version >= BUMPS_SINCE,
    )
    if has_groups:
        told = partial(_tell_groups, coordinator, asked, replica.partition)
        replica.when_committed(end_offset, told)
    return end_offset


def _tell_groups(
    coordinator: GroupCoordinator,
    asked: WritableTxnMarker,
    partition: int,
    error: RequestError | None,
) -> None:
    """In the order of the log: the offsets that it ends are those before it, and no later ones."""
    if error is None:
        coordinator.transaction_over(
            partition, ProducerId(asked.producer_id), is_commit=asked.transaction_result
        )


def _result(asked: WritableTxnMarker, outcomes: _Outcomes) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=asked.producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic.name,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=partition,
                        error_code=outcomes[TopicPartition(topic.name, partition)],
                    )
                    for partition in topic.partition_indexes
                ],
            )
            for topic in asked.topics
        ],
    )
