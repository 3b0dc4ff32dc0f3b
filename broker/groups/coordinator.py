"""The coordinator of consumer groups on this broker: finds each group's partition and asks it.

`__consumer_offsets` is made when a client first looks for a coordinator. The broker that leads one
of its partitions coordinates the groups in it: it reads them back from the log first, and requests
that come meanwhile are told to come again. A broker that leads the partition no more sends
everybody away, and forgets what it knew: another one decides now.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from uuid import uuid4

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.coordinating.alarm import instant
from tidemark.broker.coordinating.served_topic import NotServed, ServedTopic
from tidemark.broker.groups.topics_seen import TopicsSeen
from tidemark.broker.metadata.topics import Topics
from tidemark.broker.metrics import GroupFigures
from tidemark.broker.network.requests import Pending
from tidemark.broker.network.timers import Timers
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.state_machines.groups.settings import COMMIT_BYTES_MAX, GroupSettings
from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId, Offset, ProducerId, TopicPartition

# What serves a partition is imported when there is one: a broker starts without.
if TYPE_CHECKING:
    from tidemark.broker.groups.group_partition import GroupPartition
    from tidemark.partitions.state_machines.groups.consumer.describing import (
        ConsumerGroupDescription,
    )
    from tidemark.partitions.state_machines.groups.describe import GroupDescription, GroupListing
    from tidemark.partitions.state_machines.groups.history import Rebalance
    from tidemark.partitions.state_machines.groups.offsets import Offsets
    from tidemark.partitions.state_machines.groups.requests import Answer, Heartbeat, Request
    from tidemark.partitions.state_machines.groups.shard import GroupShard

AnswerT = TypeVar("AnswerT", bound="Answer")
R = TypeVar("R")

GroupConfigs: TypeAlias = Callable[[str], Mapping[str, str]]
"""What was set for a group alone, by its id."""

# Of a member's id: with what makes it unique, it has to be a string that can be said.
_NAME_LENGTH_MAX = 1_000

# Decoding is Python, so more at once would not be faster, only later for the first.
_LOADS_AT_ONCE = 1


class GroupCoordinator:
    """All groups of this broker. Made by `open_coordinator`; used on the loop's thread.

    What asks for one group raises `RequestError` while its partition is not served.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        topics: Topics,
        tasks: trio.Nursery,
        services: ReplicaServices,
        *,
        timers: Timers,
        group_configs: GroupConfigs,
    ) -> None:
        self._settings = settings
        self._topics_seen = TopicsSeen(topics)
        self._timers = timers
        self._clock = services.clock
        self._group_settings = _group_settings(settings, group_configs)
        self._load_limiter = trio.CapacityLimiter(_LOADS_AT_ONCE)
        self._topic: ServedTopic[GroupPartition] = ServedTopic(
            CONSUMER_OFFSETS, self, topics, services, tasks
        )
        topics.when_deleted(self.forget_topic)
        topics.when_changed(self.topics_changed)
        self._topic.start()
        self._expire_later()

    async def ensure_topic(self) -> None:
        """Make the topic that groups are kept in, if it is not there. Raises `RequestError`."""
        await self._topic.ensure()

    async def wait_loaded(self) -> None:
        """Until no partition is being read back any more."""
        await self._topic.wait_loaded()

    @property
    def has_resigned(self) -> bool:
        """Whether the broker is stopping."""
        return self._topic.has_resigned

    def find(self, group_id: str) -> NodeId:
        """The broker that coordinates the group. Raises `RequestError` if there is none now."""
        return self._topic.find_leader(group_id)

    def ask(
        self, request: Request, kind: type[AnswerT], respond: Callable[[AnswerT], R]
    ) -> Pending[R]:
        """The response that `respond` makes of the group's answer, which is of `kind`."""
        return self._topic.serving(request.group_id).ask(request, kind, respond)

    async def wait_answer(self, request: Request, kind: type[AnswerT]) -> AnswerT:
        """The group's answer, of `kind`. Cancelling the wait does not take the request back."""
        answered, answers = trio.Event(), list[AnswerT]()

        def keep(answer: AnswerT) -> None:
            answers.append(answer)
            answered.set()

        self.ask(request, kind, keep)
        await answered.wait()
        return answers[0]

    def is_being_read(self, group_id: str) -> bool:
        """Whether this broker has come to coordinate the group, and does not know it yet."""
        return self._topic.is_being_read(group_id)

    def heartbeat(self, request: Heartbeat) -> ErrorCode:
        """What the member is told; nothing while the group is being read, as with Kafka.

        Clients do not expect to hear of that: kafka-python's member never beats again, and its
        application has an error from every poll.
        """
        if self.is_being_read(request.group_id):
            return ErrorCode.NONE
        return self._topic.serving(request.group_id).heartbeat(request)

    def committed(self, group_id: str) -> Offsets:
        """The group's durable commits; none if it is not known."""
        return self._topic.serving(group_id).shard.committed(group_id)

    def describe(self, group_id: str) -> GroupDescription | None:
        return self._topic.serving(group_id).shard.describe(group_id)

    def describe_consumer(self, group_id: str) -> ConsumerGroupDescription | None:
        return self._topic.serving(group_id).shard.describe_consumer(group_id)

    def check_member(self, group_id: str, member_id: str, epoch: int) -> ErrorCode:
        """Whether that is a member of a group of the consumer protocol, in that epoch."""
        return self._topic.serving(group_id).shard.check_member(group_id, member_id, epoch)

    def rebalances(self, group_id: str) -> Sequence[Rebalance] | None:
        """Why the group rebalanced; None if there is no such group."""
        return self._topic.serving(group_id).shard.rebalances(group_id)

    def list_groups(self) -> list[GroupListing]:
        """All groups. Raises `RequestError` while some of them are still being read."""
        if self._topic.is_loading:
            raise RequestError(NotServed.LOADING.value)
        served = self._topic.served()
        return [group for partition in served for group in partition.shard.list_groups()]

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether a transaction may yet commit another offset of the group there."""
        return self._topic.serving(group_id).shard.is_unstable(group_id, partition)

    def replica_of(self, group_id: str) -> Replica:
        """Where the group's commits go, on this broker."""
        return self._topic.serving(group_id).replica

    def partition_of(self, group_id: str) -> TopicPartition | None:
        """Where the group's commits go; `None` as long as there is no topic."""
        number = self._topic.partition_of(group_id)
        return None if number is None else TopicPartition(CONSUMER_OFFSETS, number)

    def check_serves(self, partition: int) -> None:
        """Whether markers may be written to that partition: not while it is being read back.

        Raises `RequestError`.
        """
        self._topic.serving_partition(partition)

    def transaction_over(self, partition: int, producer_id: ProducerId, *, is_commit: bool) -> None:
        """A marker in that partition is committed. To be told in the order of the log."""
        with suppress(RequestError):  # who serves it next reads the marker back
            served = self._topic.serving_partition(partition)
            if served.is_current:
                served.end_transaction(producer_id, is_commit=is_commit)

    def forget_topic(self, topic: str) -> None:
        """It was deleted; so are its commits."""
        for partition in self._topic.served():
            partition.forget_topics(frozenset({topic}))

    def resign(self) -> None:
        """The broker is stopping: whoever waits is sent to look for another coordinator."""
        self._topic.resign()

    def stop(self) -> None:
        self._topic.stop()

    def figures(self) -> list[GroupFigures]:
        """The groups as a scrape shows them. May be called from any thread."""
        return [
            figures for partition in self._topic.served() for figures in _figures(partition.shard)
        ]

    def new_member_id(self, client_id: str | None, instance_id: str | None) -> str:
        """An id that no member has had: a readable name, and what makes it unique."""
        return f"{(instance_id or client_id or '')[:_NAME_LENGTH_MAX]}-{uuid4()}"

    # For the topic

    def begin(self, replica: Replica) -> GroupPartition:
        from tidemark.partitions.state_machines.groups.shard import GroupShard

        return self._serve(replica, GroupShard(self._group_settings, topics=self._topics_seen))

    async def load(self, replica: Replica) -> Callable[[], GroupPartition]:
        from tidemark.broker.groups.group_loading import read_groups

        replay = await read_groups(replica, limiter=self._load_limiter)

        def serve() -> GroupPartition:
            now = instant(self._timers, self._clock)
            return self._serve(replica, replay.finish(self._group_settings, now, self._topics_seen))

        return serve

    def _serve(self, replica: Replica, shard: GroupShard) -> GroupPartition:
        from tidemark.broker.groups.group_partition import GroupPartition

        return GroupPartition(
            shard,
            replica,
            timers=self._timers,
            clock=self._clock,
            batch_bytes_max=self._settings.socket_request_max_bytes,
        )

    def topics_changed(self) -> None:
        """There are other topics, or clients may know of others."""
        for partition in self._topic.served():
            partition.shard.topics_changed()

    def _expire_later(self) -> None:
        seconds = self._settings.offsets_retention_check_interval_ms / 1000
        self._timers.after(seconds, self._expire_offsets)

    def _expire_offsets(self) -> None:
        for partition in self._topic.served():
            partition.expire_offsets()
        self._expire_later()


