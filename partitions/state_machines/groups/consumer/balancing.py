"""Dealing partitions out so that nobody could have fewer of them without somebody having more.

Members that read the same topics can take anything from each other, so they are looked at as one, a
*circle*: most groups are one circle, and then an equal share for each is all there is to it. Loads
are as even as subscriptions allow when no chain of moves leads from a circle to one with a member
that has at least two partitions fewer (an alternating path of the semi-matching of partitions to
members: Harvey et al. 2003). So the chains are looked for and followed until there is none.

What it costs is one step for each partition and each member, and a search among the circles for
each partition that changes circles. What nobody has to give up is not touched.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import field
from uuid import UUID

from tidemark.partitions.state_machines.groups.topic_view import (
    NO_PARTITIONS,
    Partitions,
    TopicIdPartition,
)
from tidemark.protocol.values import dataclass


@dataclass(slots=True, eq=False)
class _Circle:
    """Members with one subscription, by how many partitions they have."""

    limits: Mapping[UUID, int]
    """The topics they read that there are, in order, with their numbers of partitions."""
    levels: dict[int, dict[str, None]] = field(default_factory=dict)
    holders: dict[UUID, dict[str, int]] = field(default_factory=dict)
    """Who has how many partitions of each topic; only where there are other circles."""

    @property
    def lightest(self) -> int:
        return min(self.levels)

    @property
    def heaviest(self) -> int:
        return max(self.levels)

    def first_at(self, load: int) -> str:
        return next(iter(self.levels[load]))

    def holder(self, topic_id: UUID) -> str:
        """Who is to give up a partition of a topic: one of those that have most, if there is."""
        holders, heaviest = self.holders[topic_id], self.levels[self.heaviest]
        some = heaviest if len(heaviest) < len(holders) else holders
        both = (member for member in some if member in holders and member in heaviest)
        return next(both, next(iter(holders)))

    def put(self, member: str, before: int | None, load: int) -> None:
        """Note a member's load, and that it was another one before."""
        if before is not None:
            del self.levels[before][member]
            if not self.levels[before]:
                del self.levels[before]
        self.levels.setdefault(load, {})[member] = None


