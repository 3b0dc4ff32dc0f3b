"""The search for a better arrangement of leaders: single moves, then chains, then swaps.

Every step makes the objective smaller by more than measuring errors can account for, and moves
groups that this plan has not moved yet: so it ends. What is found first is worth about the most.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from random import Random
from typing import Final

from tidemark.partitions.balancing.board import NONE, Board, Bounds
from tidemark.partitions.balancing.tally import EPSILON, Gains
from tidemark.protocol.values import dataclass

_LEVELS_MAX: Final = 4
_NEIGHBOURS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """One leader's move, and what the brokers were like just before it."""

    group: int
    source: int
    target: int
    gains: Gains
    counts: tuple[int, int]
    """Leaders of the source and of the target."""
    counts_of_topic: tuple[int, int]
    shares: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Moves that are worth it together: one, two that change places, or a chain."""

    shifts: tuple[Shift, ...]
    gain: float
    is_forced: bool = False
    """It empties a broker, and may cost evenness."""


class Search:
    """Fills `steps`, as far as the bounds allow."""

    def __init__(self, board: Board, bounds: Bounds, rng: Random) -> None:
        self.board = board
        self.bounds = bounds
        self.steps: list[Step] = []
        # Between equals the lot decides, drawn once: by number alone, the same partitions would
        # pay for every unevenness.
        self._lots = [rng.random() for _ in board.groups]
        self._broker_lots = [rng.random() for _ in board.brokers]
        # How often each broker was touched, and how often the two of a pair had been when it was
        # last searched for swaps.
        self._changes = [0] * len(board.brokers)
        self._searched: dict[tuple[int, int], tuple[int, int]] = {}

    def run(self) -> None:
        self.empty()
        while self._settle() and self.bounds.left > 0:
            # Where the first moves have led to, some of them may turn out to have gone the wrong
            # way, and nothing has been begun yet.
            for step in self.steps:
                for shift in step.shifts:
                    self.board.is_open[shift.group] = True
            self._searched.clear()
        self.steps = _joined(self.steps)

    def _settle(self) -> bool:
        """Move each group once at most; whether any was."""
        before = found = len(self.steps)
        while True:
            if not self._move_singly():
                self._move_in_chains()
            self._swap()
            if len(self.steps) == found:
                return found > before
            found = len(self.steps)

    # One by one

    def empty(self) -> None:
        """Get leaders off the brokers that are to have none, the busiest first."""
        board = self.board
        forced = [g for g, is_forced in enumerate(board.is_forced) if is_forced]
        forced.sort(key=lambda g: (-board.share[g], self._lots[g]))
        for group in forced:
            if board.is_open[group]:
                target, _ = self._best(group, is_priced=False)
                if target != NONE:
                    self._take([(group, target)], is_forced=True)

    def _move_singly(self) -> bool:
        """What pays by itself; whether anything did. Each move is worth at least half of what any
        other would have brought: a gain is computed anew only when its group comes up, and put
        back if it has fallen to less than half, so a group comes up as often as gains can be
        halved."""
        heap = []
        for group in self.board.open_groups():
            target, net = self._best(group)
            if target != NONE and net > EPSILON:
                heap.append((-net, self._lots[group], group))
        heapify(heap)
        before = len(self.steps)
        self._take_from(heap)
        return len(self.steps) > before

    def _take_from(self, heap: list[tuple[float, float, int]]) -> None:
        while heap and self.bounds.left > 0:
            promised, lot, group = heappop(heap)
            target, net = self._best(group)
            if target == NONE or net <= EPSILON:
                continue
            if 2 * net < -promised:
                heappush(heap, (-net, lot, group))
            else:
                self._take([(group, target)])

    def _best(self, group: int, *, is_priced: bool = True) -> tuple[int, float]:
        free = self.bounds.of_broker
        if self.bounds.left < 1 or free[self.board.lead[group]] < 1:
            return NONE, 0.0
        return self.board.best(group, free, self._broker_lots, is_priced=is_priced)

    # Chains

    def _move_in_chains(self) -> None:
        """Where a broker with too many shares no group with one that has too few, but both do with
        a third: pass one on to that, which passes on another."""
        board = self.board
        counts = [board.tally.counts[broker] for broker in board.takers]
        if len(counts) < 3 or max(counts) - min(counts) < 2:
            return
        pairs = board.open_by_pair()
        while self.bounds.left > 1 and self._chain_once(pairs):
            pass

    def _chain_once(self, pairs: Mapping[tuple[int, int], list[int]]) -> bool:
        counts = self.board.tally.counts
        givers = sorted(
            self.board.takers, key=lambda broker: (-counts[broker], self._broker_lots[broker])
        )
        return any(
            self._try(list(chain)) for giver in givers for chain in self._chains(giver, pairs)
        )

    def _chains(
        self, giver: int, pairs: Mapping[tuple[int, int], list[int]]
    ) -> Iterator[Sequence[tuple[int, int]]]:
        """The shortest chains from `giver` to brokers that lead two less, or fewer yet."""
        counts, takers = self.board.tally.counts, self.board.takers
        free = self.bounds.of_broker
        came_from = {giver: giver}
        waiting = deque([giver] if free[giver] > 0 else [])
        while waiting:
            broker = waiting.popleft()
            if counts[broker] <= counts[giver] - 2:
                yield self._along(broker, came_from, pairs)
            for other in takers:
                if (
                    other not in came_from
                    and free[other] > 0
                    and self._has_open(pairs.get((broker, other)))
                ):
                    came_from[other] = broker
                    waiting.append(other)

    def _has_open(self, groups: list[int] | None) -> bool:
        while groups and not self.board.is_open[groups[-1]]:
            groups.pop()
        return bool(groups)

    def _along(
        self,
        broker: int,
        came_from: Mapping[int, int],
        pairs: Mapping[tuple[int, int], list[int]],
    ) -> Sequence[tuple[int, int]]:
        """For each pair of neighbours the group that had best pass between them."""
        chain = []
        while (source := came_from[broker]) != broker:
            chain.append((self._fittest(pairs[source, broker], broker), broker))
            broker = source
        return chain[::-1]

    def _fittest(self, groups: Sequence[int], target: int) -> int:
        board = self.board
        return max(
            (group for group in groups if board.is_open[group]),
            key=lambda group: (board.net(group, target), self._lots[group]),
        )

    # Swaps

    def _swap(self) -> None:
        """Let two leaders change places, where that makes topics or traffic evener, or brings
        leaders home, and leaves the brokers' numbers of leaders as they are."""
        if self.bounds.left > 1:
            pairs = self.board.open_by_pair()
            for (one, other), outs in sorted(pairs.items()):
                if one < other and (backs := pairs.get((other, one))):
                    changes = self._changes[one], self._changes[other]
                    if self._searched.get((one, other)) != changes:
                        self._searched[one, other] = changes
                        self._swap_between(one, other, outs, backs)

    def _swap_between(self, one: int, other: int, outs: list[int], backs: list[int]) -> None:
        board = self.board
        self._match_levels(
            one, other, self._levels(outs, other, True), self._levels(backs, one, True)
        )
        # What two groups of one topic do to that topic when they change places is nothing at all,
        # not the sum of what each does.
        if board.noisy_rate_bound(one, other) > 0 or self._is_home(outs, other, backs, one):
            out_of, back_of = self._of_topics(outs), self._of_topics(backs)
            for topic in sorted(out_of.keys() & back_of.keys()):
                self._match_levels(
                    one,
                    other,
                    self._levels(out_of[topic], other, False),
                    self._levels(back_of[topic], one, False),
                )

    def _is_home(self, outs: list[int], other: int, backs: list[int], one: int) -> bool:
        preferred = self.board.preferred
        return any(preferred[g] == other for g in outs) or any(preferred[g] == one for g in backs)

    def _of_topics(self, groups: list[int]) -> dict[int, list[int]]:
        of_topic: dict[int, list[int]] = {}
        for group in groups:
            of_topic.setdefault(self.board.topic[group], []).append(group)
        return of_topic

    def _levels(
        self, groups: list[int], target: int, with_topic: bool
    ) -> list[tuple[float, list[int]]]:
        """Groups by what their move is worth without traffic, best first: there are few different
        such gains, and only the best are of interest."""
        worth, is_open = self.board.worth_without_traffic, self.board.is_open
        levels: dict[float, list[int]] = {}
        for group in groups:
            if is_open[group]:
                levels.setdefault(worth(group, target, with_topic), []).append(group)
        return sorted(levels.items(), reverse=True)[:_LEVELS_MAX]

    def _match_levels(
        self,
        one: int,
        other: int,
        there: list[tuple[float, list[int]]],
        here: list[tuple[float, list[int]]],
    ) -> None:
        for out_worth, out_groups in there:
            for back_worth, back_groups in here:
                of_rate = self.board.noisy_rate_bound(one, other)
                if out_worth + back_worth + of_rate > EPSILON:
                    self._match(one, other, out_groups, back_groups)

    def _match(self, one: int, other: int, outs: list[int], backs: list[int]) -> None:
        """Pair groups off so that the difference of a pair's traffic comes close to what evens the
        two brokers out."""
        board = self.board
        backs = sorted((g for g in backs if board.is_open[g]), key=self._by_share)
        for group in sorted(outs, key=self._by_share, reverse=True):
            if not self.bounds.allow((one, one, other, other), 2):
                return
            if not board.is_open[group]:
                continue
            shares = board.tally.shares
            wanted = board.share[group] - (shares[one] - shares[other]) / 2
            at = bisect_left(backs, wanted, key=board.share.__getitem__)
            near = backs[max(0, at - _NEIGHBOURS // 2) : at + _NEIGHBOURS // 2]
            for partner in near:
                if self._try([(group, other), (partner, one)]):
                    backs.remove(partner)
                    break

    def _by_share(self, group: int) -> tuple[float, float]:
        return (self.board.share[group], self._lots[group])

    # Steps

    def _try(self, moves: list[tuple[int, int]]) -> bool:
        """Take the moves together if they pay together and may begin."""
        board = self.board
        sources = [board.lead[group] for group, _ in moves]
        touched = [*sources, *(target for _, target in moves)]
        if not self.bounds.allow(touched, len(moves)):
            return False
        net = 0.0
        for group, target in moves:
            net += board.net(group, target)
            board.move(group, target)
        for (group, _), source in reversed(list(zip(moves, sources, strict=True))):
            board.move(group, source)
        if net <= EPSILON:
            return False
        self._take(moves)
        return True

    def _take(self, moves: list[tuple[int, int]], *, is_forced: bool = False) -> None:
        board, shifts, gain = self.board, [], 0.0
        tally = board.tally
        for group, target in moves:
            source, of_topic = board.lead[group], tally.by_topic[board.topic[group]]
            gain += board.gain(group, target)
            shifts.append(
                Shift(
                    group=group,
                    source=source,
                    target=target,
                    gains=board.gains(group, target),
                    counts=(tally.counts[source], tally.counts[target]),
                    counts_of_topic=(of_topic[source], of_topic[target]),
                    shares=(tally.shares[source], tally.shares[target]),
                )
            )
            board.move(group, target)
            board.is_open[group] = board.is_forced[group] = False
            self.bounds.take((source, target), 1)
            self._changes[source] += 1
            self._changes[target] += 1
        self.steps.append(Step(shifts=tuple(shifts), gain=gain, is_forced=is_forced))


def _joined(steps: list[Step]) -> list[Step]:
    """Each group moves once, from its first place to its last, or not at all if they are the same.
    Steps that moved the same group become one."""
    owner: dict[int, int] = {}
    parent = list(range(len(steps)))

    def root(number: int) -> int:
        while parent[number] != number:
            number = parent[number]
        return number

    for number, step in enumerate(steps):
        for shift in step.shifts:
            earlier = root(owner.setdefault(shift.group, number))
            parent[max(earlier, root(number))] = min(earlier, root(number))
    together: dict[int, list[Step]] = {}
    for number, step in enumerate(steps):
        together.setdefault(root(number), []).append(step)
    joined = (some[0] if len(some) == 1 else _join(some) for some in together.values())
    return [step for step in joined if step.shifts]


def _join(steps: list[Step]) -> Step:
    shifts: dict[int, Shift] = {}
    for step in steps:
        for then in step.shifts:
            first = shifts.get(then.group)
            shifts[then.group] = then if first is None else _after(first, then)
    return Step(
        shifts=tuple(shift for shift in shifts.values() if shift.source != shift.target),
        gain=sum(step.gain for step in steps),
        is_forced=any(step.is_forced for step in steps),
    )


def _after(first: Shift, then: Shift) -> Shift:
    """Both in one."""
    return Shift(
        group=first.group,
        source=first.source,
        target=then.target,
        gains=first.gains.plus(then.gains),
        counts=(first.counts[0], then.counts[1]),
        counts_of_topic=(first.counts_of_topic[0], then.counts_of_topic[1]),
        shares=(first.shares[0], then.shares[1]),
    )
