"""The coordinator of consumer groups on this broker: finds each group's partition and asks it.

`__consumer_offsets` is made when a client first looks for a coordinator. The broker that leads one
of its partitions coordinates the groups in it: it reads them back from the log first, and requests
that come meanwhile are told to come again. A broker that leads the partition no more sends
everybody away, and forgets what it knew: another one decides now.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import TypeVar
from uuid import uuid4

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.groups.group_loading import read_groups
from tidemark.broker.groups.group_partition import Asker, GroupPartition, instant
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.metadata.topics import Topics
from tidemark.broker.metrics import GroupFigures
from tidemark.broker.network.requests import Pending
from tidemark.broker.network.timers import Timers
from tidemark.broker.node import Clock
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import LeadershipWatch, ReplicaServices
from tidemark.partitions.state_machines.groups.describe import GroupDescription
from tidemark.partitions.state_machines.groups.offsets import Offsets
from tidemark.partitions.state_machines.groups.placement import partition_of
from tidemark.partitions.state_machines.groups.requests import Answer, Heartbeat, Request
from tidemark.partitions.state_machines.groups.settings import GroupSettings
from tidemark.partitions.state_machines.groups.shard import GroupShard
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError, TidemarkError
from tidemark.protocol.types import Epoch, NodeId, Offset, ProducerId, TopicPartition

logger = logging.getLogger(__name__)

AnswerT = TypeVar("AnswerT", bound=Answer)
R = TypeVar("R")

# Decoding is Python, so more at once would not be faster, only later for the first.
_LOADS_AT_ONCE = 1


class NotServed(Enum):
    """Why a partition's groups cannot be asked."""

    LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    FAILED = ErrorCode.COORDINATOR_NOT_AVAILABLE
    ELSEWHERE = ErrorCode.NOT_COORDINATOR


