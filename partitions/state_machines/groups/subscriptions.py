"""What topics a group of consumers reads: the one thing that a coordinator looks up in metadata.

Metadata is the members' own affair, and of other kinds of groups nothing is known. Consumers begin
theirs with an int16 version and an array of topic names, in all versions; the rest is not read.
"""

from struct import Struct
from struct import error as StructError
from typing import Final

from tidemark.partitions.state_machines.groups.group import ClassicGroup

CONSUMER: Final = "consumer"
"""The protocol type of groups of consumers."""

_START: Final = Struct(">hi")
_LENGTH: Final = Struct(">h")


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """All topics that members of a group of consumers read; None if that cannot be told."""
    if group.protocol_type != CONSUMER:
        return None
    if group.members and group.protocol is None:
        return None
    topics: set[str] = set()
    for member in group.members.values():
        found = topics_of(member.metadata(group.protocol))
        if found is None:
            return None
        topics.update(found)
    return frozenset(topics)


def topics_of(metadata: bytes) -> list[str] | None:
    """The topics at the start of a consumer's metadata, or None if it does not parse."""
    try:
        _, count = _START.unpack_from(metadata)
        at, topics = _START.size, []
        # Every topic takes two bytes at least, so a lie about their number ends soon.
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(metadata, at)
            at += _LENGTH.size
            if not 0 <= length <= len(metadata) - at:
                return None
            topics.append(metadata[at : at + length].decode())
            at += length
    except (StructError, UnicodeDecodeError):
        return None
    return topics
