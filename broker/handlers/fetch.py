"""Fetch: slices of logs, at once or as soon as there is enough to answer with.

A request says in full what it wants, and its answer has exactly those partitions (F2); or it goes
on with a session, which knows the rest (`replicas/fetch_sessions.py`). A fetch that has to wait is
parked without a task: it is looked at again when one of its partitions moves, and answered when its
time is over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from tidemark.broker.handlers.fetch_known import answer_known, remember
from tidemark.broker.network.requests import FrameHandler, Pending, RequestContext, Session
from tidemark.broker.replicas.fetch_answers import FetchPlan
from tidemark.broker.replicas.fetch_sessions import NO_SESSION, FetchSession, everything
from tidemark.broker.replicas.fetching import Reading
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.replication.confirming import Question
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import (
    NAMES_UNTIL,
    FetchRequest,
    FetchResponse,
)
from tidemark.protocol.messages.node_endpoint import NodeEndpoint
from tidemark.protocol.types import Offset

if TYPE_CHECKING:
    from tidemark.broker.network.send_queue import Part
    from tidemark.broker.node import Node
    from tidemark.protocol.frames import ApiCodec

_CONSUMERS: Final = (-1, -2)
"""The numbers of those who are no brokers: consumers, and debuggers."""
_ENDPOINTS_SINCE: Final = 16
_CONFIRM_MS: Final = 1_000
"""How long a leader may take to be certain that it leads, before it calls an offset too large."""
_WAITED_FOR_MAX: Final = 50_000
"""So many partitions the fetches of one connection may wait for, if there are several: they take
memory, and each is looked at again whenever one of its partitions moves."""


class FetchHandler(FrameHandler):
    """The handler. A request for one partition is decoded only if it is not like an earlier one, or
    has to wait."""

    def __call__(
        self, node: Node, request: FetchRequest, context: RequestContext
    ) -> FetchResponse | Pending[FetchResponse]:
        return _fetch(node, request, context)

    def answer(
        self, node: Node, frames: Sequence[memoryview], session: Session, codec: ApiCodec
    ) -> tuple[int, list[Part] | Pending[list[Part]]] | None:
        parts = answer_known(node, frames[0], session, codec)
        return None if parts is None else (1, parts)

    def decoded(
        self, frame: memoryview, request: FetchRequest, session: Session, codec: ApiCodec
    ) -> None:
        remember(frame, request, session, codec)


handle: Final = FetchHandler()


def _fetch(
    node: Node, request: FetchRequest, context: RequestContext
) -> FetchResponse | Pending[FetchResponse]:
    session = None
    if request.session_id or request.session_epoch > NO_SESSION:
        uses_ids = context.api_version > NAMES_UNTIL
        try:
            session = node.fetch_sessions.enter(request, uses_ids=uses_ids, now=trio.current_time())
        except RequestError as error:
            return FetchResponse(error_code=error.code, responses=())  # F3
    connection, quotas, bytes_max = context.session, node.quotas, request.max_bytes
    if quotas.is_on:
        if quotas.is_fetched_out(connection, context.client_id):
            # KIP-219: who has fetched too much gets an empty answer, whatever it has asked for.
            return FetchResponse(session_id=0 if session is None else session.id, responses=())
        bytes_max = quotas.fetch_bytes_max(connection, context.client_id, bytes_max)
    connection.fetches += 1
    remembered = None if session is None else session.remembered()
    plan = FetchPlan(
        node,
        request,
        everything(request.topics) if remembered is None else [each.asked for each in remembered],
        remembered,
        bytes_max=bytes_max,
        api_version=context.api_version,
        first=connection.fetches,
        spread=connection.connection_id,
    )
    fetch = _Fetch(node, request, context, plan, session)
    if not _is_consumer(request):
        # A client that says it is a replica could move the high watermark (CVE-2018-1288).
        return plan.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    reading = plan.read()
    if connection.waited_for and connection.waited_for + len(plan) > _WAITED_FOR_MAX:
        return fetch.respond(reading)
    if plan.doubted and not reading.is_enough:
        wait_ms = max(request.max_wait_ms, _CONFIRM_MS)
        return _ParkedFetch(fetch, reading, wait_ms).pending
    # F4: the fetch with which a Java client closes its session asks for nothing.
    if reading.is_enough or request.max_wait_ms <= 0 or plan.is_empty:
        return fetch.respond(reading)
    return _ParkedFetch(fetch, reading, request.max_wait_ms).pending


def _is_consumer(request: FetchRequest) -> bool:
    """From version 15 on it is said elsewhere who fetches; what is not said is a consumer's."""
    return request.replica_id in _CONSUMERS and request.replica_state.replica_id in _CONSUMERS


