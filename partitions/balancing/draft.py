"""A plan while it is being made: the steps taken so far, and what they leave to be moved."""

from random import Random

from tidemark.partitions.balancing.board import Board
from tidemark.partitions.balancing.bounds import Bounds
from tidemark.partitions.balancing.steps import Shift, Step
from tidemark.partitions.balancing.tally import EPSILON


class Draft:
    """Takes steps. The board and the bounds are always as `steps` leave them."""

    def __init__(self, board: Board, bounds: Bounds, rng: Random) -> None:
        self.board = board
        self.bounds = bounds
        self.steps: list[Step] = []
        # Between equals the lot decides, drawn once: by number alone, the same partitions would
        # pay for every unevenness.
        self.lots = [rng.random() for _ in board.groups]
        self.broker_lots = [rng.random() for _ in board.brokers]
        self.changes = [0] * len(board.brokers)
        """How often each broker was touched."""

    def by_share(self, group: int) -> tuple[float, float]:
        """What sorts groups by their traffic."""
        return (self.board.share[group], self.lots[group])

    def attempt(self, moves: list[tuple[int, int]]) -> bool:
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
        self.take(moves)
        return True

    def take(self, moves: list[tuple[int, int]]) -> None:
        """Make these moves a step, whatever they bring."""
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
            self.changes[source] += 1
            self.changes[target] += 1
        self.steps.append(Step(shifts=tuple(shifts), gain=gain))
