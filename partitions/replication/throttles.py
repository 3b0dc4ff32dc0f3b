"""How fast each of a broker's groups may be copied, by the limits that hold for some of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

UNLIMITED: Final = float("inf")


class Copy(NamedTuple):
    """A group whose log is being sent to a learner."""

    key: PartitionKey
    learner: NodeId


class Throttle(NamedTuple):
    """What some copies may take together."""

    bytes_per_second: float
    keys: Collection[PartitionKey] | None
    """`None` is all of them."""
    learner: NodeId | None = None
    """Only what is sent to that broker; `None` is to any."""

    @property
    def name(self) -> tuple[bool, NodeId | None]:
        """The same though the rate and the keys change."""
        return self.keys is None, self.learner

    def covers(self, copy: Copy) -> bool:
        is_named = self.keys is None or copy.key in self.keys
        return is_named and self.learner in (None, copy.learner)


class CopyLimits:
    """All limits of a broker. What a copy that is nearly there is sent beside them they make good:
    those that come after it are sent so much later. Else many small logs would know no limit."""

    def __init__(self) -> None:
        self._owed: dict[tuple[bool, NodeId | None], float] = {}

    def let_through(self, copy: Copy, size_bytes: int, limits: Sequence[Throttle]) -> None:
        for limit in limits:
            if limit.covers(copy):
                self._owed[limit.name] = self._owed.get(limit.name, 0.0) + size_bytes

    def shares(
        self,
        copies: Sequence[Copy],
        limits: Sequence[Throttle],
        *,
        elapsed: float,
        elapsed_max: float,
    ) -> list[float]:
        """How many more bytes each may be sent after so many seconds, of which no more than
        `elapsed_max` are made use of. Those that share a limit get equal parts of it."""
        shares = [UNLIMITED] * len(copies)
        owed, self._owed = self._owed, {}
        for limit in limits:
            left = owed.get(limit.name, 0.0) - limit.bytes_per_second * elapsed
            self._owed[limit.name] = max(0.0, left)
            most = limit.bytes_per_second * min(elapsed, elapsed_max)
            covered = [at for at, copy in enumerate(copies) if limit.covers(copy)]
            for at in covered:
                shares[at] = min(shares[at], max(0.0, min(most, -left)) / len(covered))
        return shares