class _Fetch(NamedTuple):
    """One request with all that its answer is made from. A tuple, because each fetch makes one."""

    node: Node
    request: FetchRequest
    context: RequestContext
    plan: FetchPlan
    session: FetchSession | None

    def respond(self, reading: Reading) -> FetchResponse:
        response = self.plan.respond(reading)
        if self.context.api_version >= _ENDPOINTS_SINCE and reading.has_moved:
            response = replace(response, node_endpoints=self._leaders(response))
        if self.request.session_epoch == NO_SESSION:
            return response
        return self.node.fetch_sessions.answer(
            self.request,
            response,
            self.session,
            uses_ids=self.context.api_version > NAMES_UNTIL,
            now=trio.current_time(),
        )

    def _leaders(self, response: FetchResponse) -> list[NodeEndpoint]:
        """The addresses of the leaders that it names (KIP-951)."""
        answers = (each for topic in response.responses for each in topic.partitions)
        leaders = {each.current_leader.leader_id for each in answers}
        return [
            NodeEndpoint(
                node_id=broker.node_id,
                host=broker.address.host,
                port=broker.address.port,
                rack=broker.rack,
            )
            for broker in self.node.brokers.shown_to(self.context.session)
            if broker.node_id in leaders
        ]


class _ParkedFetch:
    """A fetch until there is enough to answer with, or its time is over."""

    def __init__(self, fetch: _Fetch, reading: Reading, max_wait_ms: int) -> None:
        reading.release()
        self.pending: Pending[FetchResponse] = Pending()
        self._fetch = fetch
        self._plan = plan = fetch.plan
        self._session, self._waited_for = fetch.context.session, len(plan)
        self._session.waited_for += self._waited_for
        self._timer = fetch.node.timers.after(max_wait_ms / 1000, self.answer_now)
        self._questions: list[tuple[Replica, Question]] = []
        self.pending.on_abandon(self._leave)
        for replica in plan.replicas:
            replica.wait_for_more(self)
        for replica in list(plan.doubted):
            question = replica.confirm(partial(self._confirmed, replica))
            self._questions.append((replica, question))

    def _confirmed(self, replica: Replica, _: Offset | RequestError) -> None:
        """That one leads, or says by itself that it does not."""
        self._plan.doubted[replica] = True
        self.look_again()

    def look_again(self) -> None:
        self._try(self._answer_if_enough)

    def answer_now(self) -> None:
        self._try(lambda: self._fetch.respond(self._plan.read()))

    def _try(self, answer: Callable[[], FetchResponse | None]) -> None:
        self.pending.try_complete(answer)
        if self.pending.is_complete:
            self._leave()

    def _answer_if_enough(self) -> FetchResponse | None:
        reading = self._plan.read()
        if reading.is_enough:
            return self._fetch.respond(reading)
        reading.release()
        return None

    def _leave(self) -> None:
        """Doing it twice is allowed."""
        self._session.waited_for -= self._waited_for
        self._waited_for = 0
        self._timer.cancel()
        for replica in self._plan.replicas:
            replica.stop_waiting(self)
        for replica, question in self._questions:
            replica.forget_question(question)
