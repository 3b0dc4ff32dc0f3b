"""A client that asks, waits and asks again, as a coroutine."""

from __future__ import annotations

from random import Random
from typing import Final

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.testing.simulator.rpc import Answer, Answered, Ask
from tidemark.testing.simulator.sessions import Session
from tidemark.testing.simulator.transactions.tasks import Wait

BACKOFF_SECONDS: Final = 0.1
NO_ANSWER: Final = Answered(0, ErrorCode.REQUEST_TIMED_OUT)
"""Nobody has answered in time: it may have happened."""
_ELSEWHERE: Final = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class Talker:
    """Asks whoever leads a group."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def rng(self) -> Random:
        return self.session.rng

    @property
    def now(self) -> float:
        return self.session.now

    def sleep(self, seconds: float) -> Wait[None]:
        return Wait(lambda go_on: self.session.after(seconds, go_on, None))

    async def ask(self, key: PartitionKey, body: object) -> Answered:
        """Once."""
        target = self.session.leader(key)
        if target is None:
            await self.sleep(BACKOFF_SECONDS * self.rng.random())
            return Answered(0, ErrorCode.LEADER_NOT_AVAILABLE)
        request = Ask(self.session.next_request(), key, body)
        answer = await Wait[Answer | None](lambda then: self.session.ask(target, request, then))
        answered = answer if isinstance(answer, Answered) else NO_ANSWER
        if answered.error in _ELSEWHERE:
            self.session.doubt(key)
        return answered

    async def ask_again(self, key: PartitionKey, body: object, seconds: float) -> Answered:
        """Until there is an answer that stays one, or the time is over."""
        until = self.now + seconds
        answer = await self.ask(key, body)
        while answer.error.retriable and self.now < until:
            await self.sleep(BACKOFF_SECONDS * (0.5 + self.rng.random()))
            answer = await self.ask(key, body)
        return answer
