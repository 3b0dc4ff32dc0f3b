"""Where a broker takes what coordinators and leaders on other brokers ask of it, and its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from tidemark.broker.handlers.add_partitions_to_txn import handle as add_partitions
from tidemark.broker.handlers.write_txn_markers import BUMPS_SINCE, append_marker
from tidemark.broker.network.requests import Pending, RequestContext
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from tidemark.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidemark.testing.simulator.transactions.calls import Call
from tidemark.testing.simulator.transactions.coordinators import Coordinators

if TYPE_CHECKING:
    from tidemark.broker.node import Node
    from tidemark.testing.simulator.process import Process

_OF_BROKERS: Final = 5
"""The AddPartitionsToTxn version that leaders ask coordinators in."""


class BrokerDesk:
    """Of one process."""

    def __init__(self, process: Process, coordinators: Coordinators) -> None:
        self._process = process
        self._coordinators = coordinators
        self._called: set[tuple[Process | None, int]] = set()

    def take(self, call: Call) -> None:
        """By another broker, or this one."""
        if call.is_answer:
            self._coordinators.calls.answered(call)
            if isinstance(call.body, WriteTxnMarkersResponse):
                self._process.moment("transaction over")
        elif isinstance(call.body, WriteTxnMarkersRequest):
            if not self._is_too_late(call, call.body):
                _Writing(self._coordinators, call)
        else:
            assert isinstance(call.body, AddPartitionsToTxnRequest)
            self._add_or_verify(call, call.body)

    def _is_too_late(self, call: Call, request: WriteTxnMarkersRequest) -> bool:
        """Whether a marker may be in it that ends the next transaction of its producer.

        One of a client that does not bump its epoch says nothing that tells the two apart. So it
        is to come once, on a connection that its coordinator has not given up.
        """
        if all(marker.transaction_version >= BUMPS_SINCE for marker in request.markers):
            return False
        caller = call.caller
        is_again = (caller, call.number) in self._called
        self._called.add((caller, call.number))
        assert caller is not None
        assert caller.transactions is not None
        return is_again or not caller.transactions.coordinators.calls.waits_for(call)

    def _add_or_verify(self, call: Call, request: AddPartitionsToTxnRequest) -> None:
        # The handler looks at nothing else of a node, nor of a context, in this version.
        node = cast("Node", self._coordinators)
        context = cast(RequestContext, _Context())
        answer = add_partitions(node, request, context)
        assert isinstance(answer, Pending)

        def deliver(response: AddPartitionsToTxnResponse | None, error: Exception | None) -> None:
            assert response is not None, str(error)
            self._coordinators.calls.answer(call, response)

        answer.deliver_to(deliver)


class _Context:
    api_version = _OF_BROKERS


class _Writing:
    """Markers that a coordinator has asked for, until each is committed or has failed."""

    def __init__(self, coordinators: Coordinators, call: Call) -> None:
        assert isinstance(call.body, WriteTxnMarkersRequest)
        self._coordinators = coordinators
        self._call = call
        self._asked = call.body
        self._outcomes: dict[tuple[int, str, int], ErrorCode] = {}
        self._left = 1
        for at, marker in enumerate(self._asked.markers):
            for topic in marker.topics:
                for partition in topic.partition_indexes:
                    self._left += 1
                    self._write(marker, (at, topic.name, partition))
        self._settled()

    def _write(self, marker: WritableTxnMarker, place: tuple[int, str, int]) -> None:
        _, topic, partition = place
        try:
            replica = self._coordinators.topics.replica_here(topic, partition)
            if replica.is_holding:
                # The broker waits; who asks again waits as well.
                raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            end_offset = append_marker(self._coordinators.groups, replica, marker)
            self._coordinators.process.moment("marker")
        except RequestError as error:
            self._coordinators.process.count(f"markers refused, {error.code.name}")
            self._outcome(place, error)
        else:
            replica.when_committed(end_offset, partial(self._outcome, place))

    def _outcome(self, place: tuple[int, str, int], error: RequestError | None) -> None:
        self._outcomes[place] = ErrorCode.NONE if error is None else error.code
        self._settled()

    def _settled(self) -> None:
        self._left -= 1
        if not self._left:
            results = [self._result(at, each) for at, each in enumerate(self._asked.markers)]
            self._coordinators.calls.answer(self._call, WriteTxnMarkersResponse(markers=results))

    def _result(self, at: int, marker: WritableTxnMarker) -> WritableTxnMarkerResult:
        return WritableTxnMarkerResult(
            producer_id=marker.producer_id,
            topics=[
                WritableTxnMarkerTopicResult(
                    name=topic.name,
                    partitions=[
                        WritableTxnMarkerPartitionResult(
                            partition_index=partition,
                            error_code=self._outcomes[at, topic.name, partition],
                        )
                        for partition in topic.partition_indexes
                    ],
                )
                for topic in marker.topics
            ],
        )
