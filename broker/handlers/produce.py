"""Produce: append, then answer when the client's `acks` says.

With acks=1 that is at once, with acks=-1 when all of it is committed, with acks=0 never: a client
that wants no answer learns of an error by losing its connection, as from Kafka (P3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidemark.broker.admission import InvalidRecords, check_not_the_brokers_own
from tidemark.broker.metrics import BadInput
from tidemark.broker.replica import Appended, Replica
from tidemark.broker.requests import Pending, RequestContext, Unanswerable
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tidemark.protocol.types import NO_OFFSET

if TYPE_CHECKING:
    from tidemark.broker.node import Node
    from tidemark.broker.timers import Timer

ACKS_NONE: Final = 0
ACKS_ALL: Final = -1
_ACKS: Final = frozenset({ACKS_ALL, ACKS_NONE, 1})
_COUNTED_AS: Final = {
    ErrorCode.CORRUPT_MESSAGE: BadInput.CORRUPT_BATCH,
    ErrorCode.INVALID_RECORD: BadInput.UNSUPPORTED_BATCH,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: BadInput.UNSUPPORTED_BATCH,
    ErrorCode.MESSAGE_TOO_LARGE: BadInput.RECORDS_TOO_LARGE,
}


@dataclass(slots=True)
class _Outcome:
    """What became of one partition's batch, so far."""

    index: int
    replica: Replica | None = None
    appended: Appended | None = None
    error: RequestError | None = None


_Topics = list[tuple[str, list[_Outcome]]]


def handle(
    node: Node, request: ProduceRequest, context: RequestContext
) -> ProduceResponse | Pending[ProduceResponse] | None:
    topics = [
        (
            topic.name,
            [
                _append(node, topic.name, partition, request, context.api_version)
                for partition in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    if request.acks == ACKS_NONE:
        _close_on_error(topics)
        return None
    if request.acks == ACKS_ALL:
        uncommitted = [outcome for outcome in _outcomes(topics) if not _is_settled(outcome)]
        if uncommitted:
            return _CommitWait(node, topics, uncommitted, request.timeout_ms).pending
    return _response(topics)


def _append(
    node: Node, topic: str, data: PartitionProduceData, request: ProduceRequest, api_version: int
) -> _Outcome:
    outcome = _Outcome(data.index)
    try:
        _check_request(request)
        check_not_the_brokers_own(topic)
        replica = node.topics.replica(topic, data.index)
        if replica is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        outcome.replica = replica
        outcome.appended = replica.produce(data.records, api_version=api_version)
    except RequestError as error:
        outcome.error = error
        if error.code in _COUNTED_AS:
            node.metrics.bad_input[_COUNTED_AS[error.code]].inc()
    return outcome


def _check_request(request: ProduceRequest) -> None:
    if request.acks not in _ACKS:
        raise RequestError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, not -1, 0 or 1"
        )
    if request.transactional_id is not None:
        raise RequestError(
            ErrorCode.INVALID_TXN_STATE,
            f"{request.transactional_id} has no transaction: this broker has none yet",
        )


def _outcomes(topics: _Topics) -> Iterable[_Outcome]:
    return (outcome for _, outcomes in topics for outcome in outcomes)


def _is_settled(outcome: _Outcome) -> bool:
    if outcome.appended is None or outcome.replica is None:
        return True
    return outcome.appended.end_offset <= outcome.replica.high_watermark


def _close_on_error(topics: _Topics) -> None:
    for outcome in _outcomes(topics):
        if outcome.error is not None:
            raise Unanswerable(f"a request with acks=0 failed: {outcome.error}")


class _CommitWait:
    """A request with acks=-1 until all its partitions are committed, or its time is over."""

    def __init__(
        self, node: Node, topics: _Topics, uncommitted: list[_Outcome], timeout_ms: int
    ) -> None:
        self.pending: Pending[ProduceResponse] = Pending()
        self._topics = topics
        self._left = len(uncommitted)
        self._timer: Timer = node.timers.after(max(timeout_ms, 0) / 1000, self._time_out)
        self._uncommitted = uncommitted
        self.pending.on_abandon(self._timer.cancel)
        for outcome in uncommitted:
            assert outcome.replica is not None
            assert outcome.appended is not None
            outcome.replica.when_committed(
                outcome.appended.end_offset,
                lambda error, outcome=outcome: self._committed(outcome, error),  # type: ignore[misc]  # a default argument binds it
            )

    def _committed(self, outcome: _Outcome, error: RequestError | None) -> None:
        outcome.error = error
        self._left -= 1
        if self._left == 0 and not self.pending.is_complete:
            self._timer.cancel()
            self.pending.complete(_response(self._topics))

    def _time_out(self) -> None:
        """Answer now. The batches are in the log and may still be committed."""
        for outcome in self._uncommitted:
            if not _is_settled(outcome) and outcome.error is None:
                outcome.error = RequestError(ErrorCode.REQUEST_TIMED_OUT)
        self.pending.complete(_response(self._topics))


def _response(topics: _Topics) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=name, partition_responses=[_partition(outcome) for outcome in outcomes]
            )
            for name, outcomes in topics
        ]
    )


def _partition(outcome: _Outcome) -> PartitionProduceResponse:
    error, appended = outcome.error, outcome.appended
    if error is not None or appended is None:
        assert error is not None
        return _refusal(outcome.index, error)
    replica = outcome.replica
    assert replica is not None
    return PartitionProduceResponse(
        index=outcome.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.append_time_ms,
        # Its topic may have been deleted while the request waited for other partitions.
        log_start_offset=replica.log_start if replica.is_available else NO_OFFSET,
    )


def _refusal(index: int, error: RequestError) -> PartitionProduceResponse:
    indexes = error.record_indexes if isinstance(error, InvalidRecords) else []
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=NO_OFFSET,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=error.message)
            for at in indexes
        ],
        error_message=error.message,
    )
