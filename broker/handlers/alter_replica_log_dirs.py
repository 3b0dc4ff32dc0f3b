"""AlterReplicaLogDirs: a broker has one directory, and every replica is in it already."""

from pathlib import Path

from tidemark.broker.network.requests import RequestContext
from tidemark.broker.node import Node
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def handle(
    node: Node, request: AlterReplicaLogDirsRequest, _context: RequestContext
) -> AlterReplicaLogDirsResponse:
    own = node.settings.data_dir.absolute()
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic.name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(
                        partition_index=partition,
                        error_code=_outcome(
                            node, topic.name, partition, is_own=Path(directory.path) == own
                        ),
                    )
                    for partition in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def _outcome(node: Node, name: str, partition: int, *, is_own: bool) -> ErrorCode:
    if not is_own:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if node.topics.replica(name, partition) is None:
        return ErrorCode.REPLICA_NOT_AVAILABLE
    return ErrorCode.NONE
