"""Produce: append, then answer when the client's `acks` says.

With acks=1 that is at once, with acks=-1 when all of it is committed, with acks=0 never: a client
that wants no answer learns of an error by losing its connection, as from Kafka (P3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.produce_answers import with_leaders
from tidemark.broker.handlers.produce_bursts import answer_burst, elements_of_like, line_of
from tidemark.broker.handlers.produce_runs import answer_runs
from tidemark.broker.handlers.produce_work import ACKS_ALL, CommitWait, Work
from tidemark.broker.handlers.topic_ids import named
from tidemark.broker.network.requests import (
    FrameHandler,
    NotNow,
    Pending,
    RequestContext,
    Session,
    Unanswerable,
)
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.produce import ProduceRequest, ProduceResponse
from tidemark.protocol.one_batch import OneBatches

if TYPE_CHECKING:
    from tidemark.broker.network.send_queue import Part
    from tidemark.broker.node import Node
    from tidemark.protocol.frames import ApiCodec

ACKS_NONE: Final = 0
_ACKS: Final = frozenset({ACKS_ALL, ACKS_NONE, 1})


class ProduceHandler(FrameHandler):
    """The handler. A request with one batch is decoded only if it is not like an earlier one."""

    def __call__(
        self, node: Node, request: ProduceRequest, context: RequestContext
    ) -> ProduceResponse | Pending[ProduceResponse] | None:
        request = named(node.topics, request, context.api_version)
        work = Work(
            node,
            acks=request.acks,
            api_version=context.api_version,
            refusal=_refusal_of(request),
        )
        _check_not_held(node, request, context.session)
        if request.transactional_id is not None:
            node.verifier.check_known(request, context.api_version)
        responses = work.append([request])
        if request.acks == ACKS_NONE:
            if work.failure is not None:
                raise Unanswerable(f"a request with acks=0 failed: {work.failure}")
            return None
        if work.uncommitted:
            wait = CommitWait(
                node,
                context.session,
                api_version=context.api_version,
                timeout_ms=request.timeout_ms,
                responses=responses,
                uncommitted=work.uncommitted,
                finish=_only,
            )
            return wait.pending
        if work.failure is not None:
            return with_leaders(node, responses[0], context.session)
        return responses[0]

    def answer(
        self, node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
    ) -> tuple[int, list[Part] | Pending[list[Part]]] | None:
        return answer_runs(node, frames, session, codec) or answer_burst(
            node, frames, session, codec
        )

    def decoded(
        self, frame: memoryview, request: ProduceRequest, session: Session, codec: ApiCodec
    ) -> None:
        session.gathers = elements_of_like(frame, request)
        batches = session.one_batches
        if batches is None or batches.codec is not codec:
            batches = session.one_batches = OneBatches(codec)
        # What is refused for more than its batch is not to be known: the next one is, too.
        is_refused = request.acks not in _ACKS
        if not is_refused and all(
            topic.name not in INTERNAL_TOPICS for topic in request.topic_data
        ):
            batches.remember(frame, request)


handle: Final = ProduceHandler()


def _check_not_held(node: Node, request: ProduceRequest, session: Session) -> None:
    """Raises `NotNow`, before anything is appended, if writes to one of the partitions are held."""
    if not session.may_be_held:
        session.may_be_held = True
        return
    line = line_of(node, request)
    if line is not None:
        raise NotNow(line)


def _refusal_of(request: ProduceRequest) -> RequestError | None:
    """Why nothing of the request is appended; `None` if it is well."""
    if request.acks not in _ACKS:
        return RequestError(
            ErrorCode.INVALID_REQUIRED_ACKS, f"acks is {request.acks}, not -1, 0 or 1"
        )
    return None


def _only(responses: Sequence[ProduceResponse]) -> ProduceResponse:
    return responses[0]