@asynccontextmanager
async def open_coordinator(
    settings: BrokerSettings,
    topics: Topics,
    services: ReplicaServices,
    *,
    timers: Timers,
    group_configs: GroupConfigs,
) -> AsyncIterator[GroupCoordinator]:
    """The coordinator, which reads its groups back in the background of this block."""
    async with trio.open_nursery() as tasks:
        coordinator = GroupCoordinator(
            settings,
            topics,
            tasks,
            services,
            timers=timers,
            group_configs=group_configs,
        )
        try:
            yield coordinator
        finally:
            coordinator.stop()
            tasks.cancel_scope.cancel()


def _group_settings(settings: BrokerSettings, group_configs: GroupConfigs) -> GroupSettings:
    policy = settings.group_consumer_migration_policy
    return GroupSettings(
        may_upgrade=policy in ("bidirectional", "upgrade"),
        may_downgrade=policy in ("bidirectional", "downgrade"),
        group_configs=group_configs,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        session_timeout_min_ms=settings.group_min_session_timeout_ms,
        session_timeout_max_ms=settings.group_max_session_timeout_ms,
        group_members_max=settings.group_max_size,
        consumer_session_timeout_ms=settings.group_consumer_session_timeout_ms,
        consumer_heartbeat_interval_ms=settings.group_consumer_heartbeat_interval_ms,
        consumer_group_members_max=settings.group_consumer_max_size,
        consumer_assignors=settings.group_consumer_assignors,
        offset_metadata_bytes_max=settings.offset_metadata_max_bytes,
        commit_bytes_max=min(COMMIT_BYTES_MAX, settings.socket_request_max_bytes),
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
