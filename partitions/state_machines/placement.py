"""Which brokers hold the replicas of new partitions: evenly spread, over racks, drawn by lot.

Evenly means within one, of a topic's replicas and of its preferred leaders alike, as far as racks
of equal size allow it; what the brokers hold of other topics decides between equals, and the lot
after that. A partition's replicas stand in as many racks as there are, or as it has replicas.
Brokers that were not told their rack count as one rack: nobody knows what they share.
"""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from tidemark.partitions.state_machines.cluster_values import Assignment
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

Draw: TypeAlias = Callable[[], float]
"""The next random number, from 0 and below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A broker that may be given replicas."""

    node_id: NodeId
    rack: str | None = None
    is_alive: bool = True


@dataclass(frozen=True, slots=True)
class Load:
    """How many replicas, and how many preferred leaders among them, brokers have."""

    replicas: Counter[NodeId] = field(default_factory=Counter)
    leaders: Counter[NodeId] = field(default_factory=Counter)

    @classmethod
    def of(cls, assignments: Iterable[Assignment]) -> "Load":
        load = cls()
        load.add(assignments)
        return load

    def copy(self) -> "Load":
        return Load(self.replicas.copy(), self.leaders.copy())

    def add(self, assignments: Iterable[Assignment]) -> None:
        for assignment in assignments:
            self.replicas.update(assignment)
            self.leaders[assignment[0]] += 1

    def subtract(self, assignments: Iterable[Assignment]) -> None:
        for assignment in assignments:
            self.replicas.subtract(assignment)
            self.leaders[assignment[0]] -= 1

    def change(self, before: Sequence[Assignment], after: Sequence[Assignment]) -> None:
        """A topic is assigned otherwise, or has grown: mostly a few of its partitions, of many."""
        changed = [each for each in zip(before, after, strict=False) if each[0] is not each[1]]
        self.subtract(was for was, _ in changed)
        self.add(now for _, now in changed)
        self.subtract(before[len(after) :])
        self.add(after[len(before) :])


def place(
    candidates: Sequence[Candidate],
    *,
    partitions: int,
    replicas: int,
    load: Load,
    draw: Draw,
    existing: Sequence[Assignment] = (),
) -> tuple[Assignment, ...]:
    """Assignments for `partitions` new partitions of `replicas` replicas each.

    `load` is what all topics hold together; `existing` are the topic's own partitions, if it has
    some. Brokers that are not alive get replicas only where the others are too few. The same
    arguments and draws give the same assignments. Raises `RequestError`
    INVALID_REPLICATION_FACTOR if there are fewer candidates than replicas.
    """
    if not 1 <= replicas <= len(candidates):
        raise RequestError(
            ErrorCode.INVALID_REPLICATION_FACTOR, replicas_sentence(replicas, len(candidates))
        )
    usable = _usable(candidates, replicas, draw)
    spread = _Spread(usable, load=load, existing=Load.of(existing), draw=draw)
    sets = [spread.take(replicas) for _ in range(partitions)]
    return _with_leaders(sets, load=load, existing=Load.of(existing), draw=draw)


def extended(
    assignment: Assignment,
    candidates: Sequence[Candidate],
    *,
    replicas: int,
    load: Load,
    draw: Draw,
) -> Assignment:
    """A partition's replicas with more behind them, up to so many; fewer if brokers are too few.

    Racks that hold none of it come first, then the brokers that hold the least. `load` is what all
    topics hold together; what is added is added to it.
    """
    racks = {each.node_id: each.rack for each in candidates}
    held = Counter(racks.get(node) for node in assignment)
    taken = list(assignment)
    free = {each.node_id for each in candidates if each.is_alive} - {*taken}
    while free and len(taken) < replicas:
        node = min(sorted(free), key=lambda each: (held[racks[each]], load.replicas[each], draw()))
        free.remove(node)
        taken.append(node)
        held[racks[node]] += 1
        load.replicas[node] += 1
    return tuple(taken)


