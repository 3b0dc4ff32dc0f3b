"""Brokers that were away, or are of another version than the one that leads the metadata."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.broker.clusters import Brokers, open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tests.broker.nodes import open_node
from tidemark.broker.handlers import CHANGES
from tidemark.broker.metadata import cluster_replica, cluster_snapshots, open_metadata
from tidemark.broker.metadata.cluster_replica import ClusterReplica, open_cluster_replica
from tidemark.broker.node import Node
from tidemark.broker.peers import dialing, hello, network
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.partitions.replication.applier import Applier
from tidemark.partitions.state_machines import cluster_commands
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import AllocateProducerIds, AlterAcls
from tidemark.partitions.state_machines.cluster_values import BrokerMetadata
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidemark.protocol.messages.peer.hello import HelloRequest, HelloResponse
from tidemark.protocol.messages.peer.versions import FIRST_VERSION, LAST_VERSION
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


def speak(monkeypatch: pytest.MonkeyPatch, node: int, version: int) -> None:
    """Have a broker say that this is the newest version it speaks, as an older release does."""

    def hello_to(to: NodeId, own: BrokerMetadata, cluster_id: str) -> HelloRequest:
        said = hello.hello_to(to, own, cluster_id)
        return replace(said, newest_version=version) if own.node_id == node else said

    def answer(
        asked: HelloRequest, own: BrokerMetadata, refused: hello.Refused | None, *, is_known: bool
    ) -> HelloResponse:
        said = hello.answer(asked, own, refused, is_known=is_known)
        return replace(said, version=version) if own.node_id == node else said

    monkeypatch.setattr(dialing, "hello_to", hello_to)
    monkeypatch.setattr(network, "answer", answer)


def acls(state: ClusterState) -> AlterAcls:
    return AlterAcls(at_version=state.version, added=(), removed=())


@asynccontextmanager
async def beside_an_older_release(tmp_path: Path) -> AsyncIterator[tuple[Brokers, Node]]:
    """Three brokers, of which the third is older, and one of the others, which leads."""
    async with open_brokers(tmp_path, 3) as brokers:
        if brokers[3].controller.is_here:
            await brokers.stop(3)
            await brokers.start(3)
        leader = next(node for node in brokers.nodes if node.controller.is_here)
        assert leader.node_id != 3
        with pytest.raises(RequestError, match="broker 3 runs an older release") as raised:
            await leader.cluster.propose(acls)
        assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
        await allocate(leader, 1)
        yield brokers, leader


async def test_what_a_broker_of_an_older_release_cannot_follow_waits_until_it_is_upgraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speak(monkeypatch, 3, FIRST_VERSION)
    async with beside_an_older_release(tmp_path) as (brokers, leader):
        await brokers.stop(3)
        monkeypatch.undo()
        await brokers.start(3)
        await wait_until(lambda: brokers.peers(leader.node_id).versions[NodeId(3)] == LAST_VERSION)
        await leader.cluster.propose(acls)
        await wait_until(lambda: brokers[3].cluster.state.version >= leader.cluster.state.version)


async def test_a_broker_of_an_older_release_that_is_away_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is being upgraded, or never comes back."""
    speak(monkeypatch, 3, FIRST_VERSION)
    async with beside_an_older_release(tmp_path) as (brokers, leader):
        await brokers.stop(3)
        await wait_until(lambda: not leader.brokers.is_alive(NodeId(3)))
        await leader.cluster.propose(acls)
