"""What a request names again and again is answered once, where the answer says much of it.

With a topic of 300 partitions, 3,000 times its name in 12 KB was 40 seconds of the loop.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.handlers.producing import new_topic
from tests.broker.nodes import open_node
from tidemark.broker.handlers import HANDLERS
from tidemark.protocol.configs import ConfigResourceType
from tidemark.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tidemark.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tidemark.protocol.messages.describe_groups import DescribeGroupsRequest
from tidemark.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tidemark.protocol.messages.describe_rebalances import DescribeRebalancesRequest
from tidemark.protocol.messages.describe_replicas import (
    DescribeReplicasRequest,
    DescribeReplicasTopic,
)
from tidemark.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tidemark.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tidemark.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tidemark.protocol.registry import api_of
from tidemark.protocol.schema import Message

# Any: answers of whichever API it is.
CASES: Final[dict[str, tuple[Callable[[list[str]], Message], str]]] = {
    "Metadata": (
        lambda names: MetadataRequest(topics=[MetadataRequestTopic(name=each) for each in names]),
        "topics.name",
    ),
    "DescribeConfigs": (
        lambda names: DescribeConfigsRequest(
            resources=[
                DescribeConfigsResource(
                    resource_type=ConfigResourceType.TOPIC,
                    resource_name=each,
                    configuration_keys=None,
                )
                for each in names
            ]
        ),
        "results.resource_name",
    ),
    "DescribeReplicas": (
        lambda names: DescribeReplicasRequest(
            topics=[DescribeReplicasTopic(topic=each, partitions=None) for each in names]
        ),
        "topics.topic",
    ),
    "OffsetFetch": (
        lambda names: OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=each, topics=None) for each in names]
        ),
        "groups.group_id",
    ),
    "DescribeGroups": (lambda names: DescribeGroupsRequest(groups=names), "groups.group_id"),
    "ConsumerGroupDescribe": (
        lambda names: ConsumerGroupDescribeRequest(
            group_ids=names, include_authorized_operations=False
        ),
        "groups.group_id",
    ),
    "DescribeRebalances": (
        lambda names: DescribeRebalancesRequest(groups=names),
        "groups.group_id",
    ),
    "DescribeTransactions": (
        lambda names: DescribeTransactionsRequest(transactional_ids=names),
        "transaction_states.transactional_id",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_what_is_named_again_is_answered_once(tmp_path: Path, case: str) -> None:
    make, answered = CASES[case]
    request = make(["a", "b", "a", "a", "b"])
    api = api_of(type(request))
    version = min(api.max_version, 9 if case == "OffsetFetch" else api.max_version)
    elements, name = answered.split(".")
    async with open_node(tmp_path) as node:
        await new_topic(node, "a")
        handle: Any = HANDLERS[api.key]
        answer: Any = await ask(handle, node, request, version)
        assert [getattr(each, name) for each in getattr(answer, elements)] == ["a", "b"]


async def answer_about_one_topic(path: Path, request: Message) -> list[Any]:
    """What is said of each entry about a topic "a", which is there."""
    async with open_node(path) as node:
        await new_topic(node, "a")
        handle: Any = HANDLERS[api_of(type(request)).key]
        answer: Any = await ask(handle, node, request, 0)
        return [list(topic.partitions) for topic in answer.topics]


async def test_other_partitions_of_a_topic_are_other_replicas(tmp_path: Path) -> None:
    topics = [DescribeReplicasTopic(topic="a", partitions=each) for each in ([0], [1], [0])]
    found = await answer_about_one_topic(tmp_path, DescribeReplicasRequest(topics=topics))
    assert [[each.partition for each in of_entry] for of_entry in found] == [[0], [1]]


async def test_the_producers_of_a_partition_are_described_once(tmp_path: Path) -> None:
    topics = [TopicRequest(name="a", partition_indexes=each) for each in ([0, 0], [1, 0, 1])]
    found = await answer_about_one_topic(tmp_path, DescribeProducersRequest(topics=topics))
    assert [[each.partition_index for each in of_entry] for of_entry in found] == [[0], [1]]
