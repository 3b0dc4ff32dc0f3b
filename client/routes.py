"""Who sends from which of a producer's queues: the sender of the partition's leader."""

import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from operator import index
from typing import Final, SupportsIndex

import trio

from tidemark.client.accumulator import BatchLimits, PartitionQueue, ProducerIdentity
from tidemark.client.background import Signal
from tidemark.client.descriptions import TopicDescription
from tidemark.client.network import Network
from tidemark.client.pace import Pace
from tidemark.client.pool import Pool
from tidemark.client.request_limits import RequestLimits
from tidemark.client.sender import BrokerSender, SendSettings
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass

_NOWHERE: Final = PartitionQueue("", -1, BatchLimits(), None)
"""Never has an open batch, so that it stands for "not chosen yet"."""


@dataclass(slots=True, kw_only=True)
class TopicRoutes:
    """A topic that is sent to: the queues of its partitions, and who sends for each."""

    name: str
    queues: list[PartitionQueue] = field(default_factory=list)
    senders: list[BrokerSender | None] = field(default_factory=list)
    led: Sequence[int] = ()
    """The partitions that have a leader, or all if none has: where keyless records may go."""
    keyless: PartitionQueue = _NOWHERE
    """The partition that keyless records go to now."""
    topic_id: uuid.UUID | None = None
    count: int = 0
    """How many partitions there are; queues may be left of more, of before it was made anew."""
    asked_at: float = -math.inf
    """When it was found."""

    def is_used(self, idle_since: float) -> bool:
        """Whether anything is still to be sent to it, or was taken in since then."""
        return self.asked_at >= idle_since or any(
            queue.is_busy or queue.filled_at >= idle_since for queue in self.queues
        )

    def lacks(self, partition: int) -> bool:
        """Whether it may have been added since the metadata came."""
        return isinstance(partition, int) and partition >= self.count

    def queue(self, partition: int) -> PartitionQueue:
        """A partition's queue, by a number that the caller has chosen."""
        if not isinstance(partition, SupportsIndex):
            raise TypeError(f"a partition is a whole number, not {partition!r}")
        if not 0 <= partition < self.count:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f"{self.name} has {self.count} partitions, no partition {partition}",
            )
        return self.queues[partition]

    def placed(self, partition: object) -> PartitionQueue:
        """A partition's queue, by what a partitioner has returned."""
        count = self.count
        if not (isinstance(partition, SupportsIndex) and 0 <= (at := index(partition)) < count):
            raise ValueError(
                f"the partitioner gave {partition!r} for topic {self.name}, which has"
                f" {count} partitions, counted from 0"
            )
        return self.queues[at]

    def learn(self, described: TopicDescription) -> None:
        """How many partitions it has now: fewer only if it has been made anew, for a broker that
        lags behind may know of fewer."""
        count = len(described.partitions)
        if described.topic_id == self.topic_id and count < self.count:
            return
        self.topic_id, self.count = described.topic_id, count
        if self.keyless.partition >= count:
            self.keyless = _NOWHERE


