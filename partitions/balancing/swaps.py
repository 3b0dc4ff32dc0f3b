"""Leaders that change places, where no single move pays: numbers of leaders stay as they are."""

from bisect import bisect_left
from typing import Final

from tidemark.partitions.balancing.draft import Draft
from tidemark.partitions.balancing.tally import EPSILON

_LEVELS_MAX: Final = 4
_NEIGHBOURS: Final = 4


class Swaps:
    """Searches pairs of brokers, each again only once a step has touched one of the two."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._board = draft.board
        # How often the two of a pair had been touched when it was last searched.
        self._searched: dict[tuple[int, int], tuple[int, int]] = {}

    def search_anew(self) -> None:
        """Groups may be moved that could not be before: search all pairs again."""
        self._searched.clear()

    def take(self) -> None:
        """Let two leaders change places, where that makes topics or traffic evener, or brings
        leaders home, and leaves the brokers' numbers of leaders as they are."""
        if self._draft.bounds.left > 1:
            pairs, touched = self._board.open_by_pair(), self._draft.changes
            for (one, other), outs in sorted(pairs.items()):
                if one < other and (backs := pairs.get((other, one))):
                    changes = touched[one], touched[other]
                    if self._searched.get((one, other)) != changes:
                        self._searched[one, other] = changes
                        self._swap_between(one, other, outs, backs)

    def _swap_between(self, one: int, other: int, outs: list[int], backs: list[int]) -> None:
        board = self._board
        self._match_levels(
            one,
            other,
            self._levels(outs, other, with_topic=True),
            self._levels(backs, one, with_topic=True),
        )
        # What two groups of one topic do to that topic when they change places is nothing at all,
        # not the sum of what each does.
        if board.noisy_rate_bound(one, other) > 0 or self._is_home(outs, other, backs, one):
            out_of, back_of = self._of_topics(outs), self._of_topics(backs)
            for topic in sorted(out_of.keys() & back_of.keys()):
                self._match_levels(
                    one,
                    other,
                    self._levels(out_of[topic], other, with_topic=False),
                    self._levels(back_of[topic], one, with_topic=False),
                )

    def _is_home(self, outs: list[int], other: int, backs: list[int], one: int) -> bool:
        preferred = self._board.preferred
        return any(preferred[g] == other for g in outs) or any(preferred[g] == one for g in backs)

    def _of_topics(self, groups: list[int]) -> dict[int, list[int]]:
        of_topic: dict[int, list[int]] = {}
        for group in groups:
            of_topic.setdefault(self._board.topic[group], []).append(group)
        return of_topic

    def _levels(
        self, groups: list[int], target: int, *, with_topic: bool
    ) -> list[tuple[float, list[int]]]:
        """Groups by what their move is worth without traffic, best first: few such gains differ,
        and only the best are of interest."""
        worth, is_open = self._board.worth_without_traffic, self._board.is_open
        levels: dict[float, list[int]] = {}
        for group in groups:
            if is_open[group]:
                levels.setdefault(worth(group, target, with_topic=with_topic), []).append(group)
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
                of_rate = self._board.noisy_rate_bound(one, other)
                if out_worth + back_worth + of_rate > EPSILON:
                    self._match(one, other, out_groups, back_groups)

    def _match(self, one: int, other: int, outs: list[int], backs: list[int]) -> None:
        """Pair groups off so that the difference of a pair's traffic comes close to what evens the
        two brokers out."""
        board = self._board
        backs = sorted((g for g in backs if board.is_open[g]), key=self._draft.by_share)
        for group in sorted(outs, key=self._draft.by_share, reverse=True):
            if not self._draft.bounds.allow((one, one, other, other), 2):
                return
            if not board.is_open[group]:
                continue
            shares = board.tally.shares
            wanted = board.share[group] - (shares[one] - shares[other]) / 2
            at = bisect_left(backs, wanted, key=board.share.__getitem__)
            near = backs[max(0, at - _NEIGHBOURS // 2) : at + _NEIGHBOURS // 2]
            for partner in near:
                if self._draft.attempt([(group, other), (partner, one)]):
                    backs.remove(partner)
                    break
