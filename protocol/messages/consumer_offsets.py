"""The records of `__consumer_offsets`: what coordinators write for themselves.

Keys and values begin with an int16 version. A key's version also says what it is the key of: 0 and
1 a commit, 2 the metadata of a group; from 3 on the parts of a group of the consumer protocol
(`consumer_group_records`). A value's version only says how it is encoded.

```
key     00 01 | 00 01 'g' | 00 01 't' | 00 00 00 05
        v1      group       topic       partition

value   00 03 | 00 00 00 00 00 00 00 2a | ff ff ff ff | 00 00    | 00 00 01 8b cf e5 68 00
        v3      offset 42                 epoch -1      metadata   committed at 1.7e12 ms
```
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias, get_args

from tidemark.protocol import codec
from tidemark.protocol.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)
from tidemark.protocol.messages.stored import split_version
from tidemark.protocol.schema import (
    BYTES,
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


@message(versions=(0, 1), straight_line=True)
class OffsetCommitKey(Message):
    """The key of a commit; versions 0 and 1 are the same."""

    group: str = wire(STRING, "The name of the group.")
    topic: str = wire(STRING, "The topic.")
    partition: int = wire(INT32, "The partition.")


@message(versions=(0, 4), flexible_since=4, straight_line=True)
class OffsetCommitValue(Message):
    """A commit."""

    offset: int = wire(INT64, "The next offset the group wants to read.")
    leader_epoch: int = wire(
        INT32,
        "The leader epoch of the last record read, -1 if it is not known.",
        since=3,
        default=-1,
        ignorable=True,
    )
    metadata: str = wire(STRING, "What the member stored beside the offset.")
    commit_timestamp: int = wire(INT64, "When it was committed, in milliseconds since 1970.")
    expire_timestamp: int = wire(
        INT64,
        "When it may be forgotten, -1 for the broker's default.",
        since=1,
        until=1,
        default=-1,
        ignorable=True,
    )


@message(versions=(2, 2))
class GroupMetadataKey(Message):
    """The key of a group's metadata."""

    group: str = wire(STRING, "The name of the group.")


@struct
class MemberMetadata(Struct):
    """A member of a group."""

    member_id: str = wire(STRING, "The id the coordinator gave the member.")
    group_instance_id: str | None = wire(
        STRING,
        "The name of a static member; null for a dynamic one.",
        since=3,
        null_since=3,
        default=None,
        ignorable=True,
    )
    client_id: str = wire(STRING, "What the member's client calls itself.")
    client_host: str = wire(STRING, "The address the member connects from.")
    rebalance_timeout: int = wire(
        INT32,
        "How long the member may take to join again, in milliseconds.",
        since=1,
        default=0,
        ignorable=True,
    )
    session_timeout: int = wire(INT32, "How long the member may be silent, in milliseconds.")
    subscription: bytes = wire(BYTES, "What the member said of itself under the chosen protocol.")
    assignment: bytes = wire(BYTES, "What the leader assigned to it.")


@message(versions=(0, 4), flexible_since=4)
class GroupMetadataValue(Message):
    """A generation of a group, as it must survive a restart."""

    protocol_type: str = wire(STRING, "The kind of group: `consumer` for consumers.")
    generation: int = wire(INT32, "The generation.")
    protocol: str | None = wire(STRING, "The assignment protocol in use.", null_since=0)
    leader: str | None = wire(STRING, "The member that assigns the partitions.", null_since=0)
    current_state_timestamp: int = wire(
        INT64,
        "When the group came into its present state, in milliseconds since 1970.",
        since=2,
        default=-1,
        ignorable=True,
    )
    members: Sequence[MemberMetadata] = wire(array(MemberMetadata), "The members.")


CoordinatorKey: TypeAlias = (
    OffsetCommitKey
    | GroupMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
)
"""All keys; each has a `group`."""

_KEYS: Final[Mapping[int, type[CoordinatorKey]]] = MappingProxyType(
    {
        version: key
        for key in get_args(CoordinatorKey)
        for version in range(key.first_version, key.last_version + 1)
    }
)


def decode_key(data: bytes | memoryview) -> CoordinatorKey | None:
    """What a key names; None for the kinds of key that are not known here, which are skipped."""
    version, encoded = split_version(data)
    key = _KEYS.get(version)
    return None if key is None else codec.decode(key, version, encoded)
