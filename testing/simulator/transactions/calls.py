"""What brokers ask each other: once, without a promise that an answer comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, TypeVar, cast

from tidemark.broker.transactions.marker_sender import WRITE_SECONDS_MAX
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.transactions.asking import AnswerBetweenBrokers, BetweenBrokers
from tidemark.testing.simulator.transactions.tasks import Wait

if TYPE_CHECKING:
    from tidemark.testing.simulator.process import Process

_ANSWER_SECONDS_MAX: Final = 2.0
_LATE_SECONDS_MAX: Final = 2.0
_DOUBLED: Final = 0.5

A = TypeVar("A")
Then = Callable[[AnswerBetweenBrokers | None], None]


@dataclass(frozen=True, slots=True)
class Call:
    """On a connection between two processes, with the answer it gets on the way back."""

    number: int
    caller: Process | None
    called: Process | None
    body: BetweenBrokers | AnswerBetweenBrokers
    is_answer: bool = False


class Calls:
    """Of one process."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._numbers = count(1)
        self._waiting: dict[int, Then] = {}
        broker = process.broker
        self._lateness = stream(broker.world.seed, f"calls {broker.node_id} {broker.starts}")

    async def ask(self, broker: NodeId, request: BetweenBrokers, answer_type: type[A]) -> A:
        """Raises `RequestError` where there is no answer in time."""
        answer = await Wait[AnswerBetweenBrokers | None](
            lambda then: self._begin(broker, request, then)
        )
        if answer is None:
            raise RequestError(ErrorCode.NETWORK_EXCEPTION, f"broker {broker} does not answer")
        assert isinstance(answer, answer_type)
        return answer

    def _begin(self, broker: NodeId, request: BetweenBrokers, then: Then) -> None:
        number = next(self._numbers)
        self._waiting[number] = then
        process = self._process
        called = process.world.brokers[broker].process
        call = Call(number, process, called, request)
        if broker == process.broker.node_id:
            process.later(0.0, process.called, call)
        else:
            self._send(broker, call)
        is_marker = isinstance(request, WriteTxnMarkersRequest)
        if is_marker:
            process.moment("markers asked for")
        seconds = WRITE_SECONDS_MAX if is_marker else _ANSWER_SECONDS_MAX
        process.later(seconds, self._settle, number, None)

    def waits_for(self, call: Call) -> bool:
        """Whether this process has not given up what it has asked."""
        return call.number in self._waiting

    def answer(self, call: Call, answer: AnswerBetweenBrokers) -> None:
        """Of this process, to who has called it."""
        process, caller = self._process, call.caller
        assert caller is not None
        back = Call(call.number, process, caller, answer, is_answer=True)
        if caller is process:
            process.later(0.0, process.called, back)
        else:
            self._send(caller.broker.node_id, back)

    def _send(self, target: NodeId, call: Call) -> None:
        """At once; much later, where calls are late; or both."""
        broker, world = self._process.broker, self._process.world
        late, rng = world.knobs.late_calls, self._lateness
        is_late = late > 0 and rng.random() < late
        if not is_late or rng.random() < _DOUBLED:
            world.network.send(broker.node_id, target, call)
        if is_late:
            seconds = rng.random() * _LATE_SECONDS_MAX
            world.queue.after(seconds, world.network.send, broker.node_id, target, call)

    def answered(self, call: Call) -> None:
        self._settle(call.number, call.body)

    def _settle(self, number: int, answer: object) -> None:
        then = self._waiting.pop(number, None)
        if then is not None:
            then(cast("AnswerBetweenBrokers | None", answer))
            self._process.turn()
