"""The cluster: brokers, disks, what they speak."""

from collections.abc import Collection, Iterator
from typing import Final

from tidemark.client.admin.calls import Calls
from tidemark.client.cluster import ClusterView
from tidemark.client.codes import check, error_code
from tidemark.client.connection import Connection
from tidemark.client.descriptions import (
    ApiRange,
    BrokerDescription,
    ClusterDescription,
    QuorumDescription,
    QuorumReplica,
)
from tidemark.client.lookups import by_topic
from tidemark.client.replica_descriptions import (
    LogDirDescription,
    ReplicaSize,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages import describe_quorum_response as response
from tidemark.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidemark.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from tidemark.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from tidemark.protocol.messages.describe_quorum_response import DescribeQuorumResponse
from tidemark.protocol.registry import APIS
from tidemark.protocol.types import Epoch, NodeId, Offset, TopicPartition

METADATA_PARTITION: Final = TopicPartition("__cluster_metadata", 0)
"""How Kafka's protocol calls the log of the cluster's metadata, wherever it is kept."""
_FENCED_SINCE: Final = 2


class ClusterAdmin(Calls):
    """The calls about the cluster and its brokers."""

    async def describe_cluster(self, *, fenced: bool = False) -> ClusterDescription:
        """Id, controller and brokers; with `fenced`, those too that the cluster knows to be down.

        Brokers that are too old to list these list the living ones.
        """

        async def ask(connection: Connection) -> ClusterDescription:
            return await self._describe_cluster(connection, fenced=fenced)

        return await self._on_any_broker(ask)

    async def _describe_cluster(
        self, connection: Connection, *, fenced: bool
    ) -> ClusterDescription:
        try:
            version = connection.version(DescribeClusterRequest)
        except RequestError:
            return _from_view(
                ClusterView().updated(await self._network.ask_metadata([], may_create=False))
            )
        answer = await connection.request(
            DescribeClusterRequest(
                include_cluster_authorized_operations=False,
                include_fenced_brokers=fenced and version >= _FENCED_SINCE,
            ),
            DescribeClusterResponse,
        )
        check(answer.error_code, "DescribeCluster", answer.error_message)
        return ClusterDescription(
            cluster_id=answer.cluster_id,
            controller_id=NodeId(answer.controller_id) if answer.controller_id >= 0 else None,
            brokers=tuple(
                BrokerDescription(
                    node_id=NodeId(broker.broker_id),
                    host=broker.host,
                    port=broker.port,
                    rack=broker.rack,
                    is_fenced=broker.is_fenced,
                )
                for broker in sorted(answer.brokers, key=lambda broker: broker.broker_id)
            ),
        )

    async def describe_quorums(
        self, leader: NodeId, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, QuorumDescription]:
        """What a broker knows of the replicas of partitions that it leads.

        Only a leader knows, so partitions that this broker does not lead (any more) are left out.
        Asked once, without retries: what is not known now is part of the answer. Kafka has such
        groups for its metadata alone, and answers for no topic.
        """
        connection = await self._network.connection_to(leader)
        return await _describe_quorums(connection, partitions)

    async def describe_metadata_quorum(self) -> QuorumDescription | None:
        """Who keeps the cluster's metadata; None while they have no leader. Any broker can say."""
        connection = await self._network.any_connection()
        found = await _describe_quorums(connection, [METADATA_PARTITION])
        return found.get(METADATA_PARTITION)

    async def describe_log_dirs(
        self, node_ids: Collection[NodeId] | None = None, *, replicas: bool = True
    ) -> list[LogDirDescription]:
        """The data directories of these brokers (all if None), with their replicas' sizes unless
        `replicas` is false."""
        if node_ids is None:
            await self._network.refresh()
            node_ids = sorted(self._network.view.brokers)
        described: list[LogDirDescription] = []
        for node_id in node_ids:
            described += await self._log_dirs_of(node_id, replicas=replicas)
        return described

    async def _log_dirs_of(self, node_id: NodeId, *, replicas: bool) -> list[LogDirDescription]:
        async def attempt() -> list[LogDirDescription]:
            connection = await self._network.connection_to(node_id)
            answer = await connection.request(
                DescribeLogDirsRequest(topics=None if replicas else ()), DescribeLogDirsResponse
            )
            check(answer.error_code, f"log directories of broker {node_id}")
            return [_log_dir(node_id, result) for result in answer.results]

        return await self._network.retrying(attempt)

    async def api_versions(self, node_id: NodeId | None = None) -> list[ApiRange]:
        """What a broker says it speaks, by API key; any broker if None."""

        async def attempt() -> list[ApiRange]:
            network = self._network
            connection = await (
                network.any_connection() if node_id is None else network.connection_to(node_id)
            )
            return [
                ApiRange(
                    api_key=key,
                    name=APIS[key].name if key in APIS else f"API {key}",
                    min_version=lowest,
                    max_version=highest,
                )
                for key, (lowest, highest) in sorted(connection.wire.ranges.items())
            ]

        return await self._network.retrying(attempt)


def _from_view(view: ClusterView) -> ClusterDescription:
    return ClusterDescription(
        cluster_id=view.cluster_id,
        controller_id=view.controller_id,
        brokers=tuple(view.brokers[node_id] for node_id in sorted(view.brokers)),
    )


async def _describe_quorums(
    connection: Connection, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, QuorumDescription]:
    topics = [
        TopicData(
            topic_name=topic,
            partitions=[PartitionData(partition_index=index) for index in indexes],
        )
        for topic, indexes in by_topic(partitions).items()
    ]
    answer = await connection.request(DescribeQuorumRequest(topics=topics), DescribeQuorumResponse)
    check(answer.error_code, "DescribeQuorum", answer.error_message)
    return {
        TopicPartition(topic.topic_name, partition.partition_index): _quorum(partition)
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE
    }


def _quorum(partition: response.PartitionData) -> QuorumDescription:
    return QuorumDescription(
        leader=NodeId(partition.leader_id),
        leader_epoch=Epoch(partition.leader_epoch),
        high_watermark=Offset(partition.high_watermark),
        voters=tuple(map(_quorum_replica, partition.current_voters)),
        observers=tuple(map(_quorum_replica, partition.observers)),
    )


def _quorum_replica(replica: response.ReplicaState) -> QuorumReplica:
    end, caught_up = replica.log_end_offset, replica.last_caught_up_timestamp
    return QuorumReplica(
        node_id=NodeId(replica.replica_id),
        end_offset=Offset(end) if end >= 0 else None,
        last_caught_up_ms=caught_up if caught_up >= 0 else None,
    )


def _log_dir(node_id: NodeId, result: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        node_id=node_id,
        path=result.log_dir,
        error=error_code(result.error_code),
        total_bytes=result.total_bytes,
        usable_bytes=result.usable_bytes,
        replicas=tuple(_replicas(result)),
        is_full=result.is_full,
    )


def _replicas(result: DescribeLogDirsResult) -> Iterator[ReplicaSize]:
    for topic in result.topics:
        for partition in topic.partitions:
            yield ReplicaSize(
                topic_partition=TopicPartition(topic.name, partition.partition_index),
                size_bytes=partition.partition_size,
                offset_lag=partition.offset_lag,
                is_future=partition.is_future_key,
            )
