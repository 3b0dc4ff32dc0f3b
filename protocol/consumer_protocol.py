"""What consumers of a group say to each other through their coordinator.

Each value is an int16 version and then its fields, in Kafka's classic encoding. A version from the
future is read as the newest that is known here: such versions only ever add fields at the end.
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from tidemark.protocol.codec import decode, encode
from tidemark.protocol.errors import MalformedMessage
from tidemark.protocol.schema import (
    BYTES,
    INT32,
    STRING,
    Message,
    Struct,
    array,
    message,
    struct,
    wire,
)
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass

M = TypeVar("M", bound=Message)

_VERSION_BYTES: Final = 2
_VERSION_MAX: Final = 3


@struct
class TopicPartitions(Struct):
    """Partitions of one topic."""

    topic: str = wire(STRING, "The topic.")
    partitions: Sequence[int] = wire(array(INT32), "The partitions.")


@message(versions=(0, 3))
class ConsumerProtocolSubscription(Message):
    """What a member wants to read, told to the group's leader."""

    topics: Sequence[str] = wire(array(STRING), "The topics the member wants.")
    user_data: bytes | None = wire(BYTES, "The assignor's own.", null_since=0, default=None)
    owned_partitions: Sequence[TopicPartitions] = wire(
        array(TopicPartitions), "What the member holds.", since=1, default=(), ignorable=True
    )
    generation_id: int = wire(
        INT32, "The generation in which it got them.", since=2, default=-1, ignorable=True
    )
    rack_id: str | None = wire(
        STRING, "The member's rack.", since=3, null_since=3, default=None, ignorable=True
    )


@message(versions=(0, 3))
class ConsumerProtocolAssignment(Message):
    """What a member is to read, told by the group's leader."""

    assigned_partitions: Sequence[TopicPartitions] = wire(
        array(TopicPartitions), "The member's partitions."
    )
    user_data: bytes | None = wire(BYTES, "The assignor's own.", null_since=0, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A member as the group's leader sees it."""

    topics: tuple[str, ...]
    owned: frozenset[TopicPartition] = frozenset()
    generation: int = -1
    instance_id: str | None = None
    rack_id: str | None = None


def encode_subscription(subscription: Subscription) -> bytes:
    value = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        owned_partitions=_by_topic(subscription.owned),
        generation_id=subscription.generation,
        rack_id=subscription.rack_id,
    )
    # Later versions add fields at the end only: who knows an earlier one reads as far as it knows.
    return _VERSION_MAX.to_bytes(_VERSION_BYTES, "big") + encode(value, _VERSION_MAX)


def decode_subscription(data: bytes, instance_id: str | None = None) -> Subscription:
    """What a member said to the group's leader. Raises `MalformedMessage` for anything else."""
    value = _decode(ConsumerProtocolSubscription, data)
    return Subscription(
        topics=tuple(value.topics),
        owned=frozenset(_flat(value.owned_partitions)),
        generation=value.generation_id,
        instance_id=instance_id,
        rack_id=value.rack_id,
    )


def encode_assignment(
    partitions: Iterable[TopicPartition], *, version: int = _VERSION_MAX
) -> bytes:
    """The partitions, in a version that whoever is told them knows."""
    value = ConsumerProtocolAssignment(assigned_partitions=_by_topic(partitions))
    return version.to_bytes(_VERSION_BYTES, "big") + encode(value, version)


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions, in order. No bytes at all are no partitions.

    Raises `MalformedMessage` on anything else.
    """
    if not data:
        return ()
    return _flat(_decode(ConsumerProtocolAssignment, data).assigned_partitions)


def version_of(data: bytes) -> int:
    """The version that a value is in, or the newest that is known here.

    Raises `MalformedMessage` if there is none.
    """
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if len(data) < _VERSION_BYTES or version < 0:
        raise MalformedMessage(f"{len(data)} bytes of consumers without a version")
    return min(version, _VERSION_MAX)


def _decode(cls: type[M], data: bytes) -> M:
    return decode(cls, version_of(data), data[_VERSION_BYTES:])


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    topics: dict[str, list[int]] = {}
    for each in sorted(partitions):
        topics.setdefault(each.topic, []).append(each.partition)
    return [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in topics.items()]


def _flat(topics: Iterable[TopicPartitions]) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic, index) for topic in topics for index in topic.partitions
    )
