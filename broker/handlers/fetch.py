"""Fetch: slices of logs, at once or as soon as there is enough to answer with.

Sessions are declined (F1): every request says in full what it wants, and its answer has exactly
those partitions (F2). A fetch that has to wait is parked without a task: it is looked at again when
one of its partitions moves, and answered when its time is over.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from tidemark.broker.network.requests import Pending, RequestContext
from tidemark.broker.replicas.fetching import FetchPlan, Reading
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.replication.confirming import Question
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import FetchRequest, FetchResponse
from tidemark.protocol.types import Offset

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_CONSUMER: Final = -1
_DEBUGGER: Final = -2
_CONFIRM_MS: Final = 1_000
"""How long a leader may take to be certain that it leads, before it calls an offset too large."""


def handle(
    node: Node, request: FetchRequest, context: RequestContext
) -> FetchResponse | Pending[FetchResponse]:
    if request.session_id != 0:
        # F3: a session that was never given.
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND, responses=())
    session = context.session
    session.fetches += 1
    plan = FetchPlan(
        node,
        request,
        api_version=context.api_version,
        first=session.fetches,
        spread=session.connection_id,
    )
    if request.replica_id not in (_CONSUMER, _DEBUGGER):
        # A client that says it is a replica could move the high watermark (CVE-2018-1288).
        return plan.refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    reading = plan.read()
    if plan.doubted and not reading.is_enough:
        wait_ms = max(request.max_wait_ms, _CONFIRM_MS)
        return _ParkedFetch(node, plan, reading, wait_ms).pending
    # F4: the fetch with which a Java client closes its session asks for nothing.
    if reading.is_enough or request.max_wait_ms <= 0 or not request.topics:
        return plan.respond(reading)
    return _ParkedFetch(node, plan, reading, request.max_wait_ms).pending


class _ParkedFetch:
    """A fetch until there is enough to answer with, or its time is over."""

    def __init__(self, node: Node, plan: FetchPlan, reading: Reading, max_wait_ms: int) -> None:
        reading.release()
        self.pending: Pending[FetchResponse] = Pending()
        self._plan = plan
        self._timer = node.timers.after(max_wait_ms / 1000, self.answer_now)
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
        if self.pending.is_complete:
            return
        reading = self._plan.read()
        if reading.is_enough:
            self._answer(reading)
        else:
            reading.release()

    def answer_now(self) -> None:
        if not self.pending.is_complete:
            self._answer(self._plan.read())

    def _answer(self, reading: Reading) -> None:
        self._leave()
        self.pending.complete(self._plan.respond(reading))

    def _leave(self) -> None:
        self._timer.cancel()
        for replica in self._plan.replicas:
            replica.stop_waiting(self)
        for replica, question in self._questions:
            replica.forget_question(question)
