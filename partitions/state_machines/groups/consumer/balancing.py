"""Dealing partitions out so that nobody could have fewer of them without somebody having more.

Loads are as even as subscriptions allow when no chain of moves leads from a member to one that has
at least two partitions fewer (an alternating path of the semi-matching of partitions to members:
Harvey et al. 2003). So the chains are looked for and followed until there is none.
"""

from collections import deque
from collections.abc import Mapping
from heapq import heapify, heapreplace
from uuid import UUID

from tidemark.partitions.state_machines.groups.topic_view import TopicIdPartition


class Balance:
    """`parts` is who has what, in the order in which it was given."""

    def __init__(self, subscriptions: Mapping[str, frozenset[UUID]]) -> None:
        self.parts: dict[str, dict[TopicIdPartition, None]] = {m: {} for m in subscriptions}
        self._subscriptions = subscriptions
        self._readers: dict[UUID, list[str]] = {}
        for member, topics in subscriptions.items():
            for topic_id in topics:
                self._readers.setdefault(topic_id, []).append(member)
        self._taken: set[TopicIdPartition] = set()
        self._heap: list[tuple[int, str]] = []
        self._heap_of: UUID | None = None
        self._settled: set[str] = set()
        self._settled_topics: set[UUID] = set()

    def keep(self, member: str, partition: TopicIdPartition) -> None:
        """Leave a partition with the member that had it, if it still reads that topic."""
        if partition.topic_id in self._subscriptions[member] and partition not in self._taken:
            self._give(member, partition)

    def deal(self, partition: TopicIdPartition) -> None:
        """Give a partition that nobody has to the reader that has least. Topic by topic."""
        readers = self._readers.get(partition.topic_id)
        if partition in self._taken or not readers:
            return
        if self._heap_of != partition.topic_id:
            self._heap_of = partition.topic_id
            self._heap = [(len(self.parts[member]), member) for member in readers]
            heapify(self._heap)
        load, member = self._heap[0]
        self._give(member, partition)
        heapreplace(self._heap, (load + 1, member))

    def even_out(self) -> None:
        """Move partitions along chains from members that have more to members that have less."""
        loads: dict[int, dict[str, None]] = {}
        for member, parts in self.parts.items():
            loads.setdefault(len(parts), {})[member] = None
        load = max(loads, default=0)
        while load > 1:
            if not loads.get(load):
                load -= 1
                continue
            member = next(iter(loads[load]))
            del loads[load][member]
            end = self._move_chain_from(member)
            if end is None:
                continue
            loads.setdefault(load - 1, {})[member] = None
            received = len(self.parts[end])
            loads[received - 1].pop(end, None)
            loads.setdefault(received, {})[end] = None

    def _give(self, member: str, partition: TopicIdPartition) -> None:
        self.parts[member][partition] = None
        self._taken.add(partition)

    def _move_chain_from(self, start: str) -> str | None:
        """Make `start` one partition lighter; who got one more, or None if there is no way.

        If there is none, whoever was reached is settled: they all have about as many as `start`,
        and what can be reached from any of them is among them. So no later chain leads through
        them, and each topic is looked at in vain once.
        """
        if start in self._settled:
            return None
        wanted = len(self.parts[start]) - 2
        came_by: dict[str, tuple[str, TopicIdPartition]] = {}
        line, seen, seen_topics = deque([start]), {start}, set[UUID]()
        while line:
            giver = line.popleft()
            takers = self._takers(giver, seen, seen_topics)
            for taker, partition in takers.items():
                came_by[taker] = (giver, partition)
            lightest = min(takers, key=self._load, default=None)
            if lightest is not None and len(self.parts[lightest]) <= wanted:
                self._follow(start, lightest, came_by)
                return lightest
            line.extend(takers)
        self._settled |= seen
        self._settled_topics |= seen_topics
        return None

    def _takers(
        self, giver: str, seen: set[str], seen_topics: set[UUID]
    ) -> dict[str, TopicIdPartition]:
        """Members not seen yet that could take a partition of the giver's, and which; seen now."""
        # The last that was given of each topic goes first: what has been kept longest stays.
        last_of = {partition.topic_id: partition for partition in self.parts[giver]}
        takers: dict[str, TopicIdPartition] = {}
        for topic_id, partition in last_of.items():
            if topic_id in seen_topics or topic_id in self._settled_topics:
                continue
            seen_topics.add(topic_id)
            for taker in self._readers[topic_id]:
                if taker not in seen and taker not in self._settled:
                    seen.add(taker)
                    takers[taker] = partition
        return takers

    def _load(self, member: str) -> tuple[int, str]:
        return len(self.parts[member]), member

    def _follow(
        self, start: str, end: str, came_by: Mapping[str, tuple[str, TopicIdPartition]]
    ) -> None:
        taker = end
        while taker != start:
            giver, partition = came_by[taker]
            del self.parts[giver][partition]
            self.parts[taker][partition] = None
            taker = giver
