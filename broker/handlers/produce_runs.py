"""Produce requests that came together and are alike: those for one partition are one append.

A client with several requests in flight sends them in a burst. Those of a burst that follow each
other and differ in nothing but their batches (`protocol.one_batch`) are checked one by one, then
appended in one write, made durable and sent to followers as one run, and answered together. The run
ends before the first batch of which there is more to say than that it is new: that one is taken by
itself, in its turn. A write that fails refuses all that was in it.

Runs of several partitions follow each other in one visit, with one answer to the connection, as
long as none has to be waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tidemark.broker.handlers.produce_answers import (
    made_response,
    made_topic_response,
    refusal,
    with_leaders,
)
from tidemark.broker.handlers.produce_work import ACKS_ALL, RUN_BYTES_MAX
from tidemark.broker.network.requests import Pending, Session
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.one_batch import OneBatch, Run, correlation_ids
from tidemark.protocol.types import Offset

if TYPE_CHECKING:
    from tidemark.broker.network.send_queue import Part
    from tidemark.broker.node import Node
    from tidemark.protocol.frames import ApiCodec


def answer_runs(
    node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
) -> tuple[int, list[Part] | Pending[list[Part]]] | None:
    """As `FrameHandler.answer`."""
    known = session.one_batches
    if known is None or known.codec is not codec:
        return None
    # What need not be waited for is done in one visit and answered in one piece, whichever
    # partitions it is for.
    count, now_ms = 0, node.clock.now_ms()
    parts: list[Part] = []
    while count < len(frames):
        found = known.find(frames[count:] if count else frames, bytes_max=RUN_BYTES_MAX)
        if found is None:
            break
        alike, runs = found
        topic = alike.topic or _name_of(alike, node)
        for run in runs:
            answered = _answer_run(
                node, session, codec, alike, topic, run, now_ms, is_first=not count
            )
            if answered is None:
                return _together(count, parts)
            if isinstance(answered[1], Pending):
                assert not count, "a run that has to be waited for"
                return answered
            count += answered[0]
            parts += answered[1]
            if answered[0] < len(run[1]):
                return _together(count, parts)
    return _together(count, parts)


def _together(count: int, parts: list[Part]) -> tuple[int, list[Part]] | None:
    return (count, [b"".join(parts)]) if count else None  # type: ignore[arg-type]  # there are no records in it


def _answer_run(
    node: Node,
    session: Session,
    codec: ApiCodec,
    alike: OneBatch,
    topic: str,
    run: Run,
    now_ms: int,
    *,
    is_first: bool,
) -> tuple[int, list[Part] | Pending[list[Part]]] | None:
    """As `FrameHandler.answer`, of those for one partition; `is_first`: also if they have to be
    waited for."""
    partition, own_ids, batches = run
    replica = node.topics.replica(topic, partition)
    if replica is None:
        return None
    is_for_all = alike.acks == ACKS_ALL
    # Hardly any topic wants more replicas than one; those that do are asked.
    wants_more = is_for_all and replica.config.min_insync_replicas != 1
    if wants_more and not replica.is_in_sync:
        return None  # Decoded, it will be refused with what is wrong.
    must_commit = is_for_all and not is_first
    if must_commit and wants_more:
        return None
    appended = replica.produce_run(batches, codec.version, now_ms, must_commit=must_commit)
    if appended is None:
        return None
    base_offsets, end_offset, append_time_ms, log_start, is_committed, error = appended
    count = len(base_offsets)
    answers = alike.answers(partition, own_ids, base_offsets, append_time_ms, log_start)
    if error is None and (
        not is_for_all or (is_committed and (not wants_more or replica.is_acknowledged(end_offset)))
    ):
        return count, [answers]
    asked = _Run(node, session, codec, alike, partition, answers, count)
    if error is not None:
        return count, asked.refused(error)
    return count, _RunWait(asked, replica, end_offset).pending


def _name_of(alike: OneBatch, node: Node) -> str:
    """The topic's name, where requests go by ids; empty if this way is not for it."""
    topic = node.topics.by_id(alike.topic_id)
    return "" if topic is None or topic.name in INTERNAL_TOPICS else topic.name


class _Run(NamedTuple):
    """Requests of one run, and their answers if all is well."""

    node: Node
    session: Session
    codec: ApiCodec
    alike: OneBatch
    partition: int
    answers: bytes
    request_count: int

    def refused(self, error: RequestError) -> list[Part]:
        """The same answers, with an error in each."""
        answer = refusal(self.partition, error, self.codec.version)
        topic = made_topic_response(
            name=self.alike.topic, topic_id=self.alike.topic_id, partition_responses=[answer]
        )
        response = made_response(responses=[topic])
        response = with_leaders(self.node, response, self.session)
        parts: list[Part] = []
        for correlation_id in correlation_ids(self.answers, self.request_count):
            parts += self.codec.encode_response(response, correlation_id)  # type: ignore[arg-type]  # there are no records in it
        return parts


class _RunWait:
    """The requests of a run with acks=-1, until all of them are committed, or their time is over.

    They came together, and are appended, made durable and sent to followers as one: so they are
    answered as one.
    """

    __slots__ = ("_asked", "_timer", "pending")

    def __init__(self, asked: _Run, replica: Replica, end_offset: Offset) -> None:
        self.pending: Pending[list[Part]] = Pending()
        self._asked = asked
        timeout_seconds = max(asked.alike.timeout_ms, 0) / 1000
        self._timer = asked.node.timers.after(timeout_seconds, self._time_out)
        self.pending.on_abandon(self._timer.cancel)
        replica.when_acknowledged(end_offset, self._settled)

    def _settled(self, error: RequestError | None) -> None:
        if not self.pending.is_complete:
            self._timer.cancel()
            asked = self._asked
            self.pending.complete([asked.answers] if error is None else asked.refused(error))

    def _time_out(self) -> None:
        """Answer now. The batches are in the log and may still be committed."""
        self._settled(RequestError(ErrorCode.REQUEST_TIMED_OUT))
