"""The cluster: brokers, disks, what they speak."""

from collections.abc import Collection

from tidemark.client.descriptions import ApiRange, ClusterDescription, LogDirDescription
from tidemark.protocol.types import NodeId


class ClusterAdmin:
    """The calls about the cluster and its brokers."""

    async def describe_cluster(self) -> ClusterDescription:
        """Id, controller and brokers."""
        raise NotImplementedError

    async def describe_log_dirs(
        self, node_ids: Collection[NodeId] | None = None
    ) -> list[LogDirDescription]:
        """The data directories of these brokers (all if None) with their replicas' sizes."""
        raise NotImplementedError

    async def api_versions(self, node_id: NodeId | None = None) -> list[ApiRange]:
        """What a broker says it speaks, by API key; any broker if None."""
        raise NotImplementedError
