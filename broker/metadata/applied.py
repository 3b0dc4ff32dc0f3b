"""The cluster's metadata as whoever follows them on this broker sees them."""

from __future__ import annotations

from typing import Protocol

from tidemark.partitions.state_machines.cluster import ClusterState


class Metadata(Protocol):
    """What is applied here, and what soon will be."""

    @property
    def state(self) -> ClusterState: ...
    async def wait_version(self, version: int) -> None: ...
