"""Replicas: how far they are, who observes, and what is certainly committed. Tidemark's own."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from tidemark.client.admin.calls import Calls
from tidemark.client.codes import check
from tidemark.client.confirming import confirmed_ends
from tidemark.client.connection import Connection
from tidemark.client.descriptions import (
    ConfirmedEnd,
)
from tidemark.client.lookups import by_topic
from tidemark.client.network import address_of
from tidemark.client.replica_descriptions import (
    CompactionProgress,
    PartitionReplicas,
    ReassignmentProgress,
    ReplicaRole,
    ReplicaStanding,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import describe_replicas as described
from tidemark.protocol.messages.set_observers import (
    ObservedPartition,
    SetObserversRequest,
    SetObserversResponse,
)
from tidemark.protocol.types import Epoch, NodeId, Offset, TopicPartition

TIMEOUT_MS = 30_000


class ReplicaAdmin(Calls):
    """The calls about replicas."""

    async def confirmed_ends(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ConfirmedEnd]:
        """For each partition, up to where it was committed when this was called, by anybody.

        The leaders ask a majority whether they still lead. Raises `RequestError` if one cannot be
        certain within the client's `retry_timeout_seconds`.
        """
        return await confirmed_ends(self._network, partitions)

    async def set_observers(self, observers: Mapping[TopicPartition, Sequence[int]]) -> None:
        """Name the brokers that observe these partitions: they hold a copy, and have no vote.

        Those that observed and are not named give their copy up. Raises `RequestError` for the
        first partition that is refused.
        """
        request = SetObserversRequest(
            partitions=[
                ObservedPartition(
                    topic=partition.topic, partition=partition.partition, observers=tuple(nodes)
                )
                for partition, nodes in observers.items()
            ],
            timeout_ms=TIMEOUT_MS,
        )

        async def ask(connection: Connection) -> None:
            answer = await connection.request(request, SetObserversResponse)
            check(answer.error_code, "observers", answer.error_message)
            for each in answer.partitions:
                check(each.error_code, f"{each.topic}-{each.partition}", each.error_message)

        await self._on_any_broker(ask)

    async def change_observers(
        self, partition: TopicPartition, *, add: Iterable[int] = (), remove: Iterable[int] = ()
    ) -> tuple[NodeId, ...]:
        """Have some brokers observe a partition, and others no more; who observes it then.

        Raises `RequestError` if one that is to be removed does not observe it.
        """
        described = (await self.describe_replicas([partition]))[partition]
        now = [each.node_id for each in described.observers]
        strangers = sorted(set(remove) - set(now))
        if strangers:
            raise RequestError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"broker {strangers[0]} does not observe {partition}",
            )
        left = [node for node in now if node not in set(remove)]
        after = tuple(dict.fromkeys((*left, *map(NodeId, add))))
        await self.set_observers({partition: after})
        return after

    async def describe_replicas(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, PartitionReplicas]:
        """How far the replicas of these partitions are, as their leaders know it.

        Of a partition that nobody leads, some broker says what it knows. Raises UNSUPPORTED_VERSION
        against a broker that is not Tidemark's.
        """
        found: dict[TopicPartition, PartitionReplicas] = {}
        by_broker: dict[NodeId | None, list[TopicPartition]] = {}
        for partition in partitions:
            await self._network.topic(partition.topic)
            leader = self._network.view.leader(partition)
            by_broker.setdefault(None if leader is None else leader.node_id, []).append(partition)
        for node_id, led in by_broker.items():
            try:
                found |= await self._describe(node_id, led)
            except OSError:
                found |= await self._describe(None, led)
            found |= await self._describe_where_led(node_id, found, led)
        return found

    async def _describe_where_led(
        self,
        asked: NodeId | None,
        found: Mapping[TopicPartition, PartitionReplicas],
        partitions: Sequence[TopicPartition],
    ) -> dict[TopicPartition, PartitionReplicas]:
        """Of those that another broker leads than the one asked, what that broker knows.

        Metadata may be minutes old, and who led until then knows nothing of followers any more.
        """
        elsewhere: dict[NodeId, list[TopicPartition]] = {}
        for at in partitions:
            leader = None if at not in found else found[at].leader
            if leader is not None and leader != asked and leader in self._network.view.brokers:
                elsewhere.setdefault(leader, []).append(at)
        better: dict[TopicPartition, PartitionReplicas] = {}
        for leader, led in elsewhere.items():
            with suppress(OSError):
                better |= await self._describe(leader, led)
        return better

    async def _describe(
        self, node_id: NodeId | None, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, PartitionReplicas]:
        network = self._network
        if node_id is None:
            connection = await network.any_connection()
        else:
            connection = await network.pool.connection(address_of(network.broker(node_id)))
        request = described.DescribeReplicasRequest(
            topics=[
                described.DescribeReplicasTopic(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(partitions).items()
            ]
        )
        answer = await connection.request(request, described.DescribeReplicasResponse)
        check(answer.error_code, "replicas", answer.error_message)
        found = {}
        for topic in answer.topics:
            check(topic.error_code, f"topic {topic.topic}")
            for each in topic.partitions:
                at = TopicPartition(topic.topic, each.partition)
                check(each.error_code, f"partition {at}", each.error_message)
                found[at] = _replicas(each)
        return found


def _replicas(answer: described.PartitionReplicas) -> PartitionReplicas:
    return PartitionReplicas(
        leader=NodeId(answer.leader) if answer.leader >= 0 else None,
        leader_epoch=Epoch(answer.leader_epoch),
        high_watermark=Offset(answer.high_watermark) if answer.high_watermark >= 0 else None,
        replicas=tuple(map(_standing, answer.replicas)),
        reassignment=next(map(_progress, answer.reassignments), None),
        compaction=next(map(_compaction, answer.compactions), None),
    )


def _compaction(answer: described.CompactionProgress) -> CompactionProgress:
    return CompactionProgress(
        dirty_ratio=answer.dirty_ratio,
        cleaned_ms=answer.cleaned_ms if answer.cleaned_ms >= 0 else None,
        why_set_aside=answer.why,
    )


def _progress(answer: described.ReassignmentProgress) -> ReassignmentProgress:
    return ReassignmentProgress(
        wanted=tuple(map(NodeId, answer.wanted)),
        stage=answer.stage or None,
        why=answer.why,
        copying_to=NodeId(answer.learner) if answer.learner >= 0 else None,
        copied_bytes=answer.copied_bytes,
        remaining_bytes=answer.remaining_bytes,
        bytes_per_second=answer.bytes_per_second,
    )


def _standing(answer: described.ReplicaDescription) -> ReplicaStanding:
    return ReplicaStanding(
        node_id=NodeId(answer.broker),
        role=ReplicaRole(answer.role),
        is_alive=answer.is_alive,
        end_offset=Offset(answer.end_offset) if answer.end_offset >= 0 else None,
        lag_records=answer.lag_records if answer.lag_records >= 0 else None,
        staleness_ms=answer.staleness_ms if answer.staleness_ms >= 0 else None,
        parent=NodeId(answer.parent) if answer.parent >= 0 else None,
    )
