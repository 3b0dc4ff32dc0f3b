"""One of the broker's own topics, whose leaders coordinate what is kept in it.

The broker that leads a partition serves what is in it, for as long as it leads in that epoch: it
reads it back first, and who comes meanwhile is told to come again. When the leadership ends,
everybody is sent away, and what was known is forgotten: another broker decides now.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Final, Generic, Protocol, TypeVar

import trio

from tidemark.broker.metadata.topic import Topic
from tidemark.broker.metadata.topics import Topics
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.state_machines.groups.placement import partition_of
from tidemark.partitions.storage.refusals import may_pass
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError
from tidemark.protocol.types import Epoch, NodeId, Offset

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 1.0
"""Until a partition is read again for which there were no descriptors."""


class NotServed(Enum):
    """Why what is in a partition cannot be asked for."""

    LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE
    ELSEWHERE = ErrorCode.NOT_COORDINATOR


class Served(Protocol):
    """A partition at work."""

    @property
    def is_current(self) -> bool:
        """Whether the leadership still lasts in which it was read."""
        ...

    def resign(self) -> None:
        """Send everybody away who waits."""
        ...


P = TypeVar("P", bound=Served)
P_co = TypeVar("P_co", bound=Served, covariant=True)


class Coordinating(Protocol[P_co]):
    """Who coordinates what is in the topic."""

    def begin(self, replica: Replica) -> P_co:
        """Serve a partition that has nothing in it yet. Raises `OSError` if it cannot now."""
        ...

    async def load(self, replica: Replica) -> Callable[[], P_co]:
        """Read a partition back. What is returned serves it, unless the lead is lost by then.

        Raises a `TidemarkError` or an `OSError` if that cannot be done.
        """
        ...


class ServedTopic(Generic[P]):
    """The partitions that this broker serves. Used on the loop's thread.

    What asks for one raises `RequestError` while it is not served.
    """

    def __init__(
        self,
        name: str,
        coordinating: Coordinating[P],
        topics: Topics,
        services: ReplicaServices,
        tasks: trio.Nursery,
    ) -> None:
        self._name = name
        self._coordinating = coordinating
        self._topics = topics
        self._tasks = tasks
        self._leadership = services.leadership
        self._leader_of = services.driver.leader_of
        self._node_id = services.node_id
        self._partitions: dict[int, P | NotServed] = {}
        self._has_loaded = trio.Event()
        """Set, and replaced, whenever the reading of a partition has ended."""
        self._loading: dict[int, Epoch] = {}
        """The partitions that are being read, and the epochs in which that began."""
        self.has_resigned = False
        """Whether the broker is stopping: to be read."""

    def start(self) -> None:
        """Serve what this broker leads already, and what it comes to lead."""
        self._leadership.watch(self._name, self._leadership_changed)
        topic = self._topics.get(self._name)
        for replica in topic.replicas if topic is not None else ():
            self._leadership_changed(replica)

    async def ensure(self) -> None:
        """Make the topic, if it is not there. Raises `RequestError`."""
        if self._topics.get(self._name) is None:
            await self._topics.ensure_own(self._name)

    async def wait_loaded(self) -> None:
        """Until no partition is being read back any more."""
        while self.is_loading:
            await self._has_loaded.wait()

    @property
    def is_loading(self) -> bool:
        return NotServed.LOADING in self._partitions.values()

    def find_leader(self, name: str) -> NodeId:
        """The broker that coordinates it. Raises `RequestError` if there is none now."""
        topic = self._topics.get(self._name)
        leader = None
        if topic is not None:
            leader, _ = self._leader_of(self._key(topic, name))
            if leader == self._node_id and self._find(name) is NotServed.FAILED:
                leader = None
        if leader is None or self.has_resigned:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return leader

    def is_being_read(self, name: str) -> bool:
        """Whether it is served soon, and nothing is known of it yet."""
        return self._find(name) is NotServed.LOADING

    def serving(self, name: str) -> P:
        """The partition that it is kept in."""
        return self._served_or_raise(self._find(name))

    def serving_partition(self, partition: int) -> P:
        return self._served_or_raise(self._partitions.get(partition, NotServed.ELSEWHERE))

    def served(self) -> Iterator[P]:
        """All that are served. May be called from any thread."""
        states = list(self._partitions.values())
        return (state for state in states if not isinstance(state, NotServed))

    def partition_of(self, name: str) -> int | None:
        """Where it is kept; `None` as long as there is no topic."""
        topic = self._topics.get(self._name)
        return None if topic is None else partition_of(name, topic.partition_count)

    def resign(self) -> None:
        """The broker is stopping: whoever waits is sent to look for another coordinator."""
        self.has_resigned = True
        for number, state in self._partitions.items():
            if not isinstance(state, NotServed):
                state.resign()
            self._partitions[number] = NotServed.ELSEWHERE

    def stop(self) -> None:
        self.resign()
        self._leadership.stop(self._name)

    def _key(self, topic: Topic, name: str) -> PartitionKey:
        return PartitionKey(topic.id, partition_of(name, topic.partition_count))

    def _find(self, name: str) -> P | NotServed:
        number = self.partition_of(name)
        if number is None:
            # Looking for the coordinator makes the topic.
            return NotServed.ELSEWHERE
        return self._partitions.get(number, NotServed.ELSEWHERE)

    def _served_or_raise(self, state: P | NotServed) -> P:
        if isinstance(state, NotServed):
            raise RequestError(state.value)
        return state

    def _leadership_changed(self, replica: Replica) -> None:
        """Serve the replica's partition from now on, or no more. Within a turn."""
        number = replica.partition
        state = self._partitions.get(number)
        is_served = state is not None and not isinstance(state, NotServed)
        if state is not None and not isinstance(state, NotServed) and not state.is_current:
            state.resign()
            self._partitions[number] = NotServed.ELSEWHERE
            is_served = False
        if self.has_resigned:
            return
        if not replica.is_available and replica.failure is not None:
            self._partitions[number] = NotServed.FAILED
        elif not replica.is_serving:
            # Also one that was given up: of that nothing more is heard here.
            self._partitions[number] = NotServed.ELSEWHERE
        elif not is_served:
            self._take_over(replica)

    def _take_over(self, replica: Replica) -> None:
        number, epoch = replica.partition, replica.epoch
        if replica.log_start == replica.log_end == Offset(0):
            # Without a descriptor, to import with what serves it, it is begun as one that is read.
            with suppress(OSError):
                self._partitions[number] = self._coordinating.begin(replica)
                self._loading.pop(number, None)
                return
        if self._loading.get(number) != epoch:
            self._partitions[number] = NotServed.LOADING
            self._loading[number] = epoch
            self._tasks.start_soon(self._load, replica, epoch)

    async def _load(self, replica: Replica, epoch: Epoch) -> None:
        """Read the partition, and serve it if this broker still leads in the same epoch."""
        # Nothing tells when there is a descriptor again.
        while (state := await self._read(replica, epoch)) is NotServed.LOADING:  # noqa: ASYNC110
            await trio.sleep(RETRY_SECONDS)
        number = replica.partition
        if self._is_wanted(replica, epoch):
            self._partitions[number] = state
        if self._loading.get(number) == epoch:
            del self._loading[number]
        self._has_loaded.set()
        self._has_loaded = trio.Event()

    async def _read(self, replica: Replica, epoch: Epoch) -> P | NotServed:
        """What becomes of the partition; `LOADING`: it is to be tried again."""
        if not self._is_wanted(replica, epoch):
            return NotServed.ELSEWHERE
        try:
            serve = await self._coordinating.load(replica)
            return serve() if self._is_wanted(replica, epoch) else NotServed.ELSEWHERE
        except (TidemarkError, OSError) as error:
            cause = error.__cause__ if isinstance(error, RequestError) else error
            if isinstance(cause, OSError) and may_pass(cause):
                logger.warning("%s: what is in it cannot be read now: %s", replica.name, cause)
                return NotServed.LOADING
            if replica.is_serving:
                logger.exception("%s: what is in it cannot be read", replica.name)
            return NotServed.FAILED

    def _is_wanted(self, replica: Replica, epoch: Epoch) -> bool:
        """Whether what is read is to be served: this broker leads, in the epoch in which it began
        to read."""
        return (
            not self.has_resigned
            and self._loading.get(replica.partition) == epoch
            and replica.is_serving
            and replica.epoch == epoch
        )