class GroupCoordinator:
    """All groups of this broker. Made by `open_coordinator`; used on the loop's thread.

    What asks for one group raises `RequestError` while its partition is not served.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        topics: Topics,
        tasks: trio.Nursery,
        *,
        leadership: LeadershipWatch,
        leader_of: Callable[[PartitionKey], tuple[NodeId | None, Epoch]],
        timers: Timers,
        clock: Clock,
    ) -> None:
        self._settings = settings
        self._leader_of = leader_of
        self._topics = topics
        self._tasks = tasks
        self._timers = timers
        self._clock = clock
        self._group_settings = _group_settings(settings)
        self._load_limiter = trio.CapacityLimiter(_LOADS_AT_ONCE)
        self._partitions: dict[int, GroupPartition | NotServed] = {}
        self._has_loaded = trio.Event()
        """Set, and replaced, whenever the reading of a partition has ended."""
        self._loading: dict[int, Epoch] = {}
        """The partitions that are being read, and the epochs in which that began."""
        self._has_resigned = False
        leadership.watch(CONSUMER_OFFSETS, self._leadership_changed)
        topics.when_deleted(self.forget_topic)
        self._look_at_all()
        self._expire_later()

    async def ensure_topic(self) -> None:
        """Make the topic that groups are kept in, if it is not there. Raises `RequestError`."""
        if self._topic() is None:
            await self._topics.ensure_own(CONSUMER_OFFSETS)

    async def wait_loaded(self) -> None:
        """Until no partition is being read back any more."""
        while NotServed.LOADING in self._partitions.values():
            await self._has_loaded.wait()

    def find(self, group_id: str) -> NodeId:
        """The broker that coordinates the group. Raises `RequestError` if there is none now."""
        key = self._key(group_id)
        leader = None
        if key is not None and self._find(group_id) is not NotServed.FAILED:
            leader, _ = self._leader_of(key)
        if leader is None or self._has_resigned:
            raise RequestError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return leader

    def ask(
        self, request: Request, kind: type[AnswerT], respond: Callable[[AnswerT], R]
    ) -> Pending[R]:
        """The response that `respond` makes of the group's answer, which is of `kind`."""
        return self._serving(request.group_id).ask(request, Asker(kind, respond))

    async def wait_answer(self, request: Request, kind: type[AnswerT]) -> AnswerT:
        """The group's answer, of `kind`. Cancelling the wait does not take the request back."""
        answered, answers = trio.Event(), list[AnswerT]()

        def keep(answer: AnswerT) -> None:
            answers.append(answer)
            answered.set()

        self.ask(request, kind, keep)
        await answered.wait()
        return answers[0]

    def heartbeat(self, request: Heartbeat) -> ErrorCode:
        return self._serving(request.group_id).heartbeat(request)

    def committed(self, group_id: str) -> Offsets:
        """The group's durable commits; none if it is not known."""
        return self._serving(group_id).shard.committed(group_id)

    def describe(self, group_id: str) -> GroupDescription | None:
        return self._serving(group_id).shard.describe(group_id)

    def list_groups(self) -> list[GroupDescription]:
        """All groups. Raises `RequestError` while some of them are still being read."""
        if NotServed.LOADING in self._partitions.values():
            raise RequestError(NotServed.LOADING.value)
        return [group for partition in self._served() for group in partition.shard.list_groups()]

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether a transaction may yet commit another offset of the group there."""
        return self._serving(group_id).shard.is_unstable(group_id, partition)

    def replica_of(self, group_id: str) -> Replica:
        """Where the group's commits go, on this broker."""
        key = self._key(group_id)
        self._serving(group_id)
        assert key is not None, "a group is served from a topic"
        return self._topics.replica_here(CONSUMER_OFFSETS, key.partition)

    def check_serves(self, partition: int) -> None:
        """Whether markers may be written to that partition: not while it is being read back.

        Raises `RequestError`.
        """
        state = self._partitions.get(partition, NotServed.ELSEWHERE)
        if isinstance(state, NotServed):
            raise RequestError(state.value)

    def transaction_over(self, partition: int, producer_id: ProducerId, *, is_commit: bool) -> None:
        """A marker in that partition is committed. To be told in the order of the log."""
        state = self._partitions.get(partition)
        if isinstance(state, GroupPartition) and state.is_current:
            state.end_transaction(producer_id, is_commit=is_commit)

    def forget_topic(self, topic: str) -> None:
        """It was deleted; so are its commits."""
        for partition in self._served():
            partition.forget_topics(frozenset({topic}))

    def resign(self) -> None:
        """The broker is stopping: whoever waits is sent to look for another coordinator."""
        self._has_resigned = True
        for number, state in self._partitions.items():
            if isinstance(state, GroupPartition):
                state.resign()
            self._partitions[number] = NotServed.ELSEWHERE

    def figures(self) -> list[GroupFigures]:
        """The groups as a scrape shows them. May be called from any thread."""
        return [figures for partition in self._served() for figures in _figures(partition.shard)]

    def new_member_id(self, client_id: str | None, instance_id: str | None) -> str:
        """An id that no member has had: a readable name, and what makes it unique."""
        return f"{instance_id or client_id or ''}-{uuid4()}"

    def _topic(self) -> Topic | None:
        return self._topics.get(CONSUMER_OFFSETS)

    def _key(self, group_id: str) -> PartitionKey | None:
        """The partition the group is kept in; `None` as long as there is no topic."""
        topic = self._topic()
        if topic is None:
            # Looking for the coordinator makes the topic.
            return None
        return PartitionKey(topic.id, partition_of(group_id, topic.partition_count))

    def _find(self, group_id: str) -> GroupPartition | NotServed:
        key = self._key(group_id)
        if key is None:
            return NotServed.ELSEWHERE
        return self._partitions.get(key.partition, NotServed.ELSEWHERE)

    def _serving(self, group_id: str) -> GroupPartition:
        state = self._find(group_id)
        if isinstance(state, NotServed):
            raise RequestError(state.value)
        return state

    def _served(self) -> Iterator[GroupPartition]:
        states = list(self._partitions.values())
        return (state for state in states if isinstance(state, GroupPartition))

    def _look_at_all(self) -> None:
        """At the partitions that this broker leads already."""
        topic = self._topic()
        for replica in topic.replicas if topic is not None else ():
            self._leadership_changed(replica)

    def _leadership_changed(self, replica: Replica) -> None:
        """Serve the replica's groups from now on, or no more. Within a turn."""
        number = replica.partition
        state = self._partitions.get(number)
        if isinstance(state, GroupPartition) and not state.is_current:
            state.resign()
            state = self._partitions[number] = NotServed.ELSEWHERE
        if self._has_resigned:
            return
        if not replica.is_available:
            self._partitions[number] = NotServed.FAILED
        elif not replica.is_serving:
            self._partitions[number] = NotServed.ELSEWHERE
        elif not isinstance(state, GroupPartition):
            self._take_over(replica)

    def _take_over(self, replica: Replica) -> None:
        if replica.log_start == replica.log_end == Offset(0):
            self._serve(replica, GroupShard(self._group_settings))
        elif self._loading.get(replica.partition) != replica.epoch:
            self._partitions[replica.partition] = NotServed.LOADING
            self._loading[replica.partition] = replica.epoch
            self._tasks.start_soon(self._load, replica, replica.epoch)

    async def _load(self, replica: Replica, epoch: Epoch) -> None:
        """Read the groups, and serve them if this broker still leads in the same epoch."""
        replay = None
        try:
            replay = await read_groups(replica, limiter=self._load_limiter)
        except (TidemarkError, OSError):
            if replica.is_serving:
                logger.exception("%s: its groups cannot be read", replica.name)
        if self._loading.get(replica.partition) == epoch:
            del self._loading[replica.partition]
            if not self._has_resigned and replica.is_serving and replica.epoch == epoch:
                if replay is None:
                    self._partitions[replica.partition] = NotServed.FAILED
                else:
                    now = instant(self._timers, self._clock)
                    self._serve(replica, replay.finish(self._group_settings, now))
        self._has_loaded.set()
        self._has_loaded = trio.Event()

    def _serve(self, replica: Replica, shard: GroupShard) -> None:
        self._partitions[replica.partition] = GroupPartition(
            shard, replica, timers=self._timers, clock=self._clock
        )

    def _expire_later(self) -> None:
        seconds = self._settings.offsets_retention_check_interval_ms / 1000
        self._timers.after(seconds, self._expire_offsets)

    def _expire_offsets(self) -> None:
        for partition in self._served():
            partition.expire_offsets()
        self._expire_later()


