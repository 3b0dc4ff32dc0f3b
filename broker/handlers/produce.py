"""Produce: append, then answer when the client's `acks` says.

With acks=1 that is at once, with acks=-1 when all of it is committed, with acks=0 never: a client
that wants no answer learns of an error by losing its connection, as from Kafka (P3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.produce_answers import (
    made_partition_response,
    made_response,
    made_topic_response,
    refusal,
    with_leaders,
)
from tidemark.broker.handlers.produce_runs import ACKS_ALL, answer_run
from tidemark.broker.handlers.topic_ids import unknown, with_names
from tidemark.broker.metrics import BadInput
from tidemark.broker.network.requests import (
    FrameHandler,
    NotNow,
    Pending,
    RequestContext,
    Session,
    Unanswerable,
)
from tidemark.broker.replicas.admission import check_not_the_brokers_own
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.produce import (
    NAMES_UNTIL,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tidemark.protocol.one_batch import OneBatches
from tidemark.protocol.types import Offset
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.network.send_queue import Part
    from tidemark.broker.network.timers import Timer
    from tidemark.broker.node import Node
    from tidemark.protocol.frames import ApiCodec

ACKS_NONE: Final = 0
_ACKS: Final = frozenset({ACKS_ALL, ACKS_NONE, 1})
_COUNTED_AS: Final = {
    ErrorCode.CORRUPT_MESSAGE: BadInput.CORRUPT_BATCH,
    ErrorCode.INVALID_RECORD: BadInput.UNSUPPORTED_BATCH,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: BadInput.UNSUPPORTED_BATCH,
    ErrorCode.MESSAGE_TOO_LARGE: BadInput.RECORDS_TOO_LARGE,
}


class ProduceHandler(FrameHandler):
    """The handler. A request with one batch is decoded only if it is not like an earlier one."""

    def __call__(
        self, node: Node, request: ProduceRequest, context: RequestContext
    ) -> ProduceResponse | Pending[ProduceResponse] | None:
        if context.api_version > NAMES_UNTIL:
            request = replace(request, topic_data=with_names(node.topics, request.topic_data))
        _check_not_held(node, request, context.session)
        if request.transactional_id is not None:
            node.verifier.check_known(request, context.api_version)
        work = _Work(node, request, context.api_version)
        response = made_response(responses=[work.append_to(topic) for topic in request.topic_data])
        if request.acks == ACKS_NONE:
            if work.failure is not None:
                raise Unanswerable(f"a request with acks=0 failed: {work.failure}")
            return None
        if work.uncommitted:
            wait = _CommitWait(node, request.timeout_ms, context, response, work.uncommitted)
            return wait.pending
        if work.failure is not None:
            return with_leaders(node, response, context.session)
        return response

    def answer(
        self, node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
    ) -> tuple[int, list[Part] | Pending[list[Part]]] | None:
        return answer_run(node, frames, session, codec)

    def decoded(
        self, frame: memoryview, request: ProduceRequest, session: Session, codec: ApiCodec
    ) -> None:
        batches = session.one_batches
        if batches is None or batches.codec is not codec:
            batches = session.one_batches = OneBatches(codec)
        if all(topic.name not in INTERNAL_TOPICS for topic in request.topic_data):
            batches.remember(frame, request)


handle: Final = ProduceHandler()


def _check_not_held(node: Node, request: ProduceRequest, session: Session) -> None:
    """Raises `NotNow`, before anything is appended, if writes to one of the partitions are held."""
    if not session.may_be_held:
        session.may_be_held = True
        return
    find = node.topics.replica
    for topic in request.topic_data:
        name = topic.name
        for data in topic.partition_data:
            replica = find(name, data.index)
            if replica is not None and replica.is_holding:
                raise NotNow(replica.line)


@dataclass(slots=True)
class _Uncommitted:
    """A batch in the log, whose answer is true as it stands once the batch is committed."""

    replica: Replica
    end_offset: Offset
    answers: list[PartitionProduceResponse]
    at: int
    """Its place among the answers of its topic."""
    is_settled: bool = False
    """Whether it is known what became of it."""

    def refuse(self, error: RequestError, api_version: int) -> None:
        self.answers[self.at] = refusal(self.answers[self.at].index, error, api_version)


class _Work:
    """One request's batches, appended in their order. This is the hot path: it makes little."""

    __slots__ = ("_acks", "_api_version", "_node", "_refusal", "failure", "uncommitted")

    def __init__(self, node: Node, request: ProduceRequest, api_version: int) -> None:
        self._node = node
        self._acks = request.acks
        self._api_version = api_version
        self._refusal = _refusal_of(request)
        self.failure: RequestError | None = None
        self.uncommitted: list[_Uncommitted] = []

    def append_to(self, topic: TopicProduceData) -> TopicProduceResponse:
        name, acks, api_version = topic.name, self._acks, self._api_version
        find = self._node.topics.replica
        answers: list[PartitionProduceResponse] = []
        for data in topic.partition_data:
            index, replica = data.index, None
            try:
                if self._refusal is not None:
                    raise self._refusal
                if not name:
                    raise RequestError(unknown(name, by_id=self._api_version > NAMES_UNTIL))
                check_not_the_brokers_own(name)
                replica = find(name, index)
                if replica is None:
                    raise self._node.topics.why_not_here(name, index)
                if acks == ACKS_ALL:
                    replica.check_in_sync()
                base_offset, end_offset, append_time_ms = replica.produce(
                    data.records, api_version=api_version
                )
            except RequestError as error:
                self._count(error)
                if replica is not None:
                    replica.refused(data.records, error)
                answers.append(refusal(index, error, api_version))
                continue
            if acks == ACKS_ALL and not replica.is_acknowledged(end_offset):
                self.uncommitted.append(_Uncommitted(replica, end_offset, answers, len(answers)))
            answers.append(
                made_partition_response(
                    index=index,
                    base_offset=base_offset,
                    log_append_time_ms=append_time_ms,
                    log_start_offset=replica.log_start,
                )
            )
        return made_topic_response(name=name, topic_id=topic.topic_id, partition_responses=answers)

    def _count(self, error: RequestError) -> None:
        self.failure = error
        if error.code in _COUNTED_AS:
            self._node.metrics.bad_input[_COUNTED_AS[error.code]].inc()


