"""The records of `__consumer_offsets`: what coordinators write for themselves.

Keys and values begin with an int16 version. A key's version also says what it is the key of: 0 and
1 a commit, 2 the metadata of a group. A value's version only says how it is encoded.

```
key     00 01 | 00 01 'g' | 00 01 't' | 00 00 00 05
        v1      group       topic       partition

value   00 03 | 00 00 00 00 00 00 00 2a | ff ff ff ff | 00 00    | 00 00 01 8b cf e5 68 00
        v3      offset 42                 epoch -1      metadata   committed at 1.7e12 ms
```
"""

from collections.abc import Sequence
from struct import Struct as Packer
from typing import Final, TypeVar

from tidemark.protocol import codec
from tidemark.protocol.errors import MalformedMessage
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

M = TypeVar("M", bound=Message)

_VERSION: Final = Packer(">h")


@message(versions=(0, 1))
class OffsetCommitKey(Message):
    """The key of a commit; versions 0 and 1 are the same."""

    group: str = wire(STRING, "The name of the group.")
    topic: str = wire(STRING, "The topic.")
    partition: int = wire(INT32, "The partition.")


@message(versions=(0, 4), flexible_since=4)
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


def encode_record(message: Message, version: int) -> bytes:
    """A key or a value as it is stored: its version, then its encoding at that version."""
    return _VERSION.pack(version) + codec.encode(message, version)


def decode_key(data: bytes | memoryview) -> OffsetCommitKey | GroupMetadataKey | None:
    """What a key names; None for the kinds of key that are not known here, which are skipped."""
    version = _version_of(data)
    if version <= OffsetCommitKey.last_version:
        return codec.decode(OffsetCommitKey, version, data[_VERSION.size :])
    if version == GroupMetadataKey.first_version:
        return codec.decode(GroupMetadataKey, version, data[_VERSION.size :])
    return None


def decode_value(cls: type[M], data: bytes | memoryview) -> M:
    """The value beside a key; raises `MalformedMessage` for a version that is not known."""
    return codec.decode(cls, _version_of(data), data[_VERSION.size :])


def _version_of(data: bytes | memoryview) -> int:
    if len(data) < _VERSION.size:
        raise MalformedMessage("a record of __consumer_offsets without a version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise MalformedMessage(f"version {version} of a record of __consumer_offsets")
    return version