@asynccontextmanager
async def open_coordinator(
    settings: BrokerSettings, topics: Topics, services: ReplicaServices, *, timers: Timers
) -> AsyncIterator[GroupCoordinator]:
    """The coordinator, which reads its groups back in the background of this block."""
    async with trio.open_nursery() as tasks:
        coordinator = GroupCoordinator(
            settings,
            topics,
            tasks,
            leadership=services.leadership,
            leader_of=services.driver.leader_of,
            timers=timers,
            clock=services.clock,
        )
        try:
            yield coordinator
        finally:
            coordinator.resign()
            services.leadership.stop(CONSUMER_OFFSETS)
            tasks.cancel_scope.cancel()


def _group_settings(settings: BrokerSettings) -> GroupSettings:
    return GroupSettings(
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        session_timeout_min_ms=settings.group_min_session_timeout_ms,
        session_timeout_max_ms=settings.group_max_session_timeout_ms,
        group_members_max=settings.group_max_size,
        offset_metadata_bytes_max=settings.offset_metadata_max_bytes,
        offsets_retention_ms=settings.offsets_retention_minutes * 60_000,
    )


def _figures(shard: GroupShard) -> list[GroupFigures]:
    return [
        GroupFigures(
            group=group_id,
            members=members,
            committed=[
                (partition, Offset(commit.offset)) for partition, commit in committed.items()
            ],
        )
        for group_id, members, committed in shard.figures()
    ]
