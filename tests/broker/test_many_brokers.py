"""Three brokers: what one of them decides, all know; and what becomes of it when one is gone."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from traceback import format_exception

import pytest
import trio

from tests.broker.clusters import Brokers, open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tidemark.broker.config import BrokerSettings
from tidemark.broker.handlers import CHANGES, describe_replicas, metadata
from tidemark.broker.metadata import cluster_snapshots
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.broker.server import open_broker
from tidemark.partitions.storage.files import Space
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, StorageError
from tidemark.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tidemark.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidemark.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tidemark.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from tidemark.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
)
from tidemark.protocol.messages.describe_quorum_response import (
    PartitionData as QuorumOfPartition,
)
from tidemark.protocol.messages.describe_replicas import (
    DescribeReplicasRequest,
    DescribeReplicasResponse,
    DescribeReplicasTopic,
)
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tidemark.protocol.types import NodeId


async def create(node: Node, name: str, *, partitions: int = 3, replicas: int = 3) -> ErrorCode:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=(),
        configs=(),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=5000, validate_only=False)
    response = await ask(CHANGES[19].answer, node, request, 7)
    assert isinstance(response, CreateTopicsResponse)
    return ErrorCode(response.topics[0].error_code)


async def described(node: Node) -> MetadataResponse:
    # Whoever looks again and again lets the brokers do something between.
    await trio.sleep(0.01)
    return await ask(metadata.handle, node, MetadataRequest(topics=None), 12)


async def quorum(node: Node, topic: str = "__cluster_metadata") -> QuorumOfPartition:
    request = DescribeQuorumRequest(
        topics=(TopicData(topic_name=topic, partitions=(PartitionData(partition_index=0),)),)
    )
    response: DescribeQuorumResponse = await ask(CHANGES[55].answer, node, request, 2)
    assert response.error_code == ErrorCode.NONE
    return response.topics[0].partitions[0]


async def wait_voters(brokers: Brokers, voters: Sequence[int]) -> None:
    with trio.fail_after(40):
        while True:
            partition = await quorum(brokers.nodes[0])
            if [each.replica_id for each in partition.current_voters] == list(voters):
                return
            await trio.sleep(0.05)


def leaders(response: MetadataResponse) -> list[int]:
    return [p.leader_id for topic in response.topics for p in topic.partitions]


async def test_what_one_broker_decides_all_know(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3, broker_rack="r") as brokers:
        assert len({node.cluster_id for node in brokers.nodes}) == 1
        await wait_voters(brokers, [1, 2, 3])
        for node in brokers.nodes:
            # Whoever is asked, the topic is there at once.
            name = f"of-{node.node_id}"
            assert await create(node, name) is ErrorCode.NONE
            assert node.topics.get(name) is not None
            assert await create(node, name) is ErrorCode.TOPIC_ALREADY_EXISTS
        seen = [await described(node) for node in brokers.nodes]
        for response in seen:
            assert [broker.node_id for broker in response.brokers] == [1, 2, 3]
            assert {broker.rack for broker in response.brokers} == {"r"}
            assert len({broker.port for broker in response.brokers}) == 3
            assert response.controller_id in (1, 2, 3)
        # Who is in sync only the leader knows; the others soon know what it has committed.
        with trio.fail_after(20):
            while len({str(response.topics) for response in seen}) > 1:
                seen = [await described(node) for node in brokers.nodes]
        for topic in seen[0].topics:
            preferred = [partition.replica_nodes[0] for partition in topic.partitions]
            assert sorted(preferred) == [1, 2, 3], "evenly spread"
            for partition in topic.partitions:
                assert sorted(partition.replica_nodes) == [1, 2, 3]
                assert partition.leader_id in (1, 2, 3)


async def test_the_quorum_is_described_by_whoever_is_asked(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 4) as brokers:
        await wait_voters(brokers, [1, 2, 3])
        told = [await quorum(node) for node in brokers.nodes]
        assert {partition.leader_id for partition in told} == {brokers[4].brokers.controller}
        for partition in told:
            assert [each.replica_id for each in partition.observers] == [4]
            assert all(each.log_end_offset >= 0 for each in partition.current_voters)
        await create(brokers[1], "waves", partitions=1, replicas=3)
        (view,) = (await described(brokers[1])).topics[0].partitions
        partition = await quorum(brokers[view.leader_id], "waves")
        voters = [each.replica_id for each in partition.current_voters]
        assert voters == sorted(view.replica_nodes)
        elsewhere = await quorum(
            brokers[next(n for n in range(1, 5) if n != view.leader_id)], "waves"
        )
        assert elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert elsewhere.leader_id == view.leader_id


async def test_of_a_replica_that_this_leader_never_heard_nobody_says_how_far_it_is(
    tmp_path: Path,
) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        await wait_voters(brokers, [1, 2, 3])
        await create(brokers[1], "waves", partitions=1, replicas=3)
        gone, again, stays = 1, 2, 3
        await brokers.stop(gone)
        await brokers.stop(again)  # now nobody leads, and who leads next has not led before
        await brokers.start(again)
        topic = brokers[stays].topics.get("waves")
        assert topic is not None
        key = PartitionKey(topic.id, 0)
        left = (again, stays)
        await wait_until(lambda: any(_heard(brokers[n], key) >= {*left} for n in left))
        leader = next(brokers[n] for n in left if _heard(brokers[n], key))
        voters = (await quorum(leader, "waves")).current_voters
        assert [each.log_end_offset for each in voters if each.replica_id == gone] == [-1]
        request = DescribeReplicasRequest(topics=(DescribeReplicasTopic(topic="waves"),))
        answer: DescribeReplicasResponse = await ask(describe_replicas.handle, leader, request, 1)
        replicas = answer.topics[0].partitions[0].replicas
        assert [(r.end_offset, r.lag_records) for r in replicas if r.broker == gone] == [(-1, -1)]


def _heard(node: Node, key: PartitionKey) -> set[int]:
    """Whose logs the leader knows; nobody's if this broker does not lead."""
    told = node.brokers.quorum(key)
    return set() if told is None else {v.node_id for v in told.voters if v.end_offset >= 0}


