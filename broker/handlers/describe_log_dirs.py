"""DescribeLogDirs: how much of the disk each partition takes."""

from collections.abc import Iterable, Sequence

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


async def handle(
    node: Node, request: DescribeLogDirsRequest, _context: RequestContext
) -> DescribeLogDirsResponse:
    """One data directory, with the partitions that were asked for and are there."""
    directory = node.settings.data_dir.absolute()
    node.room.look()
    space = node.room.room.space
    result = DescribeLogDirsResult(
        log_dir=str(directory),
        topics=[_topic(name, replicas) for name, replicas in _asked(node, request) if replicas],
        total_bytes=space.total_bytes,
        usable_bytes=space.free_bytes,
        is_full=node.room.is_out,
    )
    return DescribeLogDirsResponse(results=(result,))


def _asked(node: Node, request: DescribeLogDirsRequest) -> Iterable[tuple[str, Sequence[Replica]]]:
    if request.topics is None:
        yield from ((topic.name, topic.replicas) for topic in node.topics)
        return
    asked: dict[str, dict[int, None]] = {}  # once, however often they are named
    for topic in request.topics:
        asked.setdefault(topic.topic, {}).update(dict.fromkeys(topic.partitions))
    for name, partitions in asked.items():
        found = [node.topics.replica(name, index) for index in partitions]
        yield name, [replica for replica in found if replica is not None]


def _topic(name: str, replicas: Sequence[Replica]) -> DescribeLogDirsTopic:
    return DescribeLogDirsTopic(
        name=name,
        partitions=[
            DescribeLogDirsPartition(
                partition_index=replica.partition,
                partition_size=replica.size_bytes,
                offset_lag=0,
                is_future_key=False,
            )
            for replica in replicas
        ],
    )
