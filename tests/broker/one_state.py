"""Metadata that takes commands, on one broker."""

from __future__ import annotations

from tidemark.partitions.state_machines.cluster import Applied, ClusterState


class OneState:
    """The metadata, which change at once."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state

    async def propose(self, decide: object) -> Applied:
        assert callable(decide)
        return self.state.apply(decide(self.state))