async def test_new_partitions_pass_over_a_broker_whose_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, full, crowded = OsFiles.space, NodeId(3), list[str]()

    def told(files: OsFiles, path: str) -> Space:
        found = space(files, path)
        return found._replace(free_bytes=0) if path in crowded else found

    monkeypatch.setattr(OsFiles, "space", told)
    async with open_brokers(tmp_path, 3) as brokers:
        await wait_voters(brokers, [1, 2, 3])
        crowded.append(str(brokers[full].settings.data_dir))
        leader = brokers[brokers[1].brokers.controller or 0]
        await wait_until(lambda: leader.brokers.is_full(full))
        assert await create(brokers[1], "waves", partitions=6, replicas=2) is ErrorCode.NONE
        grown = CreatePartitionsTopic(name="waves", count=12, assignments=None)
        more = CreatePartitionsRequest(topics=(grown,), timeout_ms=5000, validate_only=False)
        answer: CreatePartitionsResponse = await ask(CHANGES[37].answer, brokers[1], more, 3)
        assert answer.results[0].error_code == ErrorCode.NONE
        # Where the others are too few, it is better than none.
        assert await create(brokers[1], "tides", partitions=1, replicas=3) is ErrorCode.NONE
        topics = {topic.name: topic for topic in (await described(brokers[1])).topics}
        holders = [sorted(each.replica_nodes) for each in topics["waves"].partitions]
        assert holders == [[1, 2]] * 12
        assert sorted(topics["tides"].partitions[0].replica_nodes) == [1, 2, 3]


async def test_after_the_controller_is_gone_another_one_goes_on(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3, broker_session_timeout_ms=0) as brokers:
        await wait_voters(brokers, [1, 2, 3])
        await create(brokers[2], "waves", partitions=6)
        gone = brokers[1].brokers.controller
        assert gone is not None
        before = {
            p.partition_index: p.leader_epoch
            for p in (await described(brokers[2])).topics[0].partitions
        }
        await brokers.stop(gone)
        started = trio.current_time()
        for node in brokers.nodes:
            assert await create(node, f"by-{node.node_id}", replicas=2) is ErrorCode.NONE
        assert trio.current_time() - started < 20
        for node in brokers.nodes:
            await wait_until(partial(_has_other_controller, node, gone))
        with trio.fail_after(20):
            while -1 in leaders(response := await described(brokers.nodes[0])):  # noqa: ASYNC110  # no event says so
                await trio.sleep(0.02)
        assert gone not in {broker.node_id for broker in response.brokers}
        waves = next(topic for topic in response.topics if topic.name == "waves")
        for partition in waves.partitions:
            assert partition.leader_id not in (gone, -1)
            assert gone in partition.offline_replicas
            assert gone not in partition.isr_nodes
            assert partition.leader_epoch >= before[partition.partition_index]
        await brokers.start(gone)
        node = brokers[gone]
        await wait_until(lambda: node.topics.get(f"by-{brokers.nodes[0].node_id}") is not None)