def _refusal_of(request: ProduceRequest) -> RequestError | None:
    """Why nothing of the request is appended; `None` if it is well."""
    if request.acks not in _ACKS:
        return RequestError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, not -1, 0 or 1"
        )
    return None


class _CommitWait:
    """A request with acks=-1 until all its partitions are committed, or its time is over."""

    def __init__(
        self,
        node: Node,
        timeout_ms: int,
        context: RequestContext,
        response: ProduceResponse,
        uncommitted: list[_Uncommitted],
    ) -> None:
        self.pending: Pending[ProduceResponse] = Pending()
        self._node = node
        self._context = context
        self._response = response
        self._uncommitted = uncommitted
        self._left = len(uncommitted)
        self._has_refused = False
        self._timer: Timer = node.timers.after(max(timeout_ms, 0) / 1000, self._time_out)
        self.pending.on_abandon(self._timer.cancel)
        for batch in uncommitted:
            batch.replica.when_acknowledged(batch.end_offset, partial(self._settled, batch))

    def _settled(self, batch: _Uncommitted, error: RequestError | None) -> None:
        batch.is_settled = True
        if error is not None:
            self._refuse(batch, error)
        self._left -= 1
        if self._left == 0 and not self.pending.is_complete:
            self._timer.cancel()
            self._answer()

    def _time_out(self) -> None:
        """Answer now. The batches are in the log and may still be committed."""
        for batch in self._uncommitted:
            if not batch.is_settled:
                self._refuse(batch, RequestError(ErrorCode.REQUEST_TIMED_OUT))
        self._answer()

    def _refuse(self, batch: _Uncommitted, error: RequestError) -> None:
        self._has_refused = True
        batch.refuse(error, self._context.api_version)

    def _answer(self) -> None:
        response = self._response
        if self._has_refused:
            response = with_leaders(self._node, response, self._context.session)
        self.pending.complete(response)
