"""Metadata: brokers, topics, and who leads what."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidemark.protocol.schema import (
    BOOL,
    INT16,
    INT32,
    STRING,
    UUID16,
    ZERO_UUID,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)

NOT_ASKED: Final = -(2**31)
"""The authorized operations of a client that did not ask for them."""


@struct
class MetadataRequestTopic(Struct):
    """A topic asked for, by name or, from version 12, by id."""

    topic_id: UUID = wire(
        UUID16,
        "The topic's id; all zeros when it is not known.",
        since=10,
        default=ZERO_UUID,
        ignorable=True,
    )
    name: str | None = wire(STRING, "The topic's name; null asks by id.", null_since=10)


@message(versions=(0, 13), flexible_since=9)
class MetadataRequest(Message):
    """Asks for the brokers of the cluster, and for some, all or none of its topics."""

    topics: Sequence[MetadataRequestTopic] | None = wire(
        array(MetadataRequestTopic),
        "The topics asked for; null asks for all. In version 0 an empty list does.",
        null_since=1,
    )
    allow_auto_topic_creation: bool = wire(
        BOOL,
        "Whether topics that are asked for by name and do not exist may be created.",
        since=4,
        default=True,
    )
    include_cluster_authorized_operations: bool = wire(
        BOOL,
        "Whether to say what the client may do with the cluster.",
        since=8,
        until=10,
        default=False,
    )
    include_topic_authorized_operations: bool = wire(
        BOOL, "Whether to say what the client may do with each topic.", since=8, default=False
    )


@struct
class MetadataResponseBroker(Struct):
    """A broker."""

    node_id: int = wire(INT32, "The broker's number.")
    host: str = wire(STRING, "The host name or address to connect to.")
    port: int = wire(INT32, "The port to connect to.")
    rack: str | None = wire(
        STRING,
        "The rack the broker stands in, if it was told.",
        since=1,
        null_since=1,
        default=None,
        ignorable=True,
    )


@struct
class MetadataResponsePartition(Struct):
    """A partition."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    partition_index: int = wire(INT32, "The partition.")
    leader_id: int = wire(INT32, "The broker that leads the partition, -1 if there is none.")
    leader_epoch: int = wire(
        INT32, "The leader epoch, -1 if it is not known.", since=7, default=-1, ignorable=True
    )
    replica_nodes: Sequence[int] = wire(array(INT32), "The brokers that hold a replica.")
    isr_nodes: Sequence[int] = wire(array(INT32), "Those of them that are in sync with the leader.")
    offline_replicas: Sequence[int] = wire(
        array(INT32), "Those of them that are not alive.", since=5, default=(), ignorable=True
    )


@struct
class MetadataResponseTopic(Struct):
    """A topic."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    name: str | None = wire(
        STRING, "The topic's name; null when an id that was asked for is not known.", null_since=12
    )
    topic_id: UUID = wire(
        UUID16,
        "The topic's id; all zeros when it is not known.",
        since=10,
        default=ZERO_UUID,
        ignorable=True,
    )
    is_internal: bool = wire(
        BOOL, "Whether the topic is the broker's own.", since=1, default=False, ignorable=True
    )
    partitions: Sequence[MetadataResponsePartition] = wire(
        array(MetadataResponsePartition), "Its partitions."
    )
    topic_authorized_operations: int = wire(
        INT32,
        "What the client may do with the topic, a bit each; the smallest int32 if it was not "
        "asked.",
        since=8,
        default=NOT_ASKED,
    )


@message(versions=(0, 13), flexible_since=9, straight_line=True)
class MetadataResponse(Message):
    """The brokers of the cluster and the topics that were asked for."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        since=3,
        default=0,
        ignorable=True,
    )
    brokers: Sequence[MetadataResponseBroker] = wire(
        array(MetadataResponseBroker), "The brokers that are alive."
    )
    cluster_id: str | None = wire(
        STRING, "The cluster's id.", since=2, null_since=2, default=None, ignorable=True
    )
    controller_id: int = wire(
        INT32,
        "The broker that takes changes to the cluster; always one of `brokers`.",
        since=1,
        default=-1,
        ignorable=True,
    )
    topics: Sequence[MetadataResponseTopic] = wire(array(MetadataResponseTopic), "The topics.")
    cluster_authorized_operations: int = wire(
        INT32,
        "What the client may do with the cluster, a bit each; the smallest int32 if it was not "
        "asked.",
        since=8,
        until=10,
        default=NOT_ASKED,
    )
    error_code: int = wire(
        INT16, "What went wrong with all of it; 0 is nothing.", since=13, default=0, ignorable=True
    )
