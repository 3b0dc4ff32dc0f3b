"""How many leaders may be on the move at a time, in all and from and to each broker."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.partitions.balancing.board import Board


class Bounds:
    """How many more moves may be begun, in all and for each broker."""

    def __init__(self, board: Board) -> None:
        settings = board.settings
        self.left = settings.moves_in_flight_max
        self.of_broker = [settings.broker_moves_in_flight_max] * len(board.brokers)
        index = {broker.node_id: number for number, broker in enumerate(board.brokers)}
        for group in board.groups:
            if group.moving_to is not None:
                self.left -= 1
                for node in (group.leader, group.moving_to):
                    if node is not None and node in index:
                        self.of_broker[index[node]] -= 1

    def allow(self, touched: Sequence[int], moves: int) -> bool:
        """Whether that many moves may begin; each broker is in `touched` once for each move."""
        return moves <= self.left and all(
            self.of_broker[broker] >= touched.count(broker) for broker in touched
        )

    def take(self, touched: Sequence[int], moves: int) -> None:
        self.left -= moves
        for broker in touched:
            self.of_broker[broker] -= 1
