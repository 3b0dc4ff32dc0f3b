"""DescribeCluster, DescribeLogDirs, and what else there is to know of brokers."""

from pathlib import Path

import pytest

from tests.broker.clusters import open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tests.broker.nodes import open_node
from tidemark.broker.access.operations import ALL_BITS
from tidemark.broker.config import Address
from tidemark.broker.handlers import (
    alter_replica_log_dirs,
    describe_cluster,
    describe_log_dirs,
    list_config_resources,
)
from tidemark.broker.metadata.topic import NewTopic
from tidemark.protocol.acls import ResourceType
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tidemark.protocol.messages.describe_cluster import DescribeClusterRequest
from tidemark.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from tidemark.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tidemark.protocol.messages.metadata import NOT_ASKED
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import NodeId, Offset


@pytest.mark.parametrize("version", range(3))
async def test_the_cluster_is_this_broker_at_the_address_the_client_can_reach(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path, node_id=3, broker_rack="r1") as node:
        for asked, told in ((True, ALL_BITS[ResourceType.CLUSTER]), (False, NOT_ASKED)):
            response = await ask(
                describe_cluster.handle,
                node,
                DescribeClusterRequest(include_cluster_authorized_operations=asked),
                version,
                listener=Address("kafka.example.org", 19092),
            )
            (broker,) = response.brokers
            assert (broker.broker_id, broker.rack) == (3, "r1")
            assert (broker.host, broker.port) == ("kafka.example.org", 19092)
            assert response.controller_id == 3
            assert response.cluster_id == node.cluster_id
            assert response.cluster_authorized_operations == told


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
async def test_a_broker_lists_nothing_but_brokers(
    tmp_path: Path, endpoint_type: int, code: ErrorCode
) -> None:
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=endpoint_type
    )
    async with open_node(tmp_path) as node:
        with pytest.raises(RequestError) as raised:
            await ask(describe_cluster.handle, node, request, 1)
        assert raised.value.code is code


@pytest.mark.parametrize("version", range(1, 5))
async def test_the_data_directory_is_described_with_the_size_of_each_partition(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path) as node:
        topic = await node.topics.create(NewTopic(name="waves", partitions=2))
        batch = encode_batch([Record(offset=Offset(0), timestamp_ms=1, key=None, value=b"x" * 50)])
        topic.replicas[1].produce(bytearray(batch), api_version=9)
        response = await ask(
            describe_log_dirs.handle, node, DescribeLogDirsRequest(topics=None), version
        )
        (directory,) = response.results
        assert directory.log_dir == str(tmp_path)
        sizes = {
            (each.name, partition.partition_index): partition.partition_size
            for each in directory.topics
            for partition in each.partitions
        }
        assert sizes == {("waves", 0): 0, ("waves", 1): len(batch)}
        if version >= 4:
            assert 0 < directory.usable_bytes <= directory.total_bytes
        assert not directory.is_full


async def test_only_the_partitions_asked_for_are_described_and_each_once(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", partitions=3))
        request = DescribeLogDirsRequest(
            topics=(
                DescribableLogDirTopic(topic="waves", partitions=(2, 2, 7)),
                DescribableLogDirTopic(topic="none", partitions=(0,)),
                DescribableLogDirTopic(topic="waves", partitions=(2, 0)),
            )
        )
        response = await ask(describe_log_dirs.handle, node, request, 4)
        (waves,) = response.results[0].topics
        assert [partition.partition_index for partition in waves.partitions] == [2, 0]


async def test_topics_that_are_on_other_brokers_only_are_left_out(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 2) as brokers:
        await brokers.create(NewTopic(name="here", assignments=((NodeId(1), NodeId(2)),)))
        await brokers.create(NewTopic(name="there", assignments=((NodeId(1),),)))
        node = brokers[2]
        await wait_until(lambda: node.topics.replica("here", 0) is not None)
        await wait_until(lambda: node.topics.get("there") is not None)
        response = await ask(describe_log_dirs.handle, node, DescribeLogDirsRequest(topics=None), 4)
        assert [each.name for each in response.results[0].topics] == ["here"]


@pytest.mark.parametrize("version", [1, 2])
async def test_a_replica_is_in_the_brokers_one_directory_and_in_no_other(
    tmp_path: Path, version: int
) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", partitions=1))
        topics = [AlterReplicaLogDirTopic(name="waves", partitions=[0, 7])]
        request = AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(path=str(path), topics=topics)
                for path in (tmp_path, Path("/no"))
            ]
        )
        response = await ask(alter_replica_log_dirs.handle, node, request, version)
        assert [[each.error_code for each in topic.partitions] for topic in response.results] == [
            [ErrorCode.NONE, ErrorCode.REPLICA_NOT_AVAILABLE],
            [ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.LOG_DIR_NOT_FOUND],
        ]


@pytest.mark.parametrize(
    ("version", "kinds", "found"),
    [
        (1, [], [(2, "waves"), (4, "1")]),
        (1, [4], [(4, "1")]),
        (1, [16], []),
        (0, [], []),
    ],
)
async def test_what_has_configs_is_listed(
    tmp_path: Path, version: int, kinds: list[int], found: list[tuple[int, str]]
) -> None:
    async with open_node(tmp_path) as node:
        await node.topics.create(NewTopic(name="waves", partitions=1))
        request = ListConfigResourcesRequest(resource_types=kinds)
        response = await ask(list_config_resources.handle, node, request, version)
        listed = [(each.resource_type, each.resource_name) for each in response.config_resources]
        assert (response.error_code, listed) == (ErrorCode.NONE, found)
