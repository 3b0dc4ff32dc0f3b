"""What the broker's own classes are given here in the place of threads, sockets and the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast
from uuid import UUID

from tidemark.broker.metrics import Metrics
from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.held import HeldRequests
from tidemark.broker.replicas.replica import Replica, ReplicaSpec
from tidemark.broker.replicas.replica_parts import LeadershipWatch, ReplicaServices
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Epoch, NodeId, TopicPartition
from tidemark.testing.simulator.groups import SimulatedGroup

if TYPE_CHECKING:
    from tidemark.broker.network.timers import Timers as RealTimers
    from tidemark.testing.simulator.process import Process

_HELD_SECONDS: Final = 5.0
_CONFIG: Final = TopicConfig.from_overrides({}, {})


class Timer:
    """One deadline."""

    def __init__(self, deadline_seconds: float, callback: Callable[[], None]) -> None:
        self.deadline_seconds = deadline_seconds
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Timers:
    """By the clock of the process's broker; each call is a turn."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def now(self) -> float:
        return self._process.now

    def at(self, deadline_seconds: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(deadline_seconds, callback)
        seconds = self._process.broker.clock.world(deadline_seconds) - self._process.world.queue.now
        self._process.later(max(seconds, 0.0), self._ring, timer)
        return timer

    def after(self, delay_seconds: float, callback: Callable[[], None]) -> Timer:
        return self.at(self.now() + delay_seconds, callback)

    def _ring(self, timer: Timer) -> None:
        callback, timer.callback = timer.callback, None
        if callback is not None:
            callback()
            self._process.turn()

    def as_real(self) -> RealTimers:
        # The broker's are bound to trio's clock; these have the same methods.
        return cast("RealTimers", self)


class Clock:
    """The broker's wall clock."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def now_ms(self) -> int:
        return self._process.wall_ms


class _Driver:
    def __init__(self, process: Process) -> None:
        self._process = process
        self.is_touched = False

    def touch(self) -> None:
        self.is_touched = True

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        return self._process.leader_of(key)

    def stop_watching(self, replica: Replica) -> None:
        """Nobody waits for more than a majority here."""


class _Checkpoints:
    def save_later(self, replica: Replica) -> None:
        """The process has checkpoints of its own."""


class _Room:
    """No reserve is held on the played disks: what found no room finds none."""

    def make_room(self) -> bool:
        return False

    def look(self) -> None:
        """Nobody refuses records for it; a write that finds no room does."""


class Services:
    """In the place of `ReplicaServices`: what a `Replica` uses of them."""

    def __init__(self, process: Process, timers: Timers) -> None:
        self.process = process
        self.node_id = process.broker.node_id
        self.driver = _Driver(process)
        self.checkpoints = _Checkpoints()
        self.room = _Room()
        self.leadership = LeadershipWatch()
        self.metrics = Metrics(topics_max=100)
        self.held = HeldRequests(timers.as_real(), _HELD_SECONDS, self.metrics.moves)
        self.turn = Turn()
        self.clock = Clock(process)

    def storage_failed(self, what: str) -> None:
        """The process hears of its disk elsewhere."""

    def as_real(self) -> ReplicaServices:
        # The real ones own threads; a replica uses these of them.
        return cast(ReplicaServices, self)


@dataclass(frozen=True, slots=True)
class SimulatedTopic:
    """What coordinators ask of a topic."""

    name: str
    id: UUID
    partition_count: int
    replicas: list[Replica] = field(default_factory=list)


class Topics:
    """In the place of the broker's: all topics, and this broker's replicas of them."""

    def __init__(self, groups: Iterable[SimulatedGroup]) -> None:
        self._topics: dict[str, SimulatedTopic] = {}
        counts: dict[str, int] = {}
        ids: dict[str, UUID] = {}
        for group in groups:
            name = group.partition.topic
            counts[name] = max(counts.get(name, 0), group.partition.partition + 1)
            ids[name] = group.key.topic_id
        for name, count in counts.items():
            self._topics[name] = SimulatedTopic(name, ids[name], count)

    def __iter__(self) -> Iterator[SimulatedTopic]:
        return iter(self._topics.values())

    def get(self, name: str) -> SimulatedTopic | None:
        return self._topics.get(name)

    def has(self, partition: TopicPartition) -> bool:
        topic = self._topics.get(partition.topic)
        return topic is not None and partition.partition < topic.partition_count

    def replica(self, name: str, partition: int) -> Replica | None:
        topic = self._topics.get(name)
        replicas = [] if topic is None else topic.replicas
        return next((each for each in replicas if each.partition == partition), None)

    def replica_here(self, name: str, partition: int) -> Replica:
        replica = self.replica(name, partition)
        if replica is None:
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return replica

    def when_deleted(self, callback: Callable[[str], None]) -> None:
        """None is."""

    def when_changed(self, callback: Callable[[], None]) -> None:
        """They stay as they are."""

    def open(self, process: Process, services: Services) -> Mapping[PartitionKey, Replica]:
        """The broker's replicas, over those of the process."""
        found = {}
        for group in process.world.groups:
            member = process.replicas.get(group.key)
            if member is None:
                continue
            spec = ReplicaSpec(
                topic=group.partition.topic,
                topic_id=group.key.topic_id,
                partition=group.partition.partition,
                config=_CONFIG,
                voters=group.voters,
            )
            replica = Replica(spec, services.as_real(), member=member)
            found[group.key] = replica
            self._topics[group.partition.topic].replicas.append(replica)
        return found
