"""DescribeLogDirs: what lies in the data directories."""

from collections.abc import Sequence
from typing import Final

from tidemark.protocol.schema import (
    BOOL,
    INT16,
    INT32,
    INT64,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)
from tidemark.protocol.schema.declaration import OWN_TAGS_FROM

_IS_FULL_TAG: Final = OWN_TAGS_FROM


@struct
class DescribableLogDirTopic(Struct):
    """The partitions asked about in one topic."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[int] = wire(array(INT32), "Its partitions.")


@message(versions=(1, 4), flexible_since=2, straight_line=True)
class DescribeLogDirsRequest(Message):
    """Asks how much room partitions take in the data directories."""

    topics: Sequence[DescribableLogDirTopic] | None = wire(
        array(DescribableLogDirTopic),
        "The partitions asked about; null asks about all.",
        null_since=0,
    )


@struct
class DescribeLogDirsPartition(Struct):
    """What lies in the directory of one partition."""

    partition_index: int = wire(INT32, "The partition.")
    partition_size: int = wire(INT64, "The bytes its segments take.")
    offset_lag: int = wire(
        INT64,
        "How far it is behind: the high watermark's distance for a replica, the current "
        "replica's for a future one.",
    )
    is_future_key: bool = wire(BOOL, "Whether it is a copy that is to replace the current replica.")


@struct
class DescribeLogDirsTopic(Struct):
    """What lies in the directory of one topic."""

    name: str = wire(STRING, "The topic.")
    partitions: Sequence[DescribeLogDirsPartition] = wire(
        array(DescribeLogDirsPartition), "Its partitions."
    )


@struct
class DescribeLogDirsResult(Struct):
    """A data directory."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    log_dir: str = wire(STRING, "Its absolute path.")
    topics: Sequence[DescribeLogDirsTopic] = wire(
        array(DescribeLogDirsTopic), "What lies in it, by topic."
    )
    total_bytes: int = wire(
        INT64,
        "The size of the volume it is on; -1 if it is not known.",
        since=4,
        default=-1,
        ignorable=True,
    )
    usable_bytes: int = wire(
        INT64,
        "How much of that is free; -1 if it is not known.",
        since=4,
        default=-1,
        ignorable=True,
    )
    is_full: bool = wire(
        BOOL,
        "Whether produce requests are refused, because hardly anything of it is free.",
        since=2,
        tag=_IS_FULL_TAG,
        default=False,
        ignorable=True,
    )


@message(versions=(1, 4), flexible_since=2, straight_line=True)
class DescribeLogDirsResponse(Message):
    """The data directories and what lies in them."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    error_code: int = wire(
        INT16, "What went wrong; 0 is nothing.", since=3, default=0, ignorable=True
    )
    results: Sequence[DescribeLogDirsResult] = wire(
        array(DescribeLogDirsResult), "The data directories."
    )
