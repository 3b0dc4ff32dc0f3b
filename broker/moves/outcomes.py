"""What became of wishes for other leaders, as the cluster's metadata tell it on every broker.

Whoever waits for an outcome waits on the broker that it asked. So the death of the broker that
leads the metadata, or the partition, costs nobody an answer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from tidemark.broker.metadata.applied import Metadata
from tidemark.partitions.state_machines.cluster_commands import EndMoves
from tidemark.partitions.state_machines.cluster_machine import Outcome
from tidemark.partitions.state_machines.cluster_values import MoveOutcome, PartitionId
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId

REMEMBERED: Final = 4096
"""More than one waits for at a time."""


class Wish(NamedTuple):
    """Which wish an outcome is of."""

    id: PartitionId
    target: NodeId
    deadline_ms: int


class MoveOutcomes:
    """The newest ones, and who waits for some."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._known: OrderedDict[Wish, MoveOutcome] = OrderedDict()

    def applied(self, outcome: Outcome) -> None:
        """For the metadata: a command was applied here."""
        command = outcome.command
        if isinstance(command, EndMoves) and not isinstance(outcome.result, RequestError):
            for each in command.outcomes:
                # Who says it second says what is passed over in the metadata too.
                self._known.setdefault(Wish(each.id, each.target, each.deadline_ms), each)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)

    async def wait(self, wish: Wish) -> MoveOutcome | None:
        """What became of a wish that is, or was, in the metadata here.

        `None`: it is gone, and nobody here has heard why; with its topic, say.
        """
        while wish not in self._known and self._is_open(wish):
            await self._metadata.wait_version(self._metadata.state.version + 1)
        return self._known.get(wish)

    def newest(self, partition: PartitionId) -> Wish | None:
        """The wish about a partition that is open, or else the one that ended last."""
        move = self._metadata.state.wishes.moves.get(partition)
        if move is not None:
            return Wish(partition, move.target, move.deadline_ms)
        return next((wish for wish in reversed(self._known) if wish.id == partition), None)

    def _is_open(self, wish: Wish) -> bool:
        move = self._metadata.state.wishes.moves.get(wish.id)
        return move is not None and (move.target, move.deadline_ms) == wish[1:]
