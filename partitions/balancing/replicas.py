"""Where the replicas of a broker go when it leaves for good.

As with new partitions, a group's replicas stand in as many racks as there are or as it has
replicas, and no more of them in one than need be; brokers that were not told their rack count as
one. Then its topic is spread evenly, then
the number of all replicas; their bytes decide between equals, and the lot after that.
A plan says all that is to be done; whoever carries it out begins a few at a time, one change of a
group after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from tidemark.partitions.balancing.quorums import why_unchangeable
from tidemark.partitions.balancing.refusals import Reason, Refusal, Refusals
from tidemark.partitions.balancing.settings import Settings, Weights
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.partitions.balancing.tally import Tally
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.protocol.values import dataclass

_WEIGHTS: Final = Weights()
"""Not the operator's, which are about leaders: copies cost more than a pause."""
_GAIN_MIN: Final = 1.0
"""A step of evenness in number, of all or of a topic's (at its weight). For less, and for its bytes
alone, which change, a replica's new place is not chosen again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaMove:
    """One replica to be copied to `target` and given up at `source`."""

    partition: TopicPartition
    source: NodeId
    target: NodeId
    before: tuple[NodeId, ...]
    after: tuple[NodeId, ...]
    """The group's replicas then; the first is to be the preferred leader."""
    size_bytes: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Holdings:
    """What a broker holds before and after a plan."""

    node_id: NodeId
    replicas_before: int
    replicas_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlan:
    """Moves, at most one for each group, and what cannot be done."""

    moves: tuple[ReplicaMove, ...]
    refusals: tuple[Refusal, ...]
    brokers: tuple[Holdings, ...]

    @property
    def size_bytes(self) -> int:
        """What has to be copied."""
        return sum(move.size_bytes for move in self.moves)


def plan_decommission(
    snapshot: Snapshot, settings: Settings, node: NodeId, rng: Random
) -> ReplicaPlan:
    """Where the replicas of the broker `node` go so that it can leave. Where there are refusals, it
    cannot leave yet, or not at all."""
    planner = _Planner(snapshot, settings, rng)
    if node not in planner.brokers:
        planner.refusals.add(Reason.UNKNOWN, f"there is no broker {node}")
    else:
        planner.move_all_off(node)
    return planner.made()