def replicas_sentence(replicas: int, brokers: int) -> str:
    """Why that many replicas cannot be had."""
    here, choice = ("broker", "1") if brokers == 1 else ("brokers", f"1 to {brokers}")
    return (
        f"{replicas} replicas on {brokers} {here}: ask for {choice}, or for -1 to have the default"
    )


def check_assignment(
    assignment: Assignment, brokers: Collection[NodeId], *, partition: int
) -> None:
    """Raises `RequestError` INVALID_REPLICA_ASSIGNMENT unless it names known brokers, each once."""
    if not assignment:
        raise _invalid(f"partition {partition} needs at least one replica")
    what = f"replicas of partition {partition} on {list(assignment)}"
    if len(set(assignment)) < len(assignment):
        raise _invalid(f"{what}: name each broker once")
    unknown = [node for node in assignment if node not in brokers]
    if unknown:
        raise _invalid(
            f"{what}: there is no broker {unknown[0]}, only "
            f"{', '.join(map(str, sorted(brokers))) or 'none at all'}"
        )


def check_same_factor(assignments: Sequence[Assignment]) -> None:
    """Raises `RequestError` INVALID_REPLICA_ASSIGNMENT unless all have equally many replicas."""
    factors = sorted({len(assignment) for assignment in assignments})
    if len(factors) > 1:
        raise _invalid(
            f"partitions of {factors[0]} and of {factors[-1]} replicas: give all of a topic's "
            "partitions equally many"
        )


def _invalid(sentence: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, sentence)


def _usable(candidates: Sequence[Candidate], replicas: int, draw: Draw) -> list[Candidate]:
    """Those alive; with dead ones, chosen by lot, where they alone are too few."""
    alive = [each for each in candidates if each.is_alive]
    dead = [each for each in candidates if not each.is_alive]
    missing = max(0, replicas - len(alive))
    lots = {each.node_id: draw() for each in dead} if missing else {}
    return alive + sorted(dead, key=lambda each: lots.get(each.node_id, 0))[:missing]


class _Rack:
    """The brokers of one rack, and how many of the topic's replicas they hold together."""

    def __init__(self, brokers: list[NodeId], load: Load, existing: Load) -> None:
        self.brokers = brokers
        self.replicas = sum(existing.replicas[node] for node in brokers)
        self.load = sum(load.replicas[node] for node in brokers)

    @property
    def fill(self) -> tuple[float, float]:
        size = len(self.brokers)
        return (self.replicas / size, self.load / size)


class _Spread:
    """Chooses sets of brokers: first the racks, the emptiest ones; then in each its emptiest.

    The totals of equal racks so stay within one of each other, and so do those of a rack's brokers.
    Where racks of s brokers hold t or t + 1 replicas, each of their brokers holds between t / s
    rounded down and (t + 1) / s rounded up, which are within one of each other, too.
    """

    def __init__(
        self, candidates: Sequence[Candidate], *, load: Load, existing: Load, draw: Draw
    ) -> None:
        self._draw = draw
        self._load = Counter(load.replicas)
        self._held = Counter(existing.replicas)
        by_rack: dict[str | None, list[NodeId]] = {}
        for candidate in candidates:
            by_rack.setdefault(candidate.rack, []).append(candidate.node_id)
        self._racks = [_Rack(brokers, load, existing) for brokers in by_rack.values()]

    def take(self, replicas: int) -> list[NodeId]:
        taken: list[NodeId] = []
        used = [0] * len(self._racks)
        while len(taken) < replicas:
            rack_index = self._emptiest_rack(used)
            rack = self._racks[rack_index]
            node = self._emptiest_broker([node for node in rack.brokers if node not in taken])
            taken.append(node)
            used[rack_index] += 1
            rack.replicas += 1
            rack.load += 1
            self._held[node] += 1
            self._load[node] += 1
        return taken

    def _emptiest_rack(self, used: Sequence[int]) -> int:
        open_racks = [i for i, rack in enumerate(self._racks) if used[i] < len(rack.brokers)]
        return min(open_racks, key=lambda i: (used[i], *self._racks[i].fill, self._draw()))

    def _emptiest_broker(self, nodes: Sequence[NodeId]) -> NodeId:
        return min(nodes, key=lambda node: (self._held[node], self._load[node], self._draw()))


