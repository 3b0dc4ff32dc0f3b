"""ConsumerGroupDescribe: groups of the consumer protocol, their members and assignments."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidemark.protocol.schema import (
    BOOL,
    INT8,
    INT16,
    INT32,
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

NOT_ASKED: Final = -(2**31)
"""The authorized operations of a client that did not ask for them."""

CLASSIC_MEMBER: Final = 0
"""The type of a member that speaks the classic protocol, in a group that is changing over."""

CONSUMER_MEMBER: Final = 1
"""The type of a member that speaks the consumer protocol."""


@message(versions=(0, 1), flexible_since=0, straight_line=True)
class ConsumerGroupDescribeRequest(Message):
    """Asks for the state and the members of groups of the consumer protocol."""

    group_ids: Sequence[str] = wire(array(STRING), "The groups asked for.")
    include_authorized_operations: bool = wire(
        BOOL, "Whether to say what the client may do with each group."
    )


@struct
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: UUID = wire(UUID16, "The id of the topic.")
    topic_name: str = wire(STRING, "The topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@struct
class Assignment(Struct):
    """What a member reads."""

    topic_partitions: Sequence[TopicPartitions] = wire(
        array(TopicPartitions), "The partitions, by topic."
    )


@struct
class Member(Struct):
    """A member of a group."""

    member_id: str = wire(STRING, "The member's id.")
    instance_id: str | None = wire(
        STRING, "The name of a static member; null for a dynamic one.", null_since=0, default=None
    )
    rack_id: str | None = wire(STRING, "The member's rack.", null_since=0, default=None)
    member_epoch: int = wire(INT32, "The member's epoch.")
    client_id: str = wire(STRING, "What the member's client calls itself.")
    client_host: str = wire(STRING, "The address the member connects from.")
    subscribed_topic_names: Sequence[str] = wire(array(STRING), "The topics it names.")
    subscribed_topic_regex: str | None = wire(
        STRING, "The regular expression it names topics by.", null_since=0, default=None
    )
    assignment: Assignment = wire(nested(Assignment), "What it reads now.")
    target_assignment: Assignment = wire(nested(Assignment), "What it is to read.")
    member_type: int = wire(
        INT8,
        "How it takes part: 0 by the classic protocol, 1 by the consumer protocol, -1 if that "
        "is not known.",
        since=1,
        default=-1,
        ignorable=True,
    )


@struct
class DescribedGroup(Struct):
    """A group."""

    error_code: int = wire(INT16, "What went wrong; 0 is nothing.", default=0)
    error_message: str | None = wire(
        STRING, "What went wrong, in words.", null_since=0, default=None
    )
    group_id: str = wire(STRING, "The name of the group.")
    group_state: str = wire(
        STRING,
        "Where the group is in its life: `Empty`, `Assigning`, `Reconciling`, `Stable` or `Dead`.",
    )
    group_epoch: int = wire(INT32, "The group's epoch, which grows whenever it has to rebalance.")
    assignment_epoch: int = wire(INT32, "The epoch that the target assignment is of.")
    assignor_name: str = wire(STRING, "The assignor in use.")
    members: Sequence[Member] = wire(array(Member), "Its members.")
    authorized_operations: int = wire(
        INT32,
        "What the client may do with the group, a bit each; the smallest int32 if it was not "
        "asked.",
        default=NOT_ASKED,
    )


@message(versions=(0, 1), flexible_since=0, straight_line=True)
class ConsumerGroupDescribeResponse(Message):
    """The groups that were asked for."""

    throttle_time_ms: int = wire(
        INT32,
        "How long the client is asked to hold back, in milliseconds; 0 is not at all.",
        default=0,
    )
    groups: Sequence[DescribedGroup] = wire(array(DescribedGroup), "The groups.")