class _Planner:
    """Replicas as they are after the moves found so far."""

    def __init__(self, snapshot: Snapshot, settings: Settings, rng: Random) -> None:
        ordered, self._groups = snapshot.in_order()
        self.brokers = {broker.node_id: broker for broker in ordered}
        self.takers = frozenset(broker.node_id for broker in ordered if _takes(broker))
        self.refusals = Refusals()
        self._settings = settings
        self._racks = {broker.node_id: broker.rack for broker in ordered}
        self._index = {broker.node_id: at for at, broker in enumerate(ordered)}
        self._lots = {broker.node_id: rng.random() for broker in ordered}
        self._group_lots = [rng.random() for _ in self._groups]
        topics: dict[str, int] = {}
        self._topic = [topics.setdefault(g.partition.topic, len(topics)) for g in self._groups]
        size = sum(g.size_bytes * len(g.replicas) for g in self._groups)
        self._share = [g.size_bytes / max(1, size) for g in self._groups]
        self._tally = Tally(brokers=len(ordered), topics=len(topics), takers=(), weights=_WEIGHTS)
        self._bytes: Counter[NodeId] = Counter()
        self._firsts: Counter[NodeId] = Counter()
        for number, group in enumerate(self._groups):
            self._firsts.update(group.replicas[:1])
            for node in group.replicas:
                self._bytes[node] += group.size_bytes
                if node in self._index:
                    self._tally.add(self._index[node], self._topic[number], self._share[number])
        self._before = self._holdings()
        # Which replica of a group goes where, and why.
        self._chosen: dict[int, tuple[NodeId, NodeId, str]] = {}
        self._leaving = ""

    def _holdings(self) -> dict[NodeId, tuple[int, int]]:
        return {
            node: (self._tally.counts[at], self._bytes[node]) for node, at in self._index.items()
        }

    def made(self) -> ReplicaPlan:
        after = self._holdings()
        return ReplicaPlan(
            moves=tuple(self._as_move(number, *chosen) for number, chosen in self._chosen.items()),
            refusals=self.refusals.all(),
            brokers=tuple(
                Holdings(
                    node_id=node,
                    replicas_before=self._before[node][0],
                    replicas_after=after[node][0],
                    bytes_before=self._before[node][1],
                    bytes_after=after[node][1],
                )
                for node in self._index
            ),
        )

    def move_all_off(self, node: NodeId) -> None:
        """The largest first: the small ones then even out what those have done."""
        state = self.brokers[node].state
        what = "leaves" if state is BrokerState.ACTIVE else f"is {state.value}"
        self._leaving = f"broker {node} {what}"
        held = [number for number, group in enumerate(self._groups) if node in group.replicas]
        held.sort(key=lambda number: (-self._groups[number].size_bytes, self._group_lots[number]))
        for number in held:
            group = self._groups[number]
            others = self.takers - group.holders
            unchangeable = why_unchangeable(group, self.brokers, self._settings)
            if not others:
                why = self._why_too_few(group, node)
                self.refusals.add(Reason.TOO_FEW_BROKERS, why, partition=group.partition)
            elif unchangeable is not None:
                self.refusals.add(
                    unchangeable.reason, unchangeable.sentence, partition=group.partition
                )
            else:
                target = min(others, key=lambda other: self._fill(number, node, other))
                self._choose(number, node, target, self._leaving)
        targets = sorted(self.takers - {node})
        changed = True
        while changed:
            changed = False
            for number in list(self._chosen):
                changed |= self._choose_again(number, targets)

    def _why_too_few(self, group: Group, node: NodeId) -> str:
        observing = sorted(self.takers & {*group.observers})
        why = (
            f"it has {_count(len(group.replicas), 'replica')}, and without broker {node} "
            f"there are {_count(len(self.takers - {node}), 'broker')} to hold them"
        )
        if not observing:
            return why
        return f"{why}; broker {observing[0]} could, if it did not observe it"

    def _fill(self, number: int, source: NodeId, node: NodeId) -> tuple[int, int, int, int, float]:
        """How little a broker is suited to take a replica."""
        at = self._index[node]
        return (
            self._beside(self._groups[number], source, node),
            self._tally.by_topic[self._topic[number]][at],
            self._tally.counts[at],
            self._bytes[node],
            self._lots[node],
        )

    def _beside(self, group: Group, source: NodeId, target: NodeId) -> int:
        """How many of the replicas that stay are in the target's rack, and may fail with it."""
        racks, rack = self._racks, self._racks.get(target)
        return sum(racks.get(node) == rack for node in group.replicas if node != source)

    def _gain(self, number: int, source: NodeId, target: NodeId) -> float:
        return self._tally.gain(
            self._index[source], self._index[target], self._topic[number], self._share[number]
        )

    def _choose(self, number: int, source: NodeId, target: NodeId, why: str) -> None:
        self._shift(number, source, target)
        self._chosen[number] = (source, target, why)

    def _shift(self, number: int, source: NodeId, target: NodeId) -> None:
        self._tally.shift(
            self._index[source], self._index[target], self._topic[number], self._share[number]
        )
        self._bytes[source] -= self._groups[number].size_bytes
        self._bytes[target] += self._groups[number].size_bytes

    def _choose_again(self, number: int, targets: Sequence[NodeId]) -> bool:
        """Let the replica go elsewhere, if that is evener by a step; racks stay as good."""
        group = self._groups[number]
        source, target, why = self._chosen[number]
        beside, holders = self._beside(group, source, target), group.holders
        for other in targets:
            if (
                other not in holders
                and other != target
                and self._beside(group, source, other) <= beside
                and self._gain(number, target, other) >= _GAIN_MIN
            ):
                self._shift(number, target, source)
                self._choose(number, source, other, why)
                return True
        return False

    def _as_move(self, number: int, source: NodeId, target: NodeId, why: str) -> ReplicaMove:
        group = self._groups[number]
        after = [target if node == source else node for node in group.replicas]
        if group.replicas[0] == source:
            # Who takes over a preferred leader's replica need not be the one to lead.
            takers = [node for node in after if node in self.takers]
            first = min(takers, key=lambda node: (self._firsts[node], self._lots[node]))
            after.remove(first)
            after.insert(0, first)
            self._firsts[source] -= 1
            self._firsts[first] += 1
        return ReplicaMove(
            partition=group.partition,
            source=source,
            target=target,
            before=group.replicas,
            after=tuple(after),
            size_bytes=group.size_bytes,
            reason=why,
        )


def _takes(broker: Broker) -> bool:
    return broker.is_alive and not broker.is_full and broker.state is BrokerState.ACTIVE


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
