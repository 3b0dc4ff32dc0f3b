"""Groups whose replicas move."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from tests.partitions.replication.cluster import KEY, Cluster
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.replication.reassigning import (
    NO_LIMIT,
    Reassignments,
    ReassignmentState,
    ReassignmentTiming,
    ReplicaWish,
)
from tidemark.protocol.types import NodeId

LOOK = 0.02


def nodes(*ids: int) -> tuple[NodeId, ...]:
    return tuple(sorted(map(NodeId, ids)))


class Moving(Cluster):
    """Brokers that all know what is wished; the first voters hold a replica, the rest are empty."""

    def __init__(
        self,
        count: int = 5,
        voters: tuple[int, ...] = (1, 2, 3),
        *,
        bytes_per_second: int = NO_LIMIT,
        timing: ReassignmentTiming | None = None,
    ) -> None:
        super().__init__(count)
        self.voters = voters
        self._options = (bytes_per_second, timing)
        self.parts = {node: self.part_of(node) for node in self.brokers}
        self.versions = 0
        self.wished: tuple[int, ...] | None = None
        for broker in self.brokers.values():
            broker.open(voters, preference=voters)
        self.run(1.0)
        assert self.leader().node_id == voters[0]

    def part_of(self, node: NodeId) -> Reassignments:
        limit, timing = self._options
        return Reassignments(self[node].node, bytes_per_second=limit, timing=timing)

    def wish(self, *replicas: int) -> None:
        self.wished = replicas
        self.tell(self.parts, replicas)

    def tell(self, brokers: Iterable[NodeId], replicas: tuple[int, ...]) -> None:
        self.versions += 1
        for node in brokers:
            self.parts[node].wish(KEY, ReplicaWish(tuple(map(NodeId, replicas)), self.versions))
            if node in self.brokers:
                self[node].node.peers.metadata_version = self.versions + 1

    def wish_unheard(self, by: int, *replicas: int) -> None:
        """The others hear of it; that broker goes by the wish before."""
        self.tell([node for node in self.parts if node != by], replicas)

    def strike(self) -> None:
        for part in self.parts.values():
            part.strike(KEY)

    def look(self) -> None:
        for node in list(self.brokers):
            self.parts[node].look(self.now)
        self.run(LOOK)

    def go(self, seconds: float) -> None:
        for _ in range(round(seconds / LOOK)):
            self.look()

    def again(self, node: int, rng: Random | None = None) -> None:
        """Start a broker that was killed on what is left of it."""
        files, state = self.kill(node, rng)
        self.revive(node, files, state)

    def revive(self, node: int, files: object, state: object) -> None:
        broker = self.start(node, files, state)  # type: ignore[arg-type]  # what `kill` returned
        broker.open(self.voters, preference=self.voters)
        self.parts[broker.node_id] = self.part_of(broker.node_id)
        if self.wished is not None:
            wish = ReplicaWish(tuple(map(NodeId, self.wished)), self.versions)
            self.parts[broker.node_id].wish(KEY, wish)
            broker.node.peers.metadata_version = self.versions + 1
        for one in self.brokers.values():
            for other in self.brokers.values():
                if one is not other:
                    one.node.peer_up(other.node_id, other.node.incarnation, self.now)

    @property
    def config(self) -> Configuration:
        return self.leader().replica().group.config

    @property
    def done(self) -> bool:
        return any(part.done() for part in self.parts.values())

    def state(self) -> ReassignmentState:
        (state,) = [state for part in self.parts.values() for _, state in part.states()]
        return state

    def wait_done(self, seconds: float = 20.0) -> None:
        for _ in range(round(seconds / LOOK)):
            if self.done:
                return
            self.look()
        raise AssertionError(f"still {self.state()}")

    def check(self, *voters: int, values: list[str]) -> None:
        """They alone vote, and hold all; the others could go."""
        assert self.config == Configuration(nodes(*voters), version=self.versions)
        self.go(0.5)
        for node in voters:
            assert self[node].committed_values() == values
        for node in list(self.brokers):
            if node not in voters:
                self.kill(node)
        self.go(3)
        self.leader().append("last")
        self.go(0.5)
        assert self.leader().committed_values() == [*values, "last"]
