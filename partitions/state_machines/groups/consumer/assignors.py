"""Who is to read what, decided by the coordinator: pure functions from subscriptions to targets.

- `uniform` gives everybody as equal a number of partitions as the subscriptions allow, and moves
  as few as that takes.
- `range` deals the partitions of each topic out in runs, so that members with the same
  subscriptions have the same partition numbers of every topic.

Both give each partition that anybody subscribes to exactly one reader, and the same result for the
same input, in whatever order that comes. Racks are not looked at.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from uuid import UUID

from tidemark.partitions.state_machines.groups.consumer.balancing import Balance
from tidemark.partitions.state_machines.groups.topic_view import Partitions, TopicIdPartition
from tidemark.protocol.values import dataclass


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
    balance = Balance({member: each.topics for member, each in subscribers.items()}, topics)
    for member, subscriber in sorted(subscribers.items()):
        balance.keep(member, subscriber.before)
    balance.deal()
    balance.even_out()
    return balance.targets()


def range_(subscribers: Mapping[str, Subscriber], topics: Mapping[UUID, int]) -> Targets:
    targets: dict[str, list[TopicIdPartition]] = {member: [] for member in subscribers}
    # A static member that comes back under another id has the same run again.
    in_order = sorted(subscribers, key=lambda member: subscribers[member].instance_id or member)
    subscriptions = list(dict.fromkeys(subscribers[member].topics for member in in_order))
    # Many topics are read by the same members.
    lines: dict[tuple[bool, ...], list[str]] = {}
    for topic_id, count in topics.items():
        is_read = tuple(topic_id in subscription for subscription in subscriptions)
        if is_read not in lines:
            lines[is_read] = [each for each in in_order if topic_id in subscribers[each].topics]
        members = lines[is_read]
        for number in range(count if members else 0):
            # Member k of m has the run from count * k // m up to where the next one's begins.
            position = ((number + 1) * len(members) - 1) // count
            targets[members[position]].append(TopicIdPartition(topic_id, number))
    return {member: frozenset(parts) for member, parts in targets.items()}


ASSIGNORS: Final[Mapping[str, Assignor]] = MappingProxyType({"uniform": uniform, "range": range_})
"""By the names that members ask for them."""
