"""How a client finds a leader, and talks to brokers that may not answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVarTuple, Unpack

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId
from tidemark.testing.simulator.network import Network
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.rpc import Answer, Leader, Request, WhoLeads

Then = Callable[[Answer | None], None]
"""What to do with an answer; `None` is none in time."""
_Args = TypeVarTuple("_Args")
_BLIND_SHARE: Final = 0.2


@dataclass(slots=True)
class _Known:
    node: NodeId | None = None
    epoch: Epoch = NO_EPOCH
    is_asked: bool = False
    """Whether a broker was asked, and has not answered yet."""


class Session:
    """One client's requests. Each is answered once, or times out."""

    def __init__(
        self, name: str, network: Network, brokers: Sequence[NodeId], timeout_seconds: float
    ) -> None:
        self.name = name
        self.network = network
        self.rng = stream(network.seed, f"client {name}")
        self._brokers = brokers
        self._timeout_seconds = timeout_seconds
        self._requests = count(1)
        self._waiting: dict[int, Then] = {}
        # When those that were asked time out, and the answered ones among them would have: all
        # wait equally long, so one event at a time is enough.
        self._deadlines: deque[tuple[float, int]] = deque()
        self._leaders: dict[PartitionKey, _Known] = {}

    @property
    def now(self) -> float:
        return self.network.queue.now

    def after(self, seconds: float, action: Callable[[Unpack[_Args]], None], *args: *_Args) -> None:
        self.network.queue.after(seconds, action, *args)

    def next_request(self) -> int:
        return next(self._requests)

    def ask(self, target: NodeId, request: Request, then: Then) -> None:
        """Send a request; `then` gets the answer, or `None` after the timeout."""
        self._waiting[request.request] = then
        self.network.send(self.name, target, request)
        self._deadlines.append((self.now + self._timeout_seconds, request.request))
        if len(self._deadlines) == 1:
            self.after(self._timeout_seconds, self._time_out)

    def _time_out(self) -> None:
        deadlines, now = self._deadlines, self.now
        while deadlines and (deadlines[0][0] <= now or deadlines[0][1] not in self._waiting):
            request = deadlines[0][1]
            self._settle(request, None)
            # Only now: what was asked meanwhile must not put in an event of its own.
            deadlines.popleft()
        if deadlines:
            self.network.queue.at(deadlines[0][0], self._time_out)

    def waits_for(self, request: int) -> bool:
        """Whether it has neither been answered nor given up."""
        return request in self._waiting

    def receive(self, answer: Answer) -> None:
        self._settle(answer.request, answer)

    def _settle(self, request: int, answer: Answer | None) -> None:
        then = self._waiting.pop(request, None)
        if then is not None:
            then(answer)

    def leader(self, key: PartitionKey) -> NodeId | None:
        """The leader as last heard of. Where nobody is known, any broker for once in a while, and
        `None` for the rest: it has been asked who leads."""
        known = self._leaders.setdefault(key, _Known())
        if known.node is not None:
            return known.node
        if not known.is_asked:
            self._ask_who_leads(key, known)
        return self.rng.choice(self._brokers) if self.rng.random() < _BLIND_SHARE else None

    def any_broker(self) -> NodeId:
        return self.rng.choice(self._brokers)

    def doubt(self, key: PartitionKey) -> None:
        """The leader did not answer, or says that it is none: ask any broker who is."""
        known = self._leaders.setdefault(key, _Known())
        known.node, known.epoch = None, NO_EPOCH
        if not known.is_asked:
            self._ask_who_leads(key, known)

    def _ask_who_leads(self, key: PartitionKey, known: _Known) -> None:
        known.is_asked = True

        def learn(answer: Answer | None) -> None:
            known.is_asked = False
            if isinstance(answer, Leader) and answer.epoch >= known.epoch:
                known.node, known.epoch = answer.node, answer.epoch

        request = WhoLeads(self.next_request(), key)
        self.ask(self.rng.choice(self._brokers), request, learn)
