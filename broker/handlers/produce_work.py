"""Produce requests that were decoded: their batches appended, and who waits until that counts.

Requests that came together are taken together, and not one after the other but *partition by
partition*: the batches that they have for one are a run, with one write, one visit of the replica
and its group, one record for the journal and one row to the followers. To a partition its batches
come in the requests' order, and no two partitions have anything to do with each other. A batch that
is not simply new is taken by itself, in its turn, and what is wrong with it is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from tidemark.broker.handlers.produce_answers import (
    made_partition_response,
    made_response,
    made_topic_response,
    refusal,
    with_leaders,
)
from tidemark.broker.handlers.topic_ids import unknown
from tidemark.broker.metrics import BadInput
from tidemark.broker.network.requests import Pending, Session
from tidemark.broker.replicas.admission import check_not_the_brokers_own
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.produce import (
    NAMES_UNTIL,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
)
from tidemark.protocol.types import BytesLike, Offset
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.network.timers import Timer
    from tidemark.broker.node import Node

R = TypeVar("R")

ACKS_ALL: Final = -1
RUN_BYTES_MAX: Final = 100 * 1024
"""So many bytes of batches for one partition are written together: less than what the journal
takes in (`JOURNALED_BYTES_MAX`), and no more than fits in a processor's own cache."""

_COUNTED_AS: Final = {
    ErrorCode.CORRUPT_MESSAGE: BadInput.CORRUPT_BATCH,
    ErrorCode.INVALID_RECORD: BadInput.UNSUPPORTED_BATCH,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: BadInput.UNSUPPORTED_BATCH,
    ErrorCode.MESSAGE_TOO_LARGE: BadInput.RECORDS_TOO_LARGE,
}


class _Batch(NamedTuple):
    """What a request has for a partition, and where its answer belongs."""

    answers: list[PartitionProduceResponse]
    """Of its topic in its request."""
    at: int
    records: BytesLike | None


@dataclass(slots=True)
class Uncommitted:
    """Batches in the log, whose answers are true as they stand once all of them are committed."""

    replica: Replica
    index: int
    end_offset: Offset
    batches: Sequence[_Batch]
    is_settled: bool = False
    """Whether it is known what became of them."""

    def refuse(self, error: RequestError, api_version: int) -> None:
        answer = refusal(self.index, error, api_version)
        for answers, at, _ in self.batches:
            answers[at] = answer


class Work:
    """The batches of requests that came together, with the same acks. This is the hot path: it
    makes little."""

    __slots__ = ("_acks", "_api_version", "_node", "_refusal", "failure", "uncommitted")

    def __init__(
        self, node: Node, *, acks: int, api_version: int, refusal: RequestError | None = None
    ) -> None:
        """`refusal`: why nothing of it is appended."""
        self._node = node
        self._acks = acks
        self._api_version = api_version
        self._refusal = refusal
        self.failure: RequestError | None = None
        self.uncommitted: list[Uncommitted] = []

    def append(self, requests: Sequence[ProduceRequest]) -> list[ProduceResponse]:
        """Append what they have; their answers, if what is uncommitted becomes committed."""
        by_partition: dict[tuple[str, int], list[_Batch]] = {}
        responses: list[ProduceResponse] = []
        for request in requests:
            topics = []
            for topic in request.topic_data:
                name, answers = topic.name, [_NO_ANSWER] * len(topic.partition_data)
                for at, data in enumerate(topic.partition_data):
                    batch = _batch((answers, at, data.records))
                    by_partition.setdefault((name, data.index), []).append(batch)
                topics.append(
                    made_topic_response(
                        name=name, topic_id=topic.topic_id, partition_responses=answers
                    )
                )
            responses.append(made_response(responses=topics))
        for (name, index), batches in by_partition.items():
            self._append_to(name, index, batches)
        return responses

    def _append_to(self, name: str, index: int, batches: Sequence[_Batch]) -> None:
        try:
            replica = self._replica(name, index)
        except RequestError as error:
            for batch in batches:
                self._refuse(index, batch, error)
            return
        while batches:
            done = 0
            if len(batches) > 1:
                done = self._append_run(replica, index, batches)
            if done == 0:
                self._append_one(replica, index, batches[0])
            batches = batches[done or 1 :]

    def _replica(self, name: str, index: int) -> Replica:
        """Raises `RequestError` where nothing may be appended."""
        if self._refusal is not None:
            raise self._refusal
        if not name:
            raise RequestError(unknown(name, by_id=self._api_version > NAMES_UNTIL))
        check_not_the_brokers_own(name)
        replica = self._node.topics.replica(name, index)
        if replica is None:
            raise self._node.topics.why_not_here(name, index)
        return replica

    def _append_run(self, replica: Replica, index: int, batches: Sequence[_Batch]) -> int:
        """Append the first of these in one write, as many as are simply new; how many."""
        if self._acks == ACKS_ALL and not replica.is_in_sync:
            return 0
        fitting = _fitting(batches)
        if not fitting:
            return 0
        now_ms = self._node.clock.now_ms()
        run = replica.produce_run(fitting, self._api_version, now_ms, must_commit=False)
        if run is None:
            return 0
        base_offsets, end_offset, append_time_ms, log_start, _, error = run
        done = len(base_offsets)
        appended = batches[:done]
        if error is not None:
            for batch in appended:
                self._refuse(index, batch, error)
            return done
        for (answers, at, _), base_offset in zip(appended, base_offsets, strict=True):
            answers[at] = made_partition_response(
                index=index,
                base_offset=base_offset,
                log_append_time_ms=append_time_ms,
                log_start_offset=log_start,
            )
        self._note_uncommitted(replica, index, end_offset, appended)
        return done

    def _append_one(self, replica: Replica, index: int, batch: _Batch) -> None:
        try:
            if self._acks == ACKS_ALL:
                replica.check_in_sync()
            base_offset, end_offset, append_time_ms = replica.produce(
                batch.records, api_version=self._api_version
            )
        except RequestError as error:
            replica.refused(batch.records, error)
            self._refuse(index, batch, error)
            return
        answers, at, _ = batch
        answers[at] = _answer(index, base_offset, append_time_ms, replica.log_start)
        self._note_uncommitted(replica, index, end_offset, (batch,))

    def _note_uncommitted(
        self, replica: Replica, index: int, end_offset: Offset, batches: Sequence[_Batch]
    ) -> None:
        if self._acks == ACKS_ALL and not replica.is_acknowledged(end_offset):
            self.uncommitted.append(Uncommitted(replica, index, end_offset, batches))

    def _refuse(self, index: int, batch: _Batch, error: RequestError) -> None:
        self.failure = error
        batch.answers[batch.at] = refusal(index, error, self._api_version)
        if error.code in _COUNTED_AS:
            self._node.metrics.bad_input[_COUNTED_AS[error.code]].inc()


