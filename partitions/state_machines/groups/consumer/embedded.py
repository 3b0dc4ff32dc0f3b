"""What consumers of the classic protocol tell their leader and are told by it, in the coordinator's
terms: they call topics by name, it by id."""

from collections.abc import Iterable

from tidemark.partitions.state_machines.groups.consumer.member import ConsumerMember
from tidemark.partitions.state_machines.groups.topic_view import (
    Partitions,
    TopicIdPartition,
    TopicView,
)
from tidemark.protocol.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    version_of,
)
from tidemark.protocol.types import TopicPartition


def subscription(protocols: tuple[tuple[str, bytes], ...]) -> Subscription:
    """What a member says it reads and owns. Raises `MalformedMessage`."""
    return decode_subscription(protocols[0][1])


def owned(said: Subscription, view: TopicView) -> Partitions:
    """What the member says it owns, of topics that there are."""
    return _with_ids(said.owned, view)


def assigned(data: bytes, view: TopicView) -> Partitions:
    """What a leader gave a member, of topics that there are. Raises `MalformedMessage`."""
    return _with_ids(decode_assignment(data), view)


def assignment(member: ConsumerMember, view: TopicView) -> bytes:
    """What the member has, as its leader would tell it. Partitions of topics that are gone are
    left out."""
    assert member.classic is not None
    named = ((name, view.find(name)) for name in member.topics)
    names = {facts.id: name for name, facts in named if facts is not None}
    return encode_assignment(
        (
            TopicPartition(names[each.topic_id], each.partition)
            for each in member.assigned
            if each.topic_id in names
        ),
        version=version_of(member.classic.metadata),
    )


def _with_ids(partitions: Iterable[TopicPartition], view: TopicView) -> Partitions:
    found = ((view.find(each.topic), each.partition) for each in partitions)
    return frozenset(TopicIdPartition(facts.id, number) for facts, number in found if facts)
