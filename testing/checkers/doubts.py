"""Replicas whose disk has lost what they promised, and when they may be taken for sure again.

What a replica had voted is lost with its journal's end, and nobody can tell whom it would have
elected. So this does not wait for two leaders: it asks, of each replica that is sure again, whether
the group has gone on without it since (`raft/doubt.py` says why that is enough).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.checkers.elections import Elections
from tidemark.testing.checkers.lineage import Lineage
from tidemark.testing.checkers.violation import Violation


@dataclass(slots=True)
class _Doubt:
    existing: dict[Epoch, Offset]
    """What there was anywhere when the disk lost something: up to where, in each epoch."""
    newer_in: Epoch | None = None
    """The epoch of the first entry that is newer than that and was committed."""


class Doubts:
    """Of one group."""

    def __init__(self, group: str, elections: Elections) -> None:
        self._group = group
        self._elections = elections
        self._doubts: dict[NodeId, _Doubt] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._doubts

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._doubts)

    def __len__(self) -> int:
        return len(self._doubts)

    def loses_newest(self, node: NodeId, logs: Iterable[Lineage]) -> None:
        """The disk of this one has lost what it had last; these are all logs that there are."""
        existing: dict[Epoch, Offset] = {}
        for log in logs:
            end = log.end_offset
            for start in reversed(log.starts):
                existing[start.epoch] = max(end, existing.get(start.epoch, end))
                end = start.offset
        self._doubts[node] = _Doubt(existing)

    def forgets(self, node: NodeId) -> None:
        """It has given up all that it held: what it has promised is remembered otherwise."""
        self._doubts.pop(node, None)

    def commits(self, position: Position) -> None:
        """That is committed."""
        for doubt in self._doubts.values():
            end = doubt.existing.get(position.epoch)
            if doubt.newer_in is None and (end is None or position.offset > end):
                doubt.newer_in = position.epoch

    def becomes_sure(self, node: NodeId) -> None:
        """It takes itself for a replica that keeps its promises.

        Something that is newer than its loss has been committed by then, and its disk has a vote in
        an epoch in which that was so: it gives none to another that may have been promised it.
        """
        doubt = self._doubts.pop(node, None)
        if doubt is None:
            return
        if doubt.newer_in is None:
            what = f"{node} is sure, and nothing was committed that is newer than its loss"
            raise Violation("a doubt ends with something newer", self._group, what)
        if not self._elections.has_voted(node, doubt.newer_in):
            what = f"{node} is sure, and may vote for anybody in epoch {doubt.newer_in}"
            raise Violation("a doubt ends with a durable vote", self._group, what)
