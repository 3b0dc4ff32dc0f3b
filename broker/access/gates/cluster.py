"""The gates of what is the whole cluster's business."""

from __future__ import annotations

from typing import Any

from tidemark.broker.access.gate import CLUSTER, Gate, Passed, Visitor
from tidemark.broker.network.error_responses import filled, said_of
from tidemark.protocol.acls import Operation
from tidemark.protocol.errors import ErrorCode
from tidemark.protocol.messages import describe_user_scram_credentials as scram
from tidemark.protocol.messages import write_txn_markers as markers
from tidemark.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from tidemark.protocol.messages.balance_leaders import BalanceLeadersRequest


def on_cluster(operation: Operation) -> Gate:
    """What needs one operation on the cluster, and nothing else."""

    def gate(visitor: Visitor, request: Any) -> Passed:  # Any: of whichever API it is
        visitor.demand(operation, CLUSTER)
        return Passed(request)

    return gate


def balance_leaders(visitor: Visitor, request: BalanceLeadersRequest) -> Passed:
    """To look at what would be done is no change."""
    visitor.demand(Operation.DESCRIBE if request.dry_run else Operation.ALTER, CLUSTER)
    return Passed(request)


def alter_replica_log_dirs(visitor: Visitor, request: AlterReplicaLogDirsRequest) -> Passed:
    error = visitor.refused(Operation.ALTER, CLUSTER)
    if error is None:
        return Passed(request)
    results = [
        AlterReplicaLogDirTopicResult(
            topic_name=topic.name,
            partitions=[
                AlterReplicaLogDirPartitionResult(partition_index=each, error_code=error.code)
                for each in topic.partitions
            ],
        )
        for directory in request.dirs
        for topic in directory.topics
    ]
    return Passed(None, lambda _: AlterReplicaLogDirsResponse(results=results))


def describe_user_scram_credentials(
    visitor: Visitor, request: scram.DescribeUserScramCredentialsRequest
) -> Passed:
    """Users that are named are answered one by one: librdkafka (2.16) frees what is not its own
    where one error is for all, and its process aborts."""
    error = visitor.refused(Operation.DESCRIBE, CLUSTER)
    if error is None:
        return Passed(request)
    if not request.users:
        raise error
    result = scram.DescribeUserScramCredentialsResult
    said = said_of(result, error)
    results = [filled(result, user=each.name, **said) for each in request.users]
    return Passed(None, lambda _: scram.DescribeUserScramCredentialsResponse(results=results))


def write_txn_markers(visitor: Visitor, request: markers.WriteTxnMarkersRequest) -> Passed:
    """Brokers do; what a tool sends is let through where it may alter the cluster, too."""
    if visitor.may(Operation.ALTER, CLUSTER):
        return Passed(request)
    error = visitor.refused(Operation.CLUSTER_ACTION, CLUSTER)
    if error is None:
        return Passed(request)
    code = error.code
    results = [_refused_marker(marker, code) for marker in request.markers]
    return Passed(None, lambda _: markers.WriteTxnMarkersResponse(markers=results))


def _refused_marker(
    marker: markers.WritableTxnMarker, code: ErrorCode
) -> markers.WritableTxnMarkerResult:
    return filled(
        markers.WritableTxnMarkerResult,
        producer_id=marker.producer_id,
        topics=[
            filled(
                markers.WritableTxnMarkerTopicResult,
                name=topic.name,
                partitions=[
                    filled(
                        markers.WritableTxnMarkerPartitionResult,
                        partition_index=each,
                        error_code=code,
                    )
                    for each in topic.partition_indexes
                ],
            )
            for topic in marker.topics
        ],
    )
