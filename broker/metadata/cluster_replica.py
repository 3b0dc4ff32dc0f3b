"""The replica of the metadata's group on this broker: who leads it, its log, and pulling it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import trio

from tidemark.broker.metadata.brokers import Quorum, Standing
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY, AppendedCommand
from tidemark.broker.metadata.non_voters import parents_of
from tidemark.broker.replicas.driver import ReplicationDriver
from tidemark.broker.replicas.opening import (
    LEADER_SECONDS_MAX,
    open_replicas,
    wait_leaders,
    wait_lone_leaders,
)
from tidemark.broker.replicas.replica import Replica, ReplicaSpec
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.replication.applier import Applier
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.state_machines.cluster_machine import CLUSTER_ID, CLUSTER_TOPIC
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, NodeId, Offset

# What lies below a snapshot goes a segment at a time, and the one that is written to stays.
_SEGMENT_BYTES: Final = 4 << 20
_CONFIG: Final = TopicConfig.from_overrides(
    {"flush": "commit", "retention.ms": "-1", "segment.bytes": str(_SEGMENT_BYTES)}
)


async def open_cluster_replica(
    services: ReplicaServices, voters: tuple[NodeId, ...], applier: Applier
) -> Replica:
    """Take part in the group from now on, and wait a little for its leader.

    Raises `StorageError` if its files cannot be served, or say what this version cannot read.
    """
    spec = ReplicaSpec(
        topic=CLUSTER_TOPIC,
        topic_id=CLUSTER_ID,
        partition=CLUSTER_KEY.partition,
        config=_CONFIG,
        voters=voters,
        applier=applier,
    )
    (replica,) = await open_replicas(services, [spec])
    await wait_lone_leaders(services, [replica])
    if replica.is_available:
        with trio.move_on_after(LEADER_SECONDS_MAX):
            await wait_leaders(services, [replica])
    failure = _failure(replica)
    if failure is not None:
        raise StorageError(f"the cluster's metadata cannot be served: {failure}")
    return replica


def _failure(replica: Replica) -> str | None:
    return replica.member.failure if replica.is_available else replica.failure


class ClusterReplica:
    """What the metadata need of it."""

    def __init__(self, replica: Replica, services: ReplicaServices) -> None:
        self.replica = replica
        self._services = services

    @property
    def is_serving(self) -> bool:
        return self.replica.is_serving

    @property
    def leader(self) -> NodeId | None:
        return self._services.driver.leader_of(CLUSTER_KEY)[0]

    @property
    def epoch(self) -> Epoch:
        return self.replica.epoch

    @property
    def failure(self) -> str | None:
        """Why it takes no part any more."""
        return _failure(self.replica)

    @property
    def voters(self) -> tuple[NodeId, ...]:
        """Who votes, as far as this broker's log says."""
        return self.replica.member.group.config.members

    @property
    def log_start(self) -> Offset:
        return self.replica.log_start

    def append_own(self, batches: bytes) -> AppendedCommand:
        return self.replica.append_own(batches)

    async def give_up_below(self, offset: Offset) -> None:
        """Move the log's start there, durably; what lies below is removed soon."""
        driver, member = self._services.driver, self.replica.member

        def move() -> None:
            member.move_log_start(offset)
            driver.touch()

        self._services.turn.run(move)
        await driver.wait_durable()

    def follow(self) -> None:
        """Pull from the voters, or their leader, while this broker is none of them. In a turn;
        again when they, or the leader, have changed: a learner that did not become a voter has to
        begin again."""
        if self.replica.is_available and not self.replica.member.group.is_voter:
            node = self._services.driver.node
            node.observe(CLUSTER_KEY, parents_of(node, self.replica.member))
            self._services.driver.touch()


class GroupLiveness:
    """Who lives and leads, as this broker's groups know it."""

    def __init__(self, driver: ReplicationDriver) -> None:
        self._driver = driver
        self._node: ReplicationNode = driver.node

    def is_alive(self, node: NodeId) -> bool:
        return node == self._node.node_id or self._node.peers.is_alive(node)

    def silent_seconds(self, node: NodeId) -> float:
        return self._driver.silent_seconds(node)

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        return self._node.leader_of(key)

    def lagging(self, key: PartitionKey, nodes: Collection[NodeId]) -> Collection[NodeId]:
        replica = self._node.get(key)
        if replica is None or not replica.is_leader:
            return ()
        holding = (self._node.node_id, *replica.group.holding(replica.committed))
        return [node for node in nodes if node not in holding]

    def quorum(self, key: PartitionKey) -> Quorum | None:
        replica = self._node.get(key)
        if replica is None or not replica.is_leader:
            return None
        last = replica.group.shape.last
        own = Standing(self._node.node_id, replica.log_end, True)
        others = [
            (each.is_voter, Standing(each.node, each.end_offset, each.match == last))
            for each in replica.group.progress()
        ]
        voters = [own, *(standing for is_voter, standing in others if is_voter)]
        return Quorum(
            epoch=replica.epoch,
            high_watermark=replica.high_watermark,
            voters=sorted(voters),
            learners=sorted(standing for is_voter, standing in others if not is_voter),
        )
