"""The search for a better arrangement of leaders: single moves, then chains, then swaps.

Every step makes the objective smaller by more than measuring errors can account for, and moves
groups that this plan has not moved yet: so it ends. What is found first is worth about the most.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from random import Random

from tidemark.partitions.balancing.board import NONE, Board
from tidemark.partitions.balancing.bounds import Bounds
from tidemark.partitions.balancing.draft import Draft
from tidemark.partitions.balancing.steps import Step, joined
from tidemark.partitions.balancing.swaps import Swaps
from tidemark.partitions.balancing.tally import EPSILON


class Search:
    """Fills `steps`, as far as the bounds allow."""

    def __init__(self, board: Board, bounds: Bounds, rng: Random) -> None:
        self.board = board
        self.bounds = bounds
        self._draft = Draft(board, bounds, rng)
        self._swaps = Swaps(self._draft)

    @property
    def steps(self) -> list[Step]:
        """What was found, in the order in which it had best begin."""
        return self._draft.steps

    def run(self) -> None:
        self.empty()
        while self._settle() and self.bounds.left > 0:
            # Where the first moves have led to, some of them may turn out to have gone the wrong
            # way, and nothing has been begun yet.
            for step in self.steps:
                for shift in step.shifts:
                    self.board.is_open[shift.group] = True
            self._swaps.search_anew()
        self._draft.steps = joined(self.steps)

    def _settle(self) -> bool:
        """Move each group once at most; whether any was."""
        before = found = len(self.steps)
        while True:
            if not self._move_singly():
                self._move_in_chains()
            self._swaps.take()
            if len(self.steps) == found:
                return found > before
            found = len(self.steps)

    # One by one

    def empty(self) -> None:
        """Get leaders off the brokers that are to have none, the busiest first."""
        board = self.board
        forced = [g for g, is_forced in enumerate(board.is_forced) if is_forced]
        forced.sort(key=lambda g: (-board.share[g], self._draft.lots[g]))
        for group in forced:
            if board.is_open[group]:
                target, _ = self._best(group, is_priced=False)
                if target != NONE:
                    self._draft.take([(group, target)])

    def _move_singly(self) -> bool:
        """What pays by itself; whether anything did. Each move is worth at least half of what any
        other would have brought: a gain is computed anew only when its group comes up, and put
        back if it has fallen to less than half, so a group comes up as often as gains can be
        halved."""
        heap = []
        for group in self.board.open_groups():
            target, net = self._best(group)
            if target != NONE and net > EPSILON:
                heap.append((-net, self._draft.lots[group], group))
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
                self._draft.take([(group, target)])

    def _best(self, group: int, *, is_priced: bool = True) -> tuple[int, float]:
        free = self.bounds.of_broker
        if self.bounds.left < 1 or free[self.board.lead[group]] < 1:
            return NONE, 0.0
        return self.board.best(group, free, self._draft.broker_lots, is_priced=is_priced)

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
            self.board.takers, key=lambda broker: (-counts[broker], self._draft.broker_lots[broker])
        )
        return any(
            self._draft.attempt(list(chain))
            for giver in givers
            for chain in self._chains(giver, pairs)
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
                    and self._drop_closed(pairs.get((broker, other)))
                ):
                    came_from[other] = broker
                    waiting.append(other)

    def _drop_closed(self, groups: list[int] | None) -> bool:
        """From the end, which is taken next. False: none is left."""
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
            key=lambda group: (board.net(group, target), self._draft.lots[group]),
        )
