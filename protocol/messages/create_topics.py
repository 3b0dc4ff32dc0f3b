"""CreateTopics."""

from collections.abc import Sequence
from uuid import UUID

from tidemark.protocol.schema import (
    BOOL,
    INT8,
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


@struct
class CreatableReplicaAssignment(Struct):
    """Where the replicas of a partition go."""

    partition_index: int = wire(INT32, "The partition.")
    broker_ids: Sequence[int] = wire(array(INT32), "The brokers that get a replica.")


@struct
class CreatableTopicConfig(Struct):
    """A topic config."""

    name: str = wire(STRING, "The config's name.")
    value: str | None = wire(STRING, "Its value.", null_since=0)


@struct
class CreatableTopic(Struct):
    """A topic to create."""

    name: str = wire(STRING, "The topic.")
    num_partitions: int = wire(
        INT32, "How many partitions; -1 for the broker's default, or when they are assigned below."
    )
    replication_factor: int = wire(
        INT16,
        "How many replicas of each; -1 for the broker's default, or when they are assigned below.",
    )
    assignments: Sequence[CreatableReplicaAssignment] = wire(
        array(CreatableReplicaAssignment),
        "Which brokers get the replicas; empty leaves it to the broker.",
    )
    configs: Sequence[CreatableTopicConfig] = wire(
        array(CreatableTopicConfig), "The configs that differ from the defaults."
    )


@message(versions=(2, 7), flexible_since=5, straight_line=True)
class CreateTopicsRequest(Message):
    """Creates topics."""

    topics: Sequence[CreatableTopic] = wire(array(CreatableTopic), "What to create.")
    timeout_ms: int = wire(INT32, "How long the broker may take, in milliseconds.", default=60000)
    validate_only: bool = wire(BOOL, "Whether to check only, and change nothing.", default=False)


@struct
class CreatableTopicConfigs(Struct):
    """A config of the new topic."""

    name: str = wire(STRING, "The config's name.")
    value: str | None = wire(STRING, "Its value, null if it is sensitive.", null_since=0)
    read_only: bool = wire(BOOL, "Whether it cannot be altered.")
    config_source: int = wire(
        INT8, "Where the value comes from, as in DescribeConfigs.", default=-1
    )
    is_sensitive: bool = wire(BOOL, "Whether the value is a secret.")


@struct
class CreatableTopicResult(Struct):
    """The outcome for one topic."""

    name: str = wire(STRING, "The topic.")
    topic_id: UUID = wire(
        UUID16,
        "The topic's id; all zeros when it is not known.",
        since=7,
        default=ZERO_UUID,
        ignorable=True,
    )
    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    topic_config_error_code: int = wire(
        INT16,
        "Why the configs are not listed, when they are not; 0 is no reason.",
        since=5,
        tag=0,
        default=0,
        ignorable=True,
    )
    num_partitions: int = wire(
        INT32, "How many partitions it has.", since=5, default=-1, ignorable=True
    )
    replication_factor: int = wire(
        INT16, "How many replicas each has.", since=5, default=-1, ignorable=True
    )
    configs: Sequence[CreatableTopicConfigs] | None = wire(
        array(CreatableTopicConfigs),
        "The topic's configs.",
        since=5,
        null_since=5,
        default=(),
        ignorable=True,
    )


@message(versions=(2, 7), flexible_since=5, straight_line=True)
class CreateTopicsResponse(Message):
    """Says which topics were created."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    topics: Sequence[CreatableTopicResult] = wire(
        array(CreatableTopicResult), "The outcome, by topic."
    )