class Routes:
    """See the module. Senders are started in the nursery as they are needed."""

    def __init__(
        self,
        network: Network,
        pool: Pool,
        nursery: trio.Nursery,
        settings: SendSettings,
        limits: BatchLimits,
        identity: ProducerIdentity | None,
    ) -> None:
        self._network = network
        self._pool = pool
        self._nursery = nursery
        self._settings = settings
        self._limits = limits
        self._identity = identity
        self._request_limits = RequestLimits(network, nursery)
        self._senders: dict[NodeId, BrokerSender] = {}
        self._stale = Signal()
        self._pace = Pace(network.settings.backoff, network.random)
        self._held: dict[PartitionQueue, float] = {}
        """From when each may be sent again, once the metadata is newer than its last answer."""
        self._all: dict[str, TopicRoutes] = {}
        """Every topic ever sent to: the broker remembers the sequences of its partitions, too."""
        self.topics: dict[str, TopicRoutes] = {}
        """Those of which it is known now who leads what: of the others it has to be found out."""
        self.flushing = 0
        """How many wait for everything to be sent; while any does, nothing lingers."""

    async def find(self, topic: str) -> None:
        """Find a topic, which may be created by that, or what has become of it since it was found.

        Raises `RequestError` if there is none.
        """
        if topic in self.topics:
            await self._network.try_refresh([topic])
        else:
            await self._network.topic(topic, may_create=True)

    def add(self, topic: str) -> TopicRoutes:
        """Send to a topic that was found."""
        known = self.topics[topic] = self._all.setdefault(topic, TopicRoutes(name=topic))
        known.asked_at = trio.current_time()
        self.update()
        return known

    def used(self) -> Iterable[str]:
        """The topics that are sent to, and from now on only these are known."""
        idle_since = trio.current_time() - self._network.settings.metadata_max_idle_seconds
        self.topics = {
            name: topic for name, topic in self._all.items() if topic.is_used(idle_since)
        }
        return self.topics

    def begin(self, identity: ProducerIdentity) -> None:
        """Go on in another epoch of a transactional producer; see `PartitionQueue.begin`."""
        self._identity = identity
        for queue in self.queues():
            queue.begin(identity)

    def queues(self) -> Iterator[PartitionQueue]:
        """All there are."""
        for topic in self._all.values():
            yield from topic.queues

    def is_led(self, queue: PartitionQueue) -> bool:
        """Whether it is known who leads its partition."""
        return self._all[queue.topic].senders[queue.partition] is not None

    def offer(self, queue: PartitionQueue) -> None:
        """Tell whoever sends for this queue now that it may have something to take."""
        sender = self._all[queue.topic].senders[queue.partition]
        if sender is not None:
            sender.offer(queue)
        elif queue.has_more:
            self._stale.set()

    def send_or_offer(self, queue: PartitionQueue) -> None:
        """As `offer`; what is due is sent at once where nothing has to be waited for."""
        sender = self._all[queue.topic].senders[queue.partition]
        if sender is not None:
            sender.send_or_offer(queue)
        else:
            self._stale.set()

    def update(self) -> None:
        """Give every partition to the sender of the broker that leads it now."""
        has_leaderless = False
        for topic in self.topics.values():
            is_there = self._add_partitions(topic)
            led: list[int] = []
            for partition, queue in enumerate(topic.queues):
                leader = self._network.view.leader(TopicPartition(topic.name, partition))
                if leader is not None:
                    led.append(partition)
                # Of one that was deleted there is nothing to be learned until it is sent to again.
                elif (is_there and partition < topic.count) or queue.has_more:
                    has_leaderless = True
                self._assign(topic, partition, leader.node_id if leader else None)
            topic.led = led or range(topic.count)
        if has_leaderless:
            self._stale.set()
        else:
            self._pace.found()

    def _add_partitions(self, topic: TopicRoutes) -> bool:
        """Whether there is such a topic, as far as is known."""
        described = self._network.view.topics.get(topic.name)
        if described is not None:
            topic.learn(described)
        for partition in range(len(topic.queues), topic.count):
            queue = PartitionQueue(topic.name, partition, self._limits, self._identity)
            topic.queues.append(queue)
            topic.senders.append(None)
        return described is not None

    def _assign(self, topic: TopicRoutes, partition: int, node_id: NodeId | None) -> None:
        sender, old = None, topic.senders[partition]
        if node_id is not None:
            sender = self._senders.get(node_id) or self._start_sender(node_id)
        if sender is not old:
            queue = topic.queues[partition]
            if old is not None:
                old.withdraw(queue)
            if sender is None:
                self._pace.quicken()
            topic.senders[partition] = sender
            self.offer(queue)

    def _start_sender(self, node_id: NodeId) -> BrokerSender:
        sender = self._senders[node_id] = BrokerSender(
            node_id,
            self._network,
            self._pool,
            self._settings,
            self._request_limits,
            is_flushing=lambda: self.flushing > 0,
            offer_to_leader=self.offer,
            retry_when_refreshed=self._retry_when_refreshed,
        )
        self._nursery.start_soon(sender.send_until_cancelled)
        return sender

    def _retry_when_refreshed(self, queue: PartitionQueue, at: float) -> None:
        self._held[queue] = at
        self._pace.quicken()
        self._stale.set()

    async def refresh_when_stale(self) -> None:
        """Ask for metadata when an answer, or a partition without leader, calls for it."""
        while True:
            await self._stale.wait()
            held, self._held = self._held, {}
            await self._network.try_refresh()
            for queue, at in held.items():
                if queue not in self._held:  # else an answer that came meanwhile asks once more
                    queue.retry_from(at)
                    self.offer(queue)
            await self._pace.pause()
