"""Brokers that were away, or are of another version than the one that leads the metadata."""

import json
from pathlib import Path

import pytest
import trio

from tests.broker.clusters import open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tests.broker.nodes import open_node
from tidemark.broker.handlers import CHANGES
from tidemark.broker.metadata import cluster_replica, cluster_snapshots, open_metadata
from tidemark.broker.metadata.cluster_replica import ClusterReplica, open_cluster_replica
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.replication.applier import Applier
from tidemark.partitions.state_machines import cluster_commands
from tidemark.partitions.state_machines.cluster_commands import AllocateProducerIds
from tidemark.protocol.errors import ErrorCode, StorageError
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import NodeId, Offset


async def allocate(node: Node, times: int) -> None:
    for _ in range(times):
        await node.controller.allocate_producer_ids(1)


async def test_a_broker_that_was_away_for_long_keeps_the_snapshot_that_it_is_sent_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log begins there from then on, and the journal does not have it for ever."""

    async def reset_while_it_is_opened(
        services: ReplicaServices, voters: tuple[NodeId, ...], applier: Applier
    ) -> Replica:
        replica = await open_cluster_replica(services, voters, applier)
        await wait_until(lambda: applier.applied > 8)
        return replica

    monkeypatch.setattr(cluster_snapshots, "COMMANDS_MAX", 3)
    async with open_brokers(tmp_path, 3) as brokers:
        await brokers.stop(3)
        leader = next(node for node in brokers.nodes if node.controller.is_here)
        await allocate(leader, 12)
        await wait_until(lambda: _log_start(leader) > 8)
        monkeypatch.setattr(cluster_snapshots, "COMMANDS_MAX", 1000)
        monkeypatch.setattr(open_metadata, "open_cluster_replica", reset_while_it_is_opened)
        await brokers.start(3)
        await brokers.stop(3)
        await brokers.start(3)
        assert brokers[3].cluster.state.version >= 12


def _log_start(node: Node) -> Offset:
    replica = node.cluster._group
    assert isinstance(replica, ClusterReplica)
    return replica.log_start


async def test_a_broker_goes_no_further_than_it_can_read_and_on_from_there_once_it_is_upgraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_node(tmp_path) as node:
        await allocate(node, 1)
        at_version = node.cluster.state.version
        newer = {"do": "Nap", "at_version": at_version, "node_id": 1, "count": 5}
        group = node.cluster._group
        group.append_own(encode_batch([Record(value=json.dumps(newer).encode())]))
        with trio.fail_after(10):
            await wait_until(lambda: group.failure is not None)
        assert [each.message for each in caplog.records if "knows no Nap" in each.message]
        refused = await _delete(node, "waves")
        assert refused == (ErrorCode.NOT_CONTROLLER, node.cluster.why_leaderless)
        assert "newest version" in node.cluster.why_leaderless
    monkeypatch.setattr(cluster_replica, "LEADER_SECONDS_MAX", 0.1)
    with pytest.raises(StorageError, match=r"knows no Nap.*newest version"):
        async with open_node(tmp_path):
            pass
    monkeypatch.setitem(cluster_commands._BY_NAME, "Nap", AllocateProducerIds)
    async with open_node(tmp_path) as node:
        assert node.cluster.state.version > at_version
        assert (await node.controller.allocate_producer_ids(1)).first == 6


async def _delete(node: Node, topic: str) -> tuple[ErrorCode, str | None]:
    request = DeleteTopicsRequest(topics=(DeleteTopicState(name=topic),), timeout_ms=100)
    (response,) = (await ask(CHANGES[20].answer, node, request, 6)).responses
    return ErrorCode(response.error_code), response.error_message
