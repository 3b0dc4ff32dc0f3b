"""Which brokers hold a partition: move its replicas, add some, remove some; and see how far it is.

The brokers keep a partition's replicas whole while they move: at every moment a majority of the old
ones, or of the new ones, or of both, holds all that is acknowledged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tidemark.client.admin.replicas import ReplicaAdmin
from tidemark.client.cluster import ClusterView
from tidemark.client.codes import check, error_code
from tidemark.client.connection import Connection
from tidemark.client.lookups import by_topic
from tidemark.client.replica_changes import Change, Replicas, added, moved, removed
from tidemark.client.replica_descriptions import (
    OngoingReassignment,
    ReplicaChange,
    ReplicaRole,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from tidemark.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)
from tidemark.protocol.types import NodeId, TopicPartition

TIMEOUT_MS = 30_000


class ReassignmentAdmin(ReplicaAdmin):
    """The calls about moving replicas."""

    async def move_replica(
        self, partition: TopicPartition, *, source: int, to: int, dry_run: bool = False
    ) -> ReplicaChange:
        """Have the broker `to` hold a partition in place of `source`.

        As `reassign_partitions`, also about what it waits for; but refused while the partition's
        replicas are being moved. With `dry_run` it only says what would be.
        """
        return await self._change_one(partition, moved(source, to), dry_run=dry_run)

    async def add_replicas(
        self, partition: TopicPartition, brokers: Sequence[int], *, dry_run: bool = False
    ) -> ReplicaChange:
        """Have more brokers hold a partition, and vote on it. As `move_replica`."""
        return await self._change_one(partition, added(brokers), dry_run=dry_run)

    async def remove_replicas(
        self, partition: TopicPartition, brokers: Sequence[int], *, dry_run: bool = False
    ) -> ReplicaChange:
        """Have brokers give up a partition. As `move_replica`; one that leads hands over first."""
        return await self._change_one(partition, removed(brokers), dry_run=dry_run)

    async def change_replicas(
        self, partitions: Collection[TopicPartition], change: Change, *, dry_run: bool = False
    ) -> dict[TopicPartition, ReplicaChange]:
        """As `move_replica`, for several: all are checked before any is asked for."""
        ongoing = await self.list_reassignments(partitions)
        for at, each in ongoing.items():
            wanted = ", ".join(map(str, each.wanted))
            raise RequestError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"the replicas of {at} are being moved to {wanted}: wait until that is over, or "
                "cancel it",
            )
        changes = {}
        for at, before in (await self._voters_of(partitions)).items():
            after = change(str(at), before)
            changes[at] = ReplicaChange(before=before, after=after)
        if not dry_run:
            await self.reassign_partitions({at: each.after for at, each in changes.items()})
        return changes

    async def _change_one(
        self, partition: TopicPartition, change: Change, *, dry_run: bool
    ) -> ReplicaChange:
        changes = await self.change_replicas([partition], change, dry_run=dry_run)
        return changes[partition]

    async def _voters_of(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, Replicas]:
        """Who holds each with a vote, in their order; of Kafka's brokers, who holds it."""
        names = list(by_topic(partitions))
        answer = await self._network.ask_metadata(names, may_create=False)
        view = ClusterView().updated(answer)
        held = {
            TopicPartition(topic.name, each.partition): each.replicas
            for topic in view.topics.values()
            for each in topic.partitions
        }
        missing = [at for at in partitions if at not in held]
        if missing:
            raise RequestError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {missing[0]}"
            )
        try:
            described = await self.describe_replicas(partitions)
        except RequestError as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            return {at: held[at] for at in partitions}
        observers = {
            at: {each.node_id for each in found.replicas if each.role is ReplicaRole.OBSERVER}
            for at, found in described.items()
        }
        return {
            at: tuple(node for node in held[at] if node not in observers[at]) for at in partitions
        }

    async def reassign_partitions(
        self,
        replicas: Mapping[TopicPartition, Sequence[int]],
        *,
        may_change_factor: bool = True,
    ) -> None:
        """Have these partitions held by these brokers, for each the one first that is to lead it.

        It returns once that is written down; moving goes on by itself, see `list_reassignments`
        and `describe_replicas`. What was asked for before and has not come true is replaced. Raises
        `RequestError` for the first partition that is refused; others may have been taken.
        """
        await self._alter(dict(replicas), may_change_factor=may_change_factor)

    async def cancel_reassignments(self, partitions: Collection[TopicPartition]) -> None:
        """Have these partitions held by who held them before.

        Raises `RequestError` NO_REASSIGNMENT_IN_PROGRESS for one whose replicas do not move.
        """
        await self._alter(dict.fromkeys(partitions), may_change_factor=True)

    async def list_reassignments(
        self, partitions: Collection[TopicPartition] | None = None
    ) -> dict[TopicPartition, OngoingReassignment]:
        """The partitions, of these or of all, whose replicas are being moved."""
        topics = None
        if partitions is not None:
            topics = [
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=numbers)
                for topic, numbers in by_topic(partitions).items()
            ]
        request = ListPartitionReassignmentsRequest(timeout_ms=TIMEOUT_MS, topics=topics)

        async def ask(connection: Connection) -> dict[TopicPartition, OngoingReassignment]:
            answer = await connection.request(request, ListPartitionReassignmentsResponse)
            check(answer.error_code, "ListPartitionReassignments", answer.error_message)
            return {
                TopicPartition(topic.name, each.partition_index): OngoingReassignment(
                    replicas=tuple(map(NodeId, each.replicas)),
                    adding=tuple(map(NodeId, each.adding_replicas)),
                    removing=tuple(map(NodeId, each.removing_replicas)),
                )
                for topic in answer.topics
                for each in topic.partitions
            }

        return await self._on_controller(ask)

    async def _alter(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        may_change_factor: bool,
    ) -> None:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS,
            allow_replication_factor_change=may_change_factor,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=number, replicas=replicas[TopicPartition(topic, number)]
                        )
                        for number in numbers
                    ],
                )
                for topic, numbers in by_topic(replicas).items()
            ],
        )

        async def ask(connection: Connection) -> None:
            answer = await connection.request(request, AlterPartitionReassignmentsResponse)
            check(answer.error_code, "AlterPartitionReassignments", answer.error_message)
            for topic in answer.responses:
                for each in topic.partitions:
                    if each.error_code != ErrorCode.NONE:
                        at = TopicPartition(topic.name, each.partition_index)
                        what = each.error_message or str(at)
                        raise RequestError(error_code(each.error_code), what)

        # A second time is the same wish again.
        await self._on_controller(ask)