class CommitWait(Generic[R]):
    """Requests with acks=-1 until all their partitions are committed, or their time is over.

    They came together, and are made durable and sent to followers together: so they are answered
    together, with what `finish` makes of their responses.
    """

    def __init__(
        self,
        node: Node,
        session: Session,
        *,
        api_version: int,
        timeout_ms: int,
        responses: Sequence[ProduceResponse],
        uncommitted: Sequence[Uncommitted],
        finish: Callable[[Sequence[ProduceResponse]], R],
    ) -> None:
        self.pending: Pending[R] = Pending()
        self._node = node
        self._session = session
        self._api_version = api_version
        self._responses = responses
        self._uncommitted = uncommitted
        self._finish = finish
        self._left = len(uncommitted)
        self._has_refused = False
        self._timer: Timer = node.timers.after(max(timeout_ms, 0) / 1000, self._time_out)
        self.pending.on_abandon(self._timer.cancel)
        for each in uncommitted:
            each.replica.when_acknowledged(each.end_offset, partial(self._settled, each))

    def _settled(self, settled: Uncommitted, error: RequestError | None) -> None:
        settled.is_settled = True
        if error is not None:
            self._refuse(settled, error)
        self._left -= 1
        if self._left == 0 and not self.pending.is_complete:
            self._timer.cancel()
            self._answer()

    def _time_out(self) -> None:
        """Answer now. The batches are in the log and may still be committed."""
        for each in self._uncommitted:
            if not each.is_settled:
                self._refuse(each, RequestError(ErrorCode.REQUEST_TIMED_OUT))
        self._answer()

    def _refuse(self, uncommitted: Uncommitted, error: RequestError) -> None:
        self._has_refused = True
        uncommitted.refuse(error, self._api_version)

    def _answer(self) -> None:
        responses = self._responses
        if self._has_refused:
            node, session = self._node, self._session
            responses = [with_leaders(node, response, session) for response in responses]
        self.pending.complete(self._finish(responses))


def _answer(
    index: int, base_offset: Offset, append_time_ms: int, log_start: Offset
) -> PartitionProduceResponse:
    return made_partition_response(
        index=index,
        base_offset=base_offset,
        log_append_time_ms=append_time_ms,
        log_start_offset=log_start,
    )


def _fitting(batches: Sequence[_Batch]) -> list[memoryview]:
    """The first of these, as many as may be written together; none if that is not more than one."""
    found: list[memoryview] = []
    bytes_left = RUN_BYTES_MAX
    for _, _, records in batches:
        if not isinstance(records, memoryview) or len(records) > bytes_left:
            break
        bytes_left -= len(records)
        found.append(records)
    return found if len(found) > 1 else []


# Made for every batch: calling the class takes twice the time.
_batch: Final = partial(tuple.__new__, _Batch)
_NO_ANSWER: Final = PartitionProduceResponse(index=-1, base_offset=Offset(-1))
