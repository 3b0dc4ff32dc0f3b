"""One request for many topics: in few rounds, on all brokers, and each answered by itself."""

from pathlib import Path

from tests.broker.clusters import open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tidemark.broker.handlers import CHANGES
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

TOPICS = 130
"""More than are made in one round."""


def wanted(name: str, partitions: int = 1) -> CreatableTopic:
    return CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=2, assignments=(), configs=()
    )


async def test_many_topics_are_made_and_answered_each_by_itself_whoever_is_asked(
    tmp_path: Path,
) -> None:
    async with open_brokers(tmp_path, 2) as brokers:
        leader = next(node for node in brokers.nodes if node.controller.is_here)
        other = next(node for node in brokers.nodes if node is not leader)
        good = [wanted(f"t-{n}") for n in range(TOPICS)]
        bad = {
            "none": ErrorCode.INVALID_PARTITIONS,
            "twice": ErrorCode.INVALID_REQUEST,
            "x_y": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        asked = [wanted("x.y"), wanted("twice"), *good, wanted("none", 0)]
        asked += [wanted("x_y"), wanted("twice")]
        request = CreateTopicsRequest(topics=asked, timeout_ms=30_000, validate_only=False)
        response = await ask(CHANGES[19].answer, other, request, 7)
        assert isinstance(response, CreateTopicsResponse)
        codes = {each.name: each.error_code for each in response.topics}
        assert list(codes) == list(dict.fromkeys(each.name for each in asked))
        assert {name: code for name, code in codes.items() if code} == bad
        for node in brokers.nodes:
            assert [topic.name for topic in node.topics] == ["x.y", *(t.name for t in good)]
            # Rounds place on what those before them have placed.
            assert set(node.cluster.state.load.leaders.values()) <= {TOPICS // 2, TOPICS // 2 + 1}
        await wait_until(
            lambda: all(leader.brokers.leader_of(PartitionKey(t.id, 0))[0] for t in leader.topics)
        )
