"""A coordinator's partition at work: a pure state machine, with its askers, its log and its clock.

It lasts as long as this broker leads the partition in one epoch. The machine says what to answer
and what to write; what else is to be done is each coordinator's own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from tidemark.broker.coordinating.alarm import Alarm, instant
from tidemark.broker.coordinating.asker import Asker
from tidemark.broker.coordinating.own_log import OwnLog
from tidemark.broker.network.requests import Pending
from tidemark.broker.network.timers import Timers
from tidemark.broker.node import Clock
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.state_machines.instant import Instant
from tidemark.partitions.state_machines.token import Token
from tidemark.protocol.errors import ErrorCode

AnswerT = TypeVar("AnswerT")
R = TypeVar("R")
Q_contra = TypeVar("Q_contra", contravariant=True)
E = TypeVar("E")
E_co = TypeVar("E_co", covariant=True)


class Machine(Protocol[Q_contra, E_co]):
    """A coordinator's decisions: requests and the time go in, effects come out."""

    @property
    def next_deadline_ms(self) -> int | None: ...

    def step(self, request: Q_contra, token: Token, at: Instant) -> E_co: ...

    def stored(self, number: int, at: Instant) -> E_co: ...

    def not_stored(self, number: int, error: ErrorCode, at: Instant) -> E_co: ...

    def tick(self, at: Instant) -> E_co: ...


class Reply(Protocol):
    """A machine's answer to one of those who have asked."""

    @property
    def token(self) -> Token: ...

    @property
    def answer(self) -> object: ...


class WorkingPartition(ABC, Generic[Q_contra, E]):
    """All of it runs on the loop's thread."""

    def __init__(
        self,
        machine: Machine[Q_contra, E],
        replica: Replica,
        *,
        timers: Timers,
        clock: Clock,
        batch_bytes_max: int,
    ) -> None:
        self._machine = machine
        self._timers = timers
        self._clock = clock
        self._log = OwnLog(replica, self._reported, batch_bytes_max=batch_bytes_max)
        self._alarm = Alarm(timers, self._tick)

    @property
    def is_current(self) -> bool:
        """Whether the leadership still lasts in which this partition was read."""
        return self._log.is_current

    def ask(
        self, request: Q_contra, kind: type[AnswerT], respond: Callable[[AnswerT], R]
    ) -> Pending[R]:
        """Have it answered, now or later."""
        asker = Asker(kind, respond)
        self._perform(self._machine.step(request, asker, self.now()))
        return asker.pending

    def now(self) -> Instant:
        return instant(self._timers, self._clock)

    @abstractmethod
    def _perform(self, effects: E) -> None:
        """Answer, write, and do what else is to be done; `_wake_in_time` at the end."""

    def _answer(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            assert isinstance(reply.token, Asker)
            reply.token.take(reply.answer)

    def _wake_in_time(self) -> None:
        self._alarm.set(self._machine.next_deadline_ms)

    def _reported(self, number: int, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self._perform(self._machine.stored(number, self.now()))
        else:
            self._perform(self._machine.not_stored(number, error, self.now()))

    def _tick(self) -> None:
        self._perform(self._machine.tick(self.now()))
