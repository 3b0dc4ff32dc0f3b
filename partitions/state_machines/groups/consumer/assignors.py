"""Who is to read what, decided by the coordinator: pure functions from subscriptions to targets.

- `uniform` gives everybody as equal a number of partitions as the subscriptions allow, and moves
  as few as that takes.
- `range` deals the partitions of each topic out in runs, so that members with the same
  subscriptions have the same partition numbers of every topic.

Both give each partition that anybody subscribes to exactly one reader, and the same result for the
same input, in whatever order that comes. Racks are not looked at.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from uuid import UUID

from tidemark.partitions.state_machines.groups.consumer.balancing import Balance
from tidemark.partitions.state_machines.groups.topic_view import Partitions, TopicIdPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A member as an assignor sees it: the topics it reads, and what it was to read before."""

    topics: frozenset[UUID]
    before: Partitions = frozenset()
    instance_id: str | None = None


Targets = dict[str, Partitions]
Assignor = Callable[[Mapping[str, Subscriber], Mapping[UUID, int]], Targets]
"""Targets by member id, of subscribers by member id and numbers of partitions by topic id."""


def uniform(subscribers: Mapping[str, Subscriber], topics: Mapping[UUID, int]) -> Targets:
    balance = Balance({member: each.topics for member, each in sorted(subscribers.items())})
    for member, subscriber in sorted(subscribers.items()):
        for partition in sorted(subscriber.before, key=_order):
            if partition.partition < topics.get(partition.topic_id, 0):
                balance.keep(member, partition)
    for topic_id in sorted(topics, key=_topic_order):
        for number in range(topics[topic_id]):
            balance.deal(TopicIdPartition(topic_id, number))
    balance.even_out()
    return {member: frozenset(parts) for member, parts in balance.parts.items()}


def range_(subscribers: Mapping[str, Subscriber], topics: Mapping[UUID, int]) -> Targets:
    targets: dict[str, set[TopicIdPartition]] = {member: set() for member in subscribers}
    # A static member that comes back under another id has the same run again.
    in_order = sorted(subscribers, key=lambda member: subscribers[member].instance_id or member)
    for topic_id, count in topics.items():
        members = [member for member in in_order if topic_id in subscribers[member].topics]
        for position, member in enumerate(members):
            first = count * position // len(members)
            end = count * (position + 1) // len(members)
            targets[member].update(TopicIdPartition(topic_id, n) for n in range(first, end))
    return {member: frozenset(parts) for member, parts in targets.items()}


ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType({"uniform": uniform, "range": range_})
"""By the names that members ask for them."""


def _topic_order(topic_id: UUID) -> bytes:
    return topic_id.bytes


def _order(partition: TopicIdPartition) -> tuple[bytes, int]:
    return partition.topic_id.bytes, partition.partition
