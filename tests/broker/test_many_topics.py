"""One request for many topics: in few rounds, on all brokers, and each answered by itself."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.broker.clusters import open_brokers, wait_until
from tests.broker.handlers.asking import ask
from tidemark.broker.handlers import CHANGES
from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode
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
from tidemark.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
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


async def test_many_topics_grow_and_go_in_few_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    propose, rounds = ClusterLog.propose_topics, list[int]()

    async def count(cluster: ClusterLog, decisions: Sequence[Callable[..., object]]) -> object:
        rounds.append(len(decisions))
        return await propose(cluster, decisions)  # type: ignore[type-var]  # handed through

    async with open_brokers(tmp_path, 2) as brokers:
        leader = next(node for node in brokers.nodes if node.controller.is_here)
        other = next(node for node in brokers.nodes if node is not leader)
        names = [f"t-{n}" for n in range(TOPICS)]
        request = CreateTopicsRequest(
            topics=[wanted(name) for name in names], timeout_ms=30_000, validate_only=False
        )
        await ask(CHANGES[19].answer, leader, request, 7)
        monkeypatch.setattr(ClusterLog, "propose_topics", count)
        grown = await ask(CHANGES[37].answer, other, growing(["none", *names, "t-3"], 2), 3)
        assert isinstance(grown, CreatePartitionsResponse)
        codes = {each.name: each.error_code for each in grown.results}
        assert list(codes) == ["none", *names]
        assert {name: code for name, code in codes.items() if code} == {
            "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "t-3": ErrorCode.INVALID_REQUEST,
        }
        assert {topic.partition_count for topic in leader.topics if topic.name != "t-3"} == {2}
        deleting = DeleteTopicsRequest(
            topics=[], topic_names=["none", *names, "t-5"], timeout_ms=30_000
        )
        gone = await ask(CHANGES[20].answer, other, deleting, 5)
        assert isinstance(gone, DeleteTopicsResponse)
        refused = [each.name for each in gone.responses if each.error_code]
        assert refused == ["none", "t-5"], "which was gone by then"
        assert len(gone.responses) == TOPICS + 2
        for node in brokers.nodes:
            await wait_until(lambda: not list(node.topics))  # noqa: B023  # awaited at once
    assert sum(rounds) == 2 * TOPICS
    assert len(rounds) <= 12


def growing(names: Sequence[str], count: int) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None) for name in names],
        timeout_ms=30_000,
        validate_only=False,
    )
