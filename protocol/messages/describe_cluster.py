"""DescribeCluster: the brokers of the cluster."""

from collections.abc import Sequence
from typing import Final

from tidemark.protocol.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)

NOT_ASKED: Final = -(2**31)
"""The authorized operations of a client that did not ask for them."""


@message(versions=(0, 2), flexible_since=0)
class DescribeClusterRequest(Message):
    """Asks for the brokers of the cluster."""

    include_cluster_authorized_operations: bool = wire(
        BOOL, "Whether to say what the client may do with the cluster."
    )
    endpoint_type: int = wire(INT8, "What to list: 1 brokers, 2 controllers.", since=1, default=1)
    include_fenced_brokers: bool = wire(
        BOOL, "Whether to list brokers that are fenced off, too.", since=2, default=False
    )


@struct
class DescribeClusterBroker(Struct):
    """A broker."""

    broker_id: int = wire(INT32, "Its number.")
    host: str = wire(STRING, "The host name or address to connect to.")
    port: int = wire(INT32, "The port to connect to.")
    rack: str | None = wire(
        STRING, "The rack the broker stands in, if it was told.", null_since=0, default=None
    )
    is_fenced: bool = wire(BOOL, "Whether it is fenced off.", since=2, default=False)


@message(versions=(0, 2), flexible_since=0)
class DescribeClusterResponse(Message):
    """The brokers of the cluster."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    endpoint_type: int = wire(INT8, "What is listed: 1 brokers, 2 controllers.", since=1, default=1)
    cluster_id: str = wire(STRING, "The cluster's id.")
    controller_id: int = wire(INT32, "The broker that takes changes to the cluster.", default=-1)
    brokers: Sequence[DescribeClusterBroker] = wire(array(DescribeClusterBroker), "The brokers.")
    cluster_authorized_operations: int = wire(
        INT32,
        "What the client may do with the cluster, a bit each; the smallest int32 if it was not "
        "asked.",
        default=NOT_ASKED,
    )
