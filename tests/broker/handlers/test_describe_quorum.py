"""DescribeQuorum, as old clients ask it too; with several brokers in `test_many_brokers`."""

from pathlib import Path

import pytest

from tests.broker.handlers.asking import ask
from tests.broker.handlers.producing import new_topic
from tests.broker.nodes import open_node
from tidemark.broker.handlers import CHANGES
from tidemark.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from tidemark.protocol.messages.describe_quorum_response import DescribeQuorumResponse

_API = 55


@pytest.mark.parametrize("version", range(3))
async def test_every_version_says_who_votes_and_the_last_one_where_they_are(
    tmp_path: Path, version: int
) -> None:
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name="t", partitions=[PartitionData(partition_index=0)])]
    )
    async with open_node(tmp_path, node_id=3) as node:
        await new_topic(node)
        answer = await ask(CHANGES[_API].answer, node, request, version)
        assert isinstance(answer, DescribeQuorumResponse)
        (partition,) = answer.topics[0].partitions
        assert [voter.replica_id for voter in partition.current_voters] == [3]
        assert [each.node_id for each in answer.nodes] == ([3] if version == 2 else [])
