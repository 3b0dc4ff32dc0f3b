"""Produce requests that came together, with batches for many partitions in each.

A client that writes many partitions, as Java's does, has batches of many in each request, and
several requests in flight. If those are small, what a batch costs is hardly its bytes: it is the
visit of a replica, its group, the journal, the followers' rows. So what a connection with such
requests has received is taken together (`produce_work`), and so that it *is* received together
there is room for several of them (`ReceiveBuffer.gather`). Nothing is waited for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from tidemark.broker.handlers.produce_answers import with_leaders
from tidemark.broker.handlers.produce_work import ACKS_ALL, RUN_BYTES_MAX, CommitWait, Work
from tidemark.broker.handlers.topic_ids import named
from tidemark.broker.network.requests import Line, Pending, Session
from tidemark.protocol.acls import Operation, ResourceType
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.messages.produce import ProduceRequest, ProduceResponse
from tidemark.protocol.records.header import says_transactional

if TYPE_CHECKING:
    from tidemark.broker.network.send_queue import Part
    from tidemark.broker.node import Node
    from tidemark.protocol.frames import ApiCodec

_KEY_AND_VERSION: Final = slice(0, 4)
_BATCH_BYTES_MAX: Final = RUN_BYTES_MAX // 4
"""Larger ones are not worth it: few of them fill a run."""
_ELEMENTS_BESIDES: Final = 64
"""So many topics and partitions more may be in requests like the one that was decoded."""


def elements_of_like(frame: memoryview, request: ProduceRequest) -> int:
    """How many elements to expect in requests like this one; 0 if they are not to be gathered."""
    partitions = sum(len(topic.partition_data) for topic in request.topic_data)
    is_spread = partitions > 1 and len(frame) <= partitions * _BATCH_BYTES_MAX
    if not is_spread or not request.acks or request.transactional_id is not None:
        return 0
    return 2 * (partitions + len(request.topic_data)) + _ELEMENTS_BESIDES


def answer_burst(
    node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
) -> tuple[int, list[Part] | Pending[list[Part]]] | None:
    """As `FrameHandler.answer`."""
    if not session.gathers or len(frames) == 1 or not session.may_be_held:
        return None
    asked = _alike(node, frames, session, codec)
    if len(asked) < 2:
        return None
    first = asked[0][1]
    work = Work(node, acks=first.acks, api_version=codec.version)
    responses: Sequence[ProduceResponse] = work.append([request for _, request in asked])
    finish = partial(_encoded, codec, [correlation_id for correlation_id, _ in asked])
    if work.uncommitted:
        wait = CommitWait(
            node,
            session,
            api_version=codec.version,
            timeout_ms=first.timeout_ms,
            responses=responses,
            uncommitted=work.uncommitted,
            finish=finish,
        )
        return len(asked), wait.pending
    if work.failure is not None:
        responses = [with_leaders(node, response, session) for response in responses]
    return len(asked), finish(responses)


def line_of(node: Node, request: ProduceRequest) -> Line | None:
    """Where the request waits, if writes to one of its partitions are held."""
    return _line_of_others(node, request, set())


def _line_of_others(
    node: Node, request: ProduceRequest, flowing: set[tuple[str, int]]
) -> Line | None:
    """As `line_of`, but for partitions that are `flowing`; those that are not held join them."""
    find = node.topics.replica
    for topic in request.topic_data:
        name = topic.name
        for data in topic.partition_data:
            partition = (name, data.index)
            if partition not in flowing:
                replica = find(name, data.index)
                if replica is not None and replica.is_holding:
                    return replica.line
                flowing.add(partition)
    return None


def _alike(
    node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
) -> list[tuple[int, ProduceRequest]]:
    """The first of these requests that may be taken together, with their correlation ids. What is
    special about the one behind them is found when that comes first."""
    asked: list[tuple[int, ProduceRequest]] = []
    # They are mostly for the same partitions, to which nothing happens in between.
    flowing: set[tuple[str, int]] = set()
    key_and_version = frames[0][_KEY_AND_VERSION]
    for frame in frames:
        if frame[_KEY_AND_VERSION] != key_and_version:
            break
        try:
            correlation_id, _, request = codec.decode_request(frame, session.gathers)
        except MalformedMessage:
            break
        assert isinstance(request, ProduceRequest)
        request = named(node.topics, request, codec.version)
        like = asked[0][1] if asked else request
        if (
            request.transactional_id is not None
            or request.acks not in (ACKS_ALL, 1)
            or (request.acks, request.timeout_ms) != (like.acks, like.timeout_ms)
            or _line_of_others(node, request, flowing) is not None
            or not _is_allowed(node, request, session)
        ):
            break
        asked.append((correlation_id, request))
    return asked


def _is_allowed(node: Node, request: ProduceRequest, session: Session) -> bool:
    """Whether the client may write all its topics, and nothing is of a transaction. Requests of a
    burst pass no gate."""
    may, is_on = node.access.may, node.access.is_on
    return not is_on or all(
        may(session, Operation.WRITE, ResourceType.TOPIC, topic.name)
        and not any(says_transactional(data.records) for data in topic.partition_data)
        for topic in request.topic_data
    )


def _encoded(
    codec: ApiCodec, correlation_ids: Sequence[int], responses: Sequence[ProduceResponse]
) -> list[Part]:
    """All answers, in the order of the requests."""
    parts: list[Part] = []
    for correlation_id, response in zip(correlation_ids, responses, strict=True):
        parts += codec.encode_response(response, correlation_id)  # type: ignore[arg-type]  # there are no records in it
    return parts
