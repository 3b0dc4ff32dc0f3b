"""Which brokers hold a partition: move its replicas, add some, remove some; and see how far it is.

The brokers keep a partition's replicas whole while they move: at every moment a majority of the old
ones, or of the new ones, or of both, holds all that is acknowledged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tidemark.client.admin.calls import Calls
from tidemark.client.codes import check, error_code
from tidemark.client.connection import Connection
from tidemark.client.descriptions import OngoingReassignment
from tidemark.client.lookups import by_topic
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


class ReassignmentAdmin(Calls):
    """The calls about moving replicas."""

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
