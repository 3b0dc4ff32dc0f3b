"""How fast each of a broker's groups may be copied, by the limits that hold for some of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from tidemark.partitions.replication.reassignment_values import NO_LIMIT
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
    keys: Collection[PartitionKey]
    learner: NodeId | None = None
    """Only what is sent to that broker; `None` is to any."""

    def covers(self, copy: Copy) -> bool:
        return self.learner in (None, copy.learner) and copy.key in self.keys


def copy_rates(
    copies: Sequence[Copy], bytes_per_second: int, throttles: Sequence[Throttle]
) -> list[float]:
    """For each copy, in bytes per second. Those that share a limit get equal parts of it.

    `bytes_per_second` is the limit on all of them, `NO_LIMIT` for none.
    """
    all_together = UNLIMITED if bytes_per_second == NO_LIMIT else bytes_per_second
    rates = [all_together / len(copies)] * len(copies) if copies else []
    for throttle in throttles:
        covered = [at for at, copy in enumerate(copies) if throttle.covers(copy)]
        for at in covered:
            rates[at] = min(rates[at], throttle.bytes_per_second / len(covered))
    return rates
