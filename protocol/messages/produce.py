"""Produce: append record batches."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidemark.protocol.messages.node_endpoint import NodeEndpoint
from tidemark.protocol.schema import (
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID16,
    ZERO_UUID,
    Message,
    Struct,
    array,
    message,
    nested,
    struct,
    wire,
)

NAMES_UNTIL: Final = 12
"""The last version in which topics go by their names; from the next on, by their ids."""


@struct
class PartitionProduceData(Struct):
    """The records for one partition."""

    index: int = wire(INT32, "The partition.")
    records: bytes | memoryview | None = wire(
        RECORDS, "One record batch of format 2.", null_since=0
    )


@struct
class TopicProduceData(Struct):
    """The records for one topic."""

    name: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partition_data: Sequence[PartitionProduceData] = wire(
        array(PartitionProduceData), "The records, by partition."
    )


@message(versions=(3, 13), flexible_since=9, straight_line=True)
class ProduceRequest(Message):
    """Appends record batches to partitions."""

    transactional_id: str | None = wire(
        STRING,
        "The producer's transactional id, null outside transactions.",
        null_since=0,
        default=None,
    )
    acks: int = wire(
        INT16,
        "Who must have the records before the answer: 0 nobody (no answer at all), 1 the leader, "
        "-1 all in-sync replicas.",
    )
    timeout_ms: int = wire(INT32, "How long to wait for those acknowledgements, in milliseconds.")
    topic_data: Sequence[TopicProduceData] = wire(array(TopicProduceData), "The records, by topic.")


@struct
class BatchIndexAndErrorMessage(Struct):
    """A record that was refused."""

    batch_index: int = wire(INT32, "The record's place in its batch, from 0.")
    batch_index_error_message: str | None = wire(
        STRING, "Why it was refused.", null_since=0, default=None
    )


@struct
class LeaderIdAndEpoch(Struct):
    """The leader of a partition and its epoch."""

    leader_id: int = wire(
        INT32, "The broker that leads the partition, -1 if there is none.", default=-1
    )
    leader_epoch: int = wire(INT32, "The leader epoch, -1 if it is not known.", default=-1)


@struct
class PartitionProduceResponse(Struct):
    """The outcome for one partition."""

    index: int = wire(INT32, "The partition.")
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    base_offset: int = wire(INT64, "The offset of the first record of the batch.")
    log_append_time_ms: int = wire(
        INT64, "The timestamp the broker gave the records; -1 if they keep their own.", default=-1
    )
    log_start_offset: int = wire(
        INT64, "The first offset that the partition still has.", since=5, default=-1, ignorable=True
    )
    record_errors: Sequence[BatchIndexAndErrorMessage] = wire(
        array(BatchIndexAndErrorMessage),
        "The records for which the whole batch was refused.",
        since=8,
        default=(),
        ignorable=True,
    )
    error_message: str | None = wire(
        STRING,
        "One sentence for what all refused records have in common.",
        since=8,
        null_since=8,
        default=None,
        ignorable=True,
    )
    current_leader: LeaderIdAndEpoch = wire(
        nested(LeaderIdAndEpoch),
        "Who leads the partition now, when it is not the broker asked.",
        since=10,
        tag=0,
        default=LeaderIdAndEpoch(),
    )


@struct
class TopicProduceResponse(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.", until=NAMES_UNTIL, default="", ignorable=True)
    topic_id: UUID = wire(
        UUID16, "The topic's id.", since=NAMES_UNTIL + 1, default=ZERO_UUID, ignorable=True
    )
    partition_responses: Sequence[PartitionProduceResponse] = wire(
        array(PartitionProduceResponse), "The outcome, by partition."
    )


@message(versions=(3, 13), flexible_since=9, straight_line=True)
class ProduceResponse(Message):
    """Says where the records went, or why they did not."""

    responses: Sequence[TopicProduceResponse] = wire(
        array(TopicProduceResponse), "The outcome, by topic."
    )
    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    node_endpoints: Sequence[NodeEndpoint] = wire(
        array(NodeEndpoint),
        "Where to reach the brokers that are named as current leaders.",
        since=10,
        tag=0,
        default=(),
    )
