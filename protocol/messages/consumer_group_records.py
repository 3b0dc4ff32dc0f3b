"""The records of `__consumer_offsets` that keep groups of the consumer protocol (KIP-848).

A group is several records, so that a change costs only what has changed: the group's epoch (key
version 3), each member as it describes itself (5), the target assignment's epoch (6) and each
member's part of it (7), and what each member has now (8). All are the same in Kafka.
"""

from collections.abc import Sequence
from enum import IntEnum
from uuid import UUID

from tidemark.protocol.schema import (
    BYTES,
    INT8,
    INT32,
    INT64,
    STRING,
    UUID16,
    Message,
    Struct,
    array,
    message,
    nested,
    struct,
    wire,
)


@message(versions=(3, 3))
class ConsumerGroupMetadataKey(Message):
    """The key of a group's epoch."""

    group: str = wire(STRING, "The name of the group.")


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupMetadataValue(Message):
    """A group's epoch."""

    epoch: int = wire(INT32, "The group's epoch.")
    metadata_hash: int = wire(INT64, "A hash of the topics that the group reads.", tag=0, default=0)


@struct
class ClassicProtocol(Struct):
    """A protocol of assignment, as a member of the classic protocol offers it."""

    name: str = wire(STRING, "What it is called.")
    metadata: bytes = wire(BYTES, "What the member says to whoever assigns by it.")


@struct
class ClassicMemberMetadata(Struct):
    """What is known besides of a member that takes part by the classic protocol."""

    session_timeout_ms: int = wire(INT32, "How long it may be silent, in milliseconds.")
    supported_protocols: Sequence[ClassicProtocol] = wire(
        array(ClassicProtocol), "The protocols it offers, the one it likes best first."
    )


@message(versions=(5, 5))
class ConsumerGroupMemberMetadataKey(Message):
    """The key of a member."""

    group: str = wire(STRING, "The name of the group.")
    member_id: str = wire(STRING, "The member's id.")


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupMemberMetadataValue(Message):
    """A member, as it describes itself."""

    instance_id: str | None = wire(STRING, "The name of a static member.", null_since=0)
    rack_id: str | None = wire(STRING, "The member's rack.", null_since=0)
    client_id: str = wire(STRING, "What the member's client calls itself.")
    client_host: str = wire(STRING, "The address the member connects from.")
    subscribed_topic_names: Sequence[str] = wire(array(STRING), "The topics it names.")
    subscribed_topic_regex: str | None = wire(
        STRING, "The regular expression it names topics by.", null_since=0
    )
    rebalance_timeout_ms: int = wire(
        INT32, "How long it may take to give up partitions, in milliseconds.", default=-1
    )
    server_assignor: str | None = wire(STRING, "The assignor it would like.", null_since=0)
    classic_member_metadata: ClassicMemberMetadata | None = wire(
        nested(ClassicMemberMetadata),
        "What is known besides of a member of the classic protocol; null for one of the consumer "
        "protocol.",
        null_since=0,
        tag=0,
        default=None,
    )


@message(versions=(6, 6))
class ConsumerGroupTargetAssignmentMetadataKey(Message):
    """The key of the target assignment's epoch."""

    group: str = wire(STRING, "The name of the group.")


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupTargetAssignmentMetadataValue(Message):
    """The epoch of the target assignment."""

    assignment_epoch: int = wire(INT32, "The group's epoch that it was made for.")


@message(versions=(7, 7))
class ConsumerGroupTargetAssignmentMemberKey(Message):
    """The key of a member's part of the target assignment."""

    group: str = wire(STRING, "The name of the group.")
    member_id: str = wire(STRING, "The member's id.")


@struct
class StoredPartitions(Struct):
    """Partitions of one topic."""

    topic_id: UUID = wire(UUID16, "The id of the topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupTargetAssignmentMemberValue(Message):
    """What a member is to read."""

    topic_partitions: Sequence[StoredPartitions] = wire(
        array(StoredPartitions), "The partitions, by topic."
    )


@message(versions=(8, 8))
class ConsumerGroupCurrentMemberAssignmentKey(Message):
    """The key of what a member has now."""

    group: str = wire(STRING, "The name of the group.")
    member_id: str = wire(STRING, "The member's id.")


class StoredMemberState(IntEnum):
    """How far a member is on the way to its target."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@struct
class HeldPartitions(Struct):
    """Partitions of one topic that a member has."""

    topic_id: UUID = wire(UUID16, "The id of the topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")
    assignment_epochs: Sequence[int] | None = wire(
        array(INT32),
        "From which of its epochs on the member has had each of them, in their order; null where "
        "that is not known from before its present one.",
        null_since=0,
        tag=0,
        default=None,
    )


@message(versions=(0, 0), flexible_since=0)
class ConsumerGroupCurrentMemberAssignmentValue(Message):
    """What a member has now."""

    member_epoch: int = wire(INT32, "The member's epoch; -2 for a static member that is away.")
    previous_member_epoch: int = wire(
        INT32, "The epoch before, which it names again if it missed the answer."
    )
    state: int = wire(
        INT8,
        "0: it has its target; 1: it has to give up partitions; 2: others have to give up some "
        "that it is to have.",
    )
    assigned_partitions: Sequence[HeldPartitions] = wire(
        array(HeldPartitions), "The partitions that it may read, by topic."
    )
    partitions_pending_revocation: Sequence[HeldPartitions] = wire(
        array(HeldPartitions), "The partitions that it has to give up, by topic."
    )