def _with_leaders(
    sets: Sequence[Sequence[NodeId]], *, load: Load, existing: Load, draw: Draw
) -> tuple[Assignment, ...]:
    """Each set with its preferred leader first, the others in an order of chance."""
    led, all_led = Counter(existing.leaders), Counter(load.leaders)
    leaders = []
    for nodes in sets:
        leader = min(nodes, key=lambda node: (led[node], all_led[node], draw()))
        leaders.append(leader)
        led[leader] += 1
        all_led[leader] += 1
    _even_out(sets, leaders, led)
    assignments = []
    for nodes, leader in zip(sets, leaders, strict=True):
        lots = {node: draw() for node in nodes}
        others = sorted((node for node in nodes if node != leader), key=lots.__getitem__)
        assignments.append((leader, *others))
    return tuple(assignments)


def _even_out(
    sets: Sequence[Sequence[NodeId]], leaders: list[NodeId], led: Counter[NodeId]
) -> None:
    """Pass leaders on along chains of partitions until that makes nothing evener.

    Choosing one by one can leave a broker with too many, all of whose partitions have replicas only
    on brokers that have one less; but those may pass one on to a third.
    """
    of_leader: dict[NodeId, set[int]] = {}
    for partition, leader in enumerate(leaders):
        of_leader.setdefault(leader, set()).add(partition)
    brokers = sorted({node for nodes in sets for node in nodes})
    # Each step makes the sum of the squares smaller, so this ends.
    while chain := _first_chain(sets, of_leader, led, brokers):
        led[leaders[chain[0][0]]] -= 1
        for partition, taker in chain:
            of_leader[leaders[partition]].discard(partition)
            of_leader.setdefault(taker, set()).add(partition)
            leaders[partition] = taker
        led[chain[-1][1]] += 1


def _first_chain(
    sets: Sequence[Sequence[NodeId]],
    of_leader: Mapping[NodeId, Collection[int]],
    led: Mapping[NodeId, int],
    brokers: Sequence[NodeId],
) -> list[tuple[int, NodeId]]:
    least = min(led[node] for node in brokers)
    givers = [node for node in brokers if led[node] >= least + 2]
    chains = (_chain(sets, of_leader, led, giver) for giver in givers)
    return next((chain for chain in chains if chain), [])


def _chain(
    sets: Sequence[Sequence[NodeId]],
    of_leader: Mapping[NodeId, Collection[int]],
    led: Mapping[NodeId, int],
    giver: NodeId,
) -> list[tuple[int, NodeId]]:
    """Partitions and who takes each, from `giver` to a broker that leads two less; or none."""
    came_by: dict[NodeId, tuple[int, NodeId] | None] = {giver: None}
    waiting = deque([giver])
    while waiting:
        node = waiting.popleft()
        if led[node] <= led[giver] - 2:
            return _back_from(node, came_by)
        for partition in sorted(of_leader.get(node, ())):
            for other in sets[partition]:
                if other not in came_by:
                    came_by[other] = (partition, node)
                    waiting.append(other)
    return []


def _back_from(
    node: NodeId, came_by: Mapping[NodeId, tuple[int, NodeId] | None]
) -> list[tuple[int, NodeId]]:
    chain: list[tuple[int, NodeId]] = []
    while (step := came_by[node]) is not None:
        partition, before = step
        chain.append((partition, node))
        node = before
    return chain[::-1]