class Balance:
    """Who has what, from what each had. Members are taken in their order, topics by their ids."""

    def __init__(
        self, subscriptions: Mapping[str, frozenset[UUID]], topics: Mapping[UUID, int]
    ) -> None:
        self._topics = sorted(topics, key=lambda topic_id: topic_id.bytes)
        self._counts = topics
        by_topics: dict[frozenset[UUID], _Circle] = {}
        self._circle_of: dict[str, _Circle] = {}
        for member in sorted(subscriptions):
            reads = subscriptions[member]
            if reads not in by_topics:
                by_topics[reads] = _Circle({t: topics[t] for t in self._topics if t in reads})
            self._circle_of[member] = by_topics[reads]
            by_topics[reads].put(member, None, 0)
        self._circles = list(by_topics.values())
        self._readers: dict[UUID, Sequence[_Circle]] = {
            topic_id: [circle for circle in self._circles if topic_id in circle.limits]
            for topic_id in self._topics
        }
        self._parts: dict[str, Partitions | set[TopicIdPartition]] = dict.fromkeys(
            subscriptions, NO_PARTITIONS
        )
        self._taken: set[TopicIdPartition] = set()
        self._settled: set[_Circle] = set()
        self._lines: dict[str, list[TopicIdPartition]] = {}

    def keep(self, member: str, before: Partitions) -> None:
        """Leave a member what it had, as far as it reads that still and nobody else has it."""
        limits = self._circle_of[member].limits
        if any(number >= limits.get(topic_id, 0) for topic_id, number in before):
            before = frozenset(each for each in before if each[1] < limits.get(each[0], 0))
        if not before.isdisjoint(self._taken):
            before -= self._taken
        self._taken |= before
        self._parts[member] = before
        self._circle_of[member].put(member, 0, len(before))

    def deal(self) -> None:
        """Give each partition that nobody has to the reader that has least."""
        for topic_id in self._topics:
            readers = self._readers[topic_id]
            for number in range(self._counts[topic_id] if readers else 0):
                partition = TopicIdPartition(topic_id, number)
                if partition not in self._taken:
                    circle = min(readers, key=_lightest)
                    self._give(circle.first_at(circle.lightest), partition)

    def even_out(self) -> None:
        """Move partitions from members that have more to members that have less."""
        for circle in self._circles:
            self._level(circle)
        if len(self._circles) > 1:
            self._note_holders()
            while open_circles := [each for each in self._circles if each not in self._settled]:
                self._move_chain_from(max(open_circles, key=_heaviest))

    def targets(self) -> dict[str, Partitions]:
        return {member: frozenset(parts) for member, parts in self._parts.items()}

    def _level(self, circle: _Circle) -> None:
        while circle.heaviest - circle.lightest > 1:
            giver, taker = circle.first_at(circle.heaviest), circle.first_at(circle.lightest)
            partition = self._last_of(giver)
            self._take(giver, partition)
            self._give(taker, partition)

    def _last_of(self, member: str) -> TopicIdPartition:
        """What a member is to give up first."""
        parts, line = self._parts[member], self._lines.get(member)
        if line is None:
            line = self._lines[member] = sorted(parts, key=_order)
        # Since then it may have given some up otherwise, and got others.
        while line and line[-1] not in parts:
            line.pop()
        return line.pop() if line else max(parts, key=_order)

    def _move_chain_from(self, start: _Circle) -> None:
        """Make `start` one partition lighter; settle it and all it can give to if there is no way.

        They all have about as many as `start` then, nobody has more, and what can be reached from
        any of them is among them. So no later chain leads through them.
        """
        wanted = start.heaviest - 2
        came_by: dict[_Circle, tuple[_Circle, UUID]] = {}
        line, seen = deque([start]), {start, *self._settled}
        seen_topics: set[UUID] = set()
        while line:
            giver = line.popleft()
            takers: list[_Circle] = []
            for topic_id, holders in giver.holders.items():
                if len(seen) == len(self._circles):
                    break
                if not holders or topic_id in seen_topics:
                    continue
                seen_topics.add(topic_id)
                for taker in self._readers[topic_id]:
                    if taker not in seen:
                        seen.add(taker)
                        came_by[taker] = giver, topic_id
                        takers.append(taker)
            lightest = min(takers, key=_lightest, default=None)
            if lightest is not None and lightest.lightest <= wanted:
                self._follow(start, lightest, came_by)
                return
            line.extend(takers)
        self._settled = seen

    def _follow(
        self, start: _Circle, end: _Circle, came_by: Mapping[_Circle, tuple[_Circle, UUID]]
    ) -> None:
        hops: list[tuple[_Circle, UUID]] = []
        circle = end
        while circle is not start:
            hops.append(came_by[circle])
            circle = hops[-1][0]
        carried: TopicIdPartition | None = None
        for giver, topic_id in reversed(hops):
            member = giver.holder(topic_id)
            partition = max(each for each in self._parts[member] if each[0] == topic_id)
            self._take(member, partition)
            if carried is not None:
                self._give(member, carried)
            carried = partition
        assert carried is not None, "a chain has a hop"
        self._give(end.first_at(end.lightest), carried)
        self._level(start)

    def _note_holders(self) -> None:
        for circle in self._circles:
            circle.holders = {topic_id: {} for topic_id in circle.limits}
        for member, parts in self._parts.items():
            holders = self._circle_of[member].holders
            for topic_id, _ in parts:
                holders[topic_id][member] = holders[topic_id].get(member, 0) + 1

    def _changeable(self, member: str) -> set[TopicIdPartition]:
        parts = self._parts[member]
        if not isinstance(parts, set):
            parts = self._parts[member] = set(parts)
        return parts

    def _give(self, member: str, partition: TopicIdPartition) -> None:
        circle, parts = self._circle_of[member], self._changeable(member)
        parts.add(partition)
        circle.put(member, len(parts) - 1, len(parts))
        if circle.holders:
            holders = circle.holders[partition.topic_id]
            holders[member] = holders.get(member, 0) + 1

    def _take(self, member: str, partition: TopicIdPartition) -> None:
        circle, parts = self._circle_of[member], self._changeable(member)
        parts.remove(partition)
        circle.put(member, len(parts) + 1, len(parts))
        if circle.holders:
            holders = circle.holders[partition.topic_id]
            holders[member] -= 1
            if not holders[member]:
                del holders[member]


def _lightest(circle: _Circle) -> int:
    return circle.lightest


def _heaviest(circle: _Circle) -> int:
    return circle.heaviest


def _order(partition: TopicIdPartition) -> tuple[bytes, int]:
    return partition.topic_id.bytes, partition.partition
