"""DescribeProducers: any replica answers, as with Kafka, and no other broker."""

from pathlib import Path

from tests.broker.clusters import insist, open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tests.broker.handlers.producing import batch, new_topic
from tests.broker.nodes import open_node
from tidemark.broker.handlers import describe_producers
from tidemark.broker.metadata.topic import NewTopic
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)
from tidemark.protocol.types import NodeId

PRODUCER = 7


async def describe(node: Node, topic: str = "t") -> PartitionResponse:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    answer = await ask(describe_producers.handle, node, request, 0)
    return answer.topics[0].partitions[0]


async def test_leader_and_follower_tell_the_same_and_others_nothing(tmp_path: Path) -> None:
    async with open_brokers(tmp_path, 3) as brokers:
        holders, stranger = (brokers[1], brokers[2]), brokers[3]
        replicas = tuple(NodeId(node.node_id) for node in holders)
        await brokers.create(NewTopic(name="t", assignments=(replicas,)))
        await wait_until(lambda: all(node.topics.replica("t", 0) for node in holders))
        data = batch(b"a", b"b", producer_id=PRODUCER, producer_epoch=0, base_sequence=0)

        async def produce() -> None:
            for node in holders:
                replica = node.topics.replica_here("t", 0)
                if replica.is_serving:
                    replica.produce(bytearray(data), api_version=9)
                    return
            raise holders[0].topics.replica_here("t", 0).why_not_serving()

        await insist(produce)
        found = [holder.topics.replica_here("t", 0) for holder in holders]
        await wait_until(lambda: all(replica.log_end == 2 for replica in found))
        assert {replica.is_serving for replica in found} == {True, False}
        for node in holders:
            answer = await describe(node)
            assert answer.error_code == ErrorCode.NONE
            (producer,) = answer.active_producers
            assert (producer.producer_id, producer.last_sequence) == (PRODUCER, 1)
        assert (await describe(stranger)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await describe(stranger, "u")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_replica_that_has_failed_tells_nothing(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        replica = await new_topic(node)
        data = batch(b"a", producer_id=PRODUCER, producer_epoch=0, base_sequence=0)
        replica.produce(bytearray(data), api_version=9)
        replica.member.fail("its log is corrupt")
        answer = await describe(node)
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert answer.error_message == "its log is corrupt"
        assert answer.active_producers == ()


async def test_a_name_that_no_topic_can_have_is_told_from_one_that_none_has(tmp_path: Path) -> None:
    async with open_node(tmp_path) as node:
        for name, code in (
            ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("no/pe", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ):
            assert (await describe(node, name)).error_code == code
