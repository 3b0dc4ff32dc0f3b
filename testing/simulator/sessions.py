"""How a client finds a leader, and talks to brokers that may not answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId
from tidemark.testing.simulator.network import Network
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.rpc import Answer, Leader, Request, WhoLeads

Then = Callable[[Answer | None], None]
"""What to do with an answer; `None` is none in time."""


@dataclass(slots=True)
class _Known:
    node: NodeId | None = None
    epoch: Epoch = NO_EPOCH


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
        self._leaders: dict[PartitionKey, _Known] = {}

    @property
    def now(self) -> float:
        return self.network.queue.now

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self.network.queue.after(seconds, action)

    def next_request(self) -> int:
        return next(self._requests)

    def ask(self, target: NodeId, request: Request, then: Then) -> None:
        """Send a request; `then` gets the answer, or `None` after the time-out."""
        self._waiting[request.request] = then
        self.network.send(self.name, target, request)
        self.after(self._timeout_seconds, lambda: self._settle(request.request, None))

    def receive(self, answer: Answer) -> None:
        self._settle(answer.request, answer)

    def _settle(self, request: int, answer: Answer | None) -> None:
        then = self._waiting.pop(request, None)
        if then is not None:
            then(answer)

    def leader(self, key: PartitionKey) -> NodeId:
        """The broker to try: the leader as last heard of, or any."""
        known = self._leaders.get(key)
        if known is None or known.node is None:
            return self.rng.choice(self._brokers)
        return known.node

    def doubt(self, key: PartitionKey) -> None:
        """The leader did not answer, or says that it is none: ask any broker who is."""
        self._leaders[key] = _Known()
        request = WhoLeads(self.next_request(), key)
        self.ask(self.rng.choice(self._brokers), request, self._learn)

    def _learn(self, answer: Answer | None) -> None:
        if not isinstance(answer, Leader) or answer.node is None:
            return
        known = self._leaders.setdefault(answer.key, _Known())
        if answer.epoch >= known.epoch:
            known.node, known.epoch = answer.node, answer.epoch
