"""Markers on their way to partitions' leaders, again and again until each has been written.

What goes to one broker at the same time goes in one request. A partition whose leader is not known,
or that is refused, is tried again after a while, by whoever leads it then; such are sent apart from
the others, so that a partition without a majority holds nobody up. Nothing is kept but what is
still owed: it is as much as there are partitions in transactions that are being ended.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import trio

from tidemark.broker.metrics.transaction_counts import TransactionMetrics
from tidemark.broker.network.timers import Timers
from tidemark.broker.transactions.marker_batches import Ending, outcomes_of, request_of
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tidemark.protocol.types import NodeId, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.transactions.transaction_partition import MarkersOwner
    from tidemark.partitions.state_machines.transactions.effects import Markers

WRITE_SECONDS_MAX: Final = 10.0
"""How long an answer is waited for; after that it is asked again."""
RETRY_SECONDS_MIN: Final = 0.05
RETRY_SECONDS_MAX: Final = 2.0
BATCH_MAX: Final = 1_000
"""Partitions in one request."""
IN_FLIGHT_MAX: Final = 16
"""Requests that one broker may have before it; of those that are tried again, one."""

# What it says is true already: a newer epoch of the producer is in the partition's log, and that
# has ended what was open before it.
_DONE: Final = frozenset({ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH})

logger = logging.getLogger(__name__)

Ask = Callable[
    [NodeId, WriteTxnMarkersRequest, type[WriteTxnMarkersResponse]],
    Awaitable[WriteTxnMarkersResponse],
]
"""Asks a broker, perhaps this one. Raises `RequestError`."""


class Whereabouts(Protocol):
    """Where partitions are."""

    def leader(self, partition: TopicPartition) -> NodeId | None:
        """Who leads it; `None` if that is not known now."""
        ...

    def is_gone(self, partition: TopicPartition) -> bool:
        """Whether it is certain that it was deleted. Of one that is missing, the time for which it
        has to be runs from the first question on."""
        ...


class _Owed:
    """One marker for one partition."""

    __slots__ = ("attempts", "markers", "owner", "partition")

    def __init__(self, owner: MarkersOwner, markers: Markers, partition: TopicPartition) -> None:
        self.owner = owner
        self.markers = markers
        self.partition = partition
        self.attempts = 0

    @property
    def delay_seconds(self) -> float:
        return min(RETRY_SECONDS_MIN * (1 << min(self.attempts, 10)), RETRY_SECONDS_MAX)


class MarkerSender:
    """Sends as long as `tasks` runs; all of it is on the loop's thread."""

    def __init__(
        self,
        whereabouts: Whereabouts,
        ask: Ask,
        tasks: trio.Nursery,
        timers: Timers,
        metrics: TransactionMetrics,
    ) -> None:
        self._whereabouts = whereabouts
        self._ask = ask
        self._tasks = tasks
        self._timers = timers
        self._metrics = metrics
        self._lanes: dict[tuple[NodeId, bool], _Lane] = {}

    def send(self, owner: MarkersOwner, markers: Markers) -> None:
        """Until each partition has its own, or the owner is not current any more."""
        self._metrics.markers_owed += len(markers.partitions)
        for partition in sorted(markers.partitions):
            self._place(_Owed(owner, markers, partition))

    def _place(self, owed: _Owed) -> None:
        if not owed.owner.is_current:
            self._metrics.markers_owed -= 1
        elif self._whereabouts.is_gone(owed.partition):
            self._done(owed)
        elif (leader := self._whereabouts.leader(owed.partition)) is None:
            self._retry_later(owed)
        else:
            key = leader, owed.attempts > 0
            lane = self._lanes.get(key)
            if lane is None:
                lane = self._lanes[key] = _Lane(1 if owed.attempts else IN_FLIGHT_MAX)
            lane.waiting.append(owed)
            self._keep_going(leader, lane)

    def _keep_going(self, leader: NodeId, lane: _Lane) -> None:
        if lane.waiting and not lane.is_gathering and lane.in_flight < lane.in_flight_max:
            lane.is_gathering = True
            lane.in_flight += 1
            self._tasks.start_soon(self._send_batch, leader, lane)

    async def _send_batch(self, leader: NodeId, lane: _Lane) -> None:
        await self._end_of_turn()
        lane.is_gathering = False
        batch = lane.take()
        self._keep_going(leader, lane)
        outcomes = await self._written(leader, batch)
        lane.in_flight -= 1
        for owed, outcome in zip(batch, outcomes, strict=True):
            if outcome in _DONE:
                self._done(owed)
            else:
                self._retry_later(owed)
        self._keep_going(leader, lane)

    async def _written(self, leader: NodeId, batch: list[_Owed]) -> list[ErrorCode]:
        """What became of each; whatever goes wrong with the request has gone wrong with all."""
        endings: dict[int, tuple[Ending, list[TopicPartition]]] = {}
        for owed in batch:
            new: tuple[Ending, list[TopicPartition]] = (owed.markers, owed.owner.epoch), []
            endings.setdefault(id(owed.markers), new)[1].append(owed.partition)
        answer = await self._asked(leader, request_of(endings.values()))
        outcomes = {} if answer is None else outcomes_of(answer)
        return [
            outcomes.get((each.markers.producer_id, each.partition), _NOT_ANSWERED)
            for each in batch
        ]

    async def _end_of_turn(self) -> None:
        """What else this turn has for a broker comes along."""
        await trio.lowlevel.checkpoint()

    async def _asked(
        self, leader: NodeId, request: WriteTxnMarkersRequest
    ) -> WriteTxnMarkersResponse | None:
        """A broker's answer; `None` where there is none in time."""
        try:
            with trio.move_on_after(WRITE_SECONDS_MAX):
                return await self._ask(leader, request, WriteTxnMarkersResponse)
        except RequestError as error:
            logger.debug("broker %d writes no markers: %s", leader, error)
        return None

    def _done(self, owed: _Owed) -> None:
        self._metrics.markers_owed -= 1
        self._metrics.markers_written.inc()
        owed.owner.marked(owed.markers, owed.partition)

    def _retry_later(self, owed: _Owed) -> None:
        delay_seconds = owed.delay_seconds
        owed.attempts += 1
        self._metrics.marker_retries.inc()
        self._timers.after(delay_seconds, partial(self._place, owed))


_NOT_ANSWERED: Final = ErrorCode.NETWORK_EXCEPTION


class _Lane:
    """What one broker is to write: for the first time, or again."""

    def __init__(self, in_flight_max: int) -> None:
        self.waiting: deque[_Owed] = deque()
        self.in_flight_max = in_flight_max
        self.in_flight = 0
        self.is_gathering = False
        """Whether a request is being put together: who comes now comes along."""

    def take(self) -> list[_Owed]:
        return [self.waiting.popleft() for _ in range(min(BATCH_MAX, len(self.waiting)))]
