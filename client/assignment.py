"""Who in a group reads what: the assignors, as functions of subscriptions and partition counts.

`range` and `roundrobin` give exactly what Java's give, so that it does not matter which client
leads a group. `cooperative-sticky` moves as few partitions as a balanced assignment allows, and
never gives a partition away before its owner has let go of it: what has to move is left out for
one generation, in which its owner revokes it.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final

from tidemark.protocol.consumer_protocol import Subscription
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass

Members = Mapping[str, Subscription]
"""By member id."""

Counts = Mapping[str, int]
"""How many partitions a topic has; topics that do not exist are left out."""

Assignment = dict[str, list[TopicPartition]]
"""The partitions of every member, by member id."""


@dataclass(frozen=True, slots=True)
class Assignor:
    """A way to share out partitions. With a cooperative one, members keep reading what they keep
    while the group rebalances."""

    name: str
    is_cooperative: bool
    assign: Callable[[Members, Counts], Assignment]


def assign_range(members: Members, counts: Counts) -> Assignment:
    """Of each topic a run of neighbouring partitions to each member; the first get one more."""
    assignment: Assignment = {member: [] for member in members}
    for topic, readers in _readers_by_topic(members, counts).items():
        each, more = divmod(counts[topic], len(readers))
        at = 0
        for index, member in enumerate(readers):
            share = each + (index < more)
            assignment[member] += [TopicPartition(topic, p) for p in range(at, at + share)]
            at += share
    return assignment


def assign_round_robin(members: Members, counts: Counts) -> Assignment:
    """All partitions of all topics in turn, passing over members that do not read a topic."""
    assignment: Assignment = {member: [] for member in members}
    order = sorted(members, key=lambda member: _sort_key(member, members[member]))
    turn = 0
    for topic in sorted(_readers_by_topic(members, counts)):
        for partition in range(counts[topic]):
            while topic not in members[order[turn % len(order)]].topics:
                turn += 1
            assignment[order[turn % len(order)]].append(TopicPartition(topic, partition))
            turn += 1
    return assignment


def assign_sticky(members: Members, counts: Counts) -> Assignment:
    """Balanced, and of all such assignments one near to what the members own already."""
    readers = _readers_by_topic(members, counts)
    partitions = [
        TopicPartition(topic, partition)
        for topic in sorted(readers)
        for partition in range(counts[topic])
    ]
    owners = _owners(members, counts)
    assignment: Assignment = {member: [] for member in sorted(members)}
    for topic_partition in partitions:
        if topic_partition in owners:
            assignment[owners[topic_partition]].append(topic_partition)
    for topic_partition in partitions:
        if topic_partition not in owners:
            _least(readers[topic_partition.topic], assignment).append(topic_partition)
    _balance(assignment, readers)
    return {member: sorted(owned) for member, owned in assignment.items()}


def assign_cooperative_sticky(members: Members, counts: Counts) -> Assignment:
    """As `assign_sticky`, less what somebody else than its new reader still owns."""
    owners = _owners(members, counts)
    return {
        member: [tp for tp in assigned if owners.get(tp, member) == member]
        for member, assigned in assign_sticky(members, counts).items()
    }


ASSIGNORS: Final = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", False, assign_range),
        Assignor("roundrobin", False, assign_round_robin),
        Assignor("cooperative-sticky", True, assign_cooperative_sticky),
    )
}
"""By the names that Kafka's clients know them by."""


def _sort_key(member: str, subscription: Subscription) -> tuple[bool, str]:
    """Static members first, by their names, which outlive their member ids."""
    if subscription.instance_id is not None:
        return False, subscription.instance_id
    return True, member


def _readers_by_topic(members: Members, counts: Counts) -> dict[str, list[str]]:
    """The members that read each existing topic, in their order."""
    readers: dict[str, list[str]] = defaultdict(list)
    for member in sorted(members, key=lambda member: _sort_key(member, members[member])):
        for topic in sorted(set(members[member].topics)):
            if topic in counts:
                readers[topic].append(member)
    return dict(readers)


def _owners(members: Members, counts: Counts) -> dict[TopicPartition, str]:
    """Who owns what, as far as it exists and is still wanted.

    Where two say that they own a partition, the one with the newer generation does; the other
    has been away. Where both are of one generation, neither is believed.
    """
    claims: dict[TopicPartition, list[str]] = defaultdict(list)
    for member in sorted(members):
        subscription = members[member]
        for owned in subscription.owned:
            wanted = owned.topic in subscription.topics
            if wanted and owned.partition < counts.get(owned.topic, 0):
                claims[owned].append(member)
    owners: dict[TopicPartition, str] = {}
    for topic_partition, claimants in claims.items():
        newest = max(members[member].generation for member in claimants)
        current = [member for member in claimants if members[member].generation == newest]
        if len(current) == 1:
            owners[topic_partition] = current[0]
    return owners


def _least(readers: list[str], assignment: Assignment) -> list[TopicPartition]:
    """The partitions of that reader who has the fewest."""
    return assignment[min(readers, key=lambda member: (len(assignment[member]), member))]


def _balance(assignment: Assignment, readers: Mapping[str, list[str]]) -> None:
    """Move partitions from who has two more than another reader of the topic to that one.

    Ends: each move makes the sum of the squares of the loads smaller.
    """
    moved = True
    while moved:
        moved = False
        for member in sorted(assignment, key=lambda member: -len(assignment[member])):
            for topic_partition in reversed(assignment[member]):
                other = _least(readers[topic_partition.topic], assignment)
                if len(assignment[member]) - len(other) >= 2:
                    assignment[member].remove(topic_partition)
                    other.append(topic_partition)
                    moved = True
                    break