def _has_other_controller(node: Node, gone: int) -> bool:
    return node.brokers.controller not in (gone, None)


async def test_a_cluster_that_was_stopped_comes_back(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        await wait_voters(brokers, [1, 2, 3])
        await create(brokers[3], "waves")
        topic_id = brokers[1].topics.get("waves").id  # type: ignore[union-attr]  # it is there
        await brokers.stop(1, 2, 3)
        async with trio.open_nursery() as starting:
            for number in (1, 2, 3):
                starting.start_soon(brokers.start, number)
        for number in (1, 2, 3):
            await wait_until(lambda n=number: brokers[n].topics.by_id(topic_id) is not None)  # type: ignore[misc]  # a default
        assert await create(brokers[2], "tides") is ErrorCode.NONE


async def test_the_founder_starts_without_the_others_and_serves_what_it_holds_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was the only voter on the metadata once, and is not any more."""
    monkeypatch.setattr(cluster_snapshots, "COMMANDS_MAX", 1)
    async with open_brokers(tmp_path, 3) as brokers:
        await brokers.create(NewTopic(name="alone", assignments=((NodeId(1),),)))
        await wait_until(lambda: brokers[1].topics.replica("alone", 0) is not None)
        await brokers.stop(1, 2, 3)
        with trio.fail_after(40):
            await brokers.start(1)
        assert brokers[1].topics.replica_here("alone", 0).is_serving
        assert brokers[1].brokers.controller is None


async def test_a_deleted_topic_goes_from_every_disk(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        await create(brokers[1], "waves")
        await wait_until(lambda: len(list(tmp_path.glob("3/waves-*"))) == 3)
        await brokers.stop(3)
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name="waves"),), timeout_ms=5000)
        await ask(CHANGES[20].answer, brokers[2], request, 6)
        await wait_until(lambda: not list(tmp_path.glob("[12]/waves-*")))
        assert list(tmp_path.glob("3/waves-*"))  # noqa: ASYNC240 # a moment
        await brokers.start(3)
        assert brokers[3].topics.get("waves") is None
        await wait_until(lambda: not list(tmp_path.glob("3/waves-*")))


async def test_a_name_that_was_used_again_meanwhile_is_another_topics(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        await create(brokers[1], "waves", partitions=1)
        old = brokers[3].topics.get("waves")
        assert old is not None
        await wait_until(lambda: brokers[3].topics.replica("waves", 0) is not None)
        await brokers.stop(3)
        request = DeleteTopicsRequest(topics=(DeleteTopicState(name="waves"),), timeout_ms=5000)
        await ask(CHANGES[20].answer, brokers[2], request, 6)
        await create(brokers[1], "waves", partitions=1)
        await brokers.start(3)
        await wait_until(lambda: brokers[3].topics.replica("waves", 0) is not None)
        replica = brokers[3].topics.replica("waves", 0)
        assert replica is not None
        assert replica.topic_id != old.id
        await wait_until(lambda: len(list(tmp_path.glob("3/waves-*"))) == 1)


async def test_a_number_in_use_is_refused(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 2) as brokers:
        settings = brokers.settings(9, node_id=2)
        with pytest.RaisesGroup(StorageError, flatten_subgroups=True) as raised:
            await serve_for_a_moment(settings)
        refusals = raised.value.split(StorageError)[0]
        assert refusals is not None
        assert "there is a broker 2 already" in "".join(format_exception(refusals))


async def serve_for_a_moment(settings: BrokerSettings) -> None:
    async with open_broker(settings):
        pass


async def test_the_topic_of_commits_is_replicated_and_made_once(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3, offsets_topic_num_partitions=2) as brokers:
        async with trio.open_nursery() as nursery:
            for node in brokers.nodes:
                nursery.start_soon(node.topics.ensure_own, "__consumer_offsets")
        made = [node.topics.get("__consumer_offsets") for node in brokers.nodes]
        assert len({topic.id for topic in made if topic is not None}) == 1
        assert all(topic is not None and topic.replication_factor == 3 for topic in made)
        with trio.fail_after(20):
            topic = await brokers[2].topics.ensure(NewTopic(name="by-use"))
        assert topic.partition_count == 4
