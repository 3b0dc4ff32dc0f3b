"""The cluster: brokers, disks, what they speak."""

from collections.abc import Collection, Iterator

from tidemark.client.admin.calls import Calls
from tidemark.client.cluster import ClusterView
from tidemark.client.codes import check, error_code
from tidemark.client.connection import Connection
from tidemark.client.descriptions import (
    ApiRange,
    BrokerDescription,
    ClusterDescription,
    LogDirDescription,
    ReplicaSize,
)
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tidemark.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from tidemark.protocol.registry import APIS
from tidemark.protocol.types import NodeId, TopicPartition


class ClusterAdmin(Calls):
    """The calls about the cluster and its brokers."""

    async def describe_cluster(self) -> ClusterDescription:
        """Id, controller and brokers."""
        return await self._on_any_broker(self._describe_cluster)

    async def _describe_cluster(self, connection: Connection) -> ClusterDescription:
        try:
            connection.version(DescribeClusterRequest)
        except RequestError:
            return _from_view(
                ClusterView().updated(await self._network.ask_metadata([], may_create=False))
            )
        answer = await connection.request(
            DescribeClusterRequest(include_cluster_authorized_operations=False),
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
                )
                for broker in sorted(answer.brokers, key=lambda broker: broker.broker_id)
            ),
        )

    async def describe_log_dirs(
        self, node_ids: Collection[NodeId] | None = None
    ) -> list[LogDirDescription]:
        """The data directories of these brokers (all if None) with their replicas' sizes."""
        if node_ids is None:
            await self._network.refresh()
            node_ids = sorted(self._network.view.brokers)
        described: list[LogDirDescription] = []
        for node_id in node_ids:
            described += await self._log_dirs_of(node_id)
        return described

    async def _log_dirs_of(self, node_id: NodeId) -> list[LogDirDescription]:
        async def attempt() -> list[LogDirDescription]:
            connection = await self._network.connection_to(node_id)
            answer = await connection.request(
                DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse
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


def _log_dir(node_id: NodeId, result: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        node_id=node_id,
        path=result.log_dir,
        error=error_code(result.error_code),
        total_bytes=result.total_bytes,
        usable_bytes=result.usable_bytes,
        replicas=tuple(_replicas(result)),
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
