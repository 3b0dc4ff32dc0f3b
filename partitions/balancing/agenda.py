"""A plan that goes all the way, begun a few moves at a time.

Making a plan anew for every few moves takes longer, and makes moves that another one undoes: with
few moves allowed, what seems best is not what leads to the best end.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from typing import Final

from tidemark.partitions.balancing.eligibility import (
    Role,
    role_of,
    why_in_motion,
    why_no_leaders,
    why_not_in_sync,
)
from tidemark.partitions.balancing.leaders import LeaderMove, Plan
from tidemark.partitions.balancing.settings import Settings
from tidemark.partitions.balancing.snapshot import Group, Snapshot
from tidemark.protocol.types import NodeId

AGE_MAX_MS: Final = 30_000
"""What traffic was planned for has changed by then."""


class Agenda:
    """What is left of the last plan."""

    def __init__(self) -> None:
        self._left: deque[LeaderMove] = deque()
        self._settings = Settings()
        self._made_ms = 0
        self._roles: dict[NodeId, Role] = {}
        self._begun: set[int] = set()
        """Steps that have begun in part, being too large."""

    def __bool__(self) -> bool:
        return bool(self._left)

    def clear(self) -> None:
        self._left.clear()

    def fill(self, made: Plan, snapshot: Snapshot, settings: Settings) -> None:
        """`settings` are those that the plan was made with, but for the bounds, which are these."""
        self._left = deque(made.moves)
        self._begun.clear()
        self._settings = settings
        self._made_ms = snapshot.now_ms
        self._roles = _roles(snapshot, settings)

    def is_outdated(self, snapshot: Snapshot) -> bool:
        """Whether the brokers are others, or take other parts, or it is too long ago."""
        return snapshot.now_ms - self._made_ms > AGE_MAX_MS or self.has_other_roles(snapshot)

    def has_other_roles(self, snapshot: Snapshot) -> bool:
        """Whether a broker has come, gone, or takes another part than when the plan was made."""
        return _roles(snapshot, self._settings) != self._roles

    def take(self, snapshot: Snapshot) -> list[LeaderMove]:
        """The moves that may begin now, in order. Those that do not fit any more are dropped, and
        with them those that were worth it only together with them."""
        if not self._left:
            return []
        room = _Room(snapshot, self._settings)
        if room.is_full:
            return []
        groups = {group.partition: group for group in snapshot.groups}
        taken: list[LeaderMove] = []
        left: deque[LeaderMove] = deque()
        while self._left and not room.is_full:
            step = self._next_step()
            fitting = [
                move
                for move in step
                if (group := groups.get(move.partition)) is not None
                and _fits(move, group, snapshot, self._settings)
            ]
            if len(fitting) < len(step) and step[0].step not in self._begun:
                # What is left of it may be worth nothing, but who is to lead nothing does not wait.
                fitting = [move for move in fitting if move.cause.empties]
            begun, waiting = self._take_of_step(fitting, room)
            taken += begun
            left += waiting
        # Whether the others still fit is seen when it is their turn: there may be thousands.
        self._left = left + self._left
        return taken

    def _next_step(self) -> list[LeaderMove]:
        """What is left of it."""
        step = [self._left.popleft()]
        while self._left and self._left[0].step == step[0].step:
            step.append(self._left.popleft())
        return step

    def _take_of_step(
        self, moves: list[LeaderMove], room: _Room
    ) -> tuple[list[LeaderMove], list[LeaderMove]]:
        """Which may begin, and which have to wait: all of them together, unless they are too many
        to be on the way at a time."""
        if room.take(moves):
            return moves, []
        if not room.is_too_small(moves) and moves[0].step not in self._begun:
            return [], moves
        begun = [move for move in moves if not room.is_full and room.take([move])]
        if begun:
            self._begun.add(moves[0].step)
        return begun, [move for move in moves if move not in begun]


class _Room:
    """How many more moves may be on the way, in all and for each broker."""

    def __init__(self, snapshot: Snapshot, settings: Settings) -> None:
        self._left = self._most = settings.moves_in_flight_max
        self._most_of_broker = each = settings.broker_moves_in_flight_max
        self._of_broker = {broker.node_id: each for broker in snapshot.brokers}
        for group in snapshot.groups:
            if group.moving_to is not None:
                self._use(group.leader, group.moving_to)

    @property
    def is_full(self) -> bool:
        return self._left < 1

    def take(self, moves: Sequence[LeaderMove]) -> bool:
        """All of them, if there is room for all."""
        touched = _touched(moves)
        if len(moves) > self._left or any(
            self._of_broker.get(node, 0) < times for node, times in touched.items()
        ):
            return False
        for move in moves:
            self._use(move.source, move.target)
        return True

    def is_too_small(self, moves: Sequence[LeaderMove]) -> bool:
        """Whether there would not be room for all, were nothing on the way."""
        touched = _touched(moves)
        return len(moves) > self._most or max(touched.values()) > self._most_of_broker

    def _use(self, *nodes: NodeId | None) -> None:
        self._left -= 1
        for node in nodes:
            if node is not None and node in self._of_broker:
                self._of_broker[node] -= 1


def _touched(moves: Sequence[LeaderMove]) -> Counter[NodeId]:
    return Counter(node for move in moves for node in (move.source, move.target))


def _fits(move: LeaderMove, group: Group, snapshot: Snapshot, settings: Settings) -> bool:
    """Whether it would still be planned, and can be begun."""
    target = next((each for each in snapshot.brokers if each.node_id == move.target), None)
    return (
        group.leader == move.source
        and target is not None
        and why_no_leaders(target, snapshot.now_ms, settings) is None
        and why_in_motion(group) is None
        and why_not_in_sync(group, move.target, settings) is None
    )


def _roles(snapshot: Snapshot, settings: Settings) -> dict[NodeId, Role]:
    return {
        broker.node_id: role_of(broker, snapshot.now_ms, settings) for broker in snapshot.brokers
    }
