"""What the core is given: who is alive, how to read its own log, how much may be under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from tidemark.partitions.raft.entries import Entry
from tidemark.protocol.types import NodeId, Position
from tidemark.protocol.values import dataclass

ReadEntries: TypeAlias = Callable[[Position, Position, int], tuple[Entry, ...]]
"""`read(after, up_to, bytes_max)`: what lies between two positions, both ends of entries.

In order, an `EpochStart` where an epoch begins, no `Run` across it. About so many bytes, and at
least one entry if there is one. Called while a `Ready` is made, so it must answer at once.
"""


class Peers(Protocol):
    """What is known about the other brokers."""

    def is_alive(self, node: NodeId) -> bool:
        """Whether it and this broker have heard each other within the failure timeout.

        Both ways: with links cut one way in a circle, 1 hears 3, 3 hears 2 and 2 hears 1, a leader
        would otherwise have a majority that it can never reach, and the voters a leader. One's own
        id is alive.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may be under way; the same for all groups of a broker."""

    append_bytes_max: int = 1 << 20
    window_bytes: int = 8 << 20
    """In flight to one follower."""
    early_bytes_max: int = 8 << 20
    """Requests that overtook others, kept by a follower."""
