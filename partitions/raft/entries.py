"""What a group's log is made of: starts of epochs, and runs of record batches.

An `EpochStart` is Raft's no-op and its configuration entry in one. It takes no offset, so
consumers see no holes; each leader epoch has exactly one, as its first entry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sized
from dataclasses import field
from functools import lru_cache
from typing import Final, TypeAlias

from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.protocol.values import dataclass

UNVERSIONED: Final = -1


@dataclass(frozen=True, slots=True)
class Configuration:
    """Who votes in a group. It is joint while `outgoing` has voters: then both sides must agree.

    Both are ascending. A node may be in both.
    """

    voters: tuple[NodeId, ...]
    outgoing: tuple[NodeId, ...] = ()
    version: int = UNVERSIONED
    """At which version of the cluster's metadata these voters were wished. No later configuration
    has an earlier one: a leader that has yet to hear of a wish does not undo it."""

    @property
    def is_joint(self) -> bool:
        return bool(self.outgoing)

    @property
    def members(self) -> tuple[NodeId, ...]:
        """All who vote, on either side, ascending."""
        return tuple(sorted({*self.voters, *self.outgoing})) if self.outgoing else self.voters

    def agreed(self, says_yes: Callable[[NodeId], bool]) -> bool:
        """Whether a majority of each side says yes."""
        return _is_majority(self.voters, says_yes) and (
            not self.outgoing or _is_majority(self.outgoing, says_yes)
        )


@lru_cache(maxsize=1024)
def without(node: NodeId, nodes: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The others. Kept, for it is asked with every commit, and nearly always the same."""
    return tuple(each for each in nodes if each != node)


@lru_cache(maxsize=1024)
def configuration(
    voters: tuple[NodeId, ...], outgoing: tuple[NodeId, ...] = (), version: int = UNVERSIONED
) -> Configuration:
    """One for all groups that have the same voters: each of thousands keeps its own."""
    return Configuration(voters, outgoing, version)


@dataclass(frozen=True, slots=True)
class EpochStart:
    """The first entry of a leader epoch, and the configuration in force from there on."""

    epoch: Epoch
    start_offset: Offset
    leader: NodeId
    config: Configuration
    position: Position = field(init=False, repr=False, compare=False)
    """Kept, and shared by all that is at the same place in an idle group."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", Position(self.epoch, self.start_offset))


@lru_cache(maxsize=1024)
def epoch_start(
    epoch: Epoch, start_offset: Offset, leader: NodeId, config: Configuration
) -> EpochStart:
    """One for all groups in which an epoch began alike: of thousands of idle ones, nearly all."""
    return EpochStart(epoch, start_offset, leader, config)


@dataclass(frozen=True, slots=True)
class Run:
    """Whole record batches of one epoch, back to back, each with its offsets and epoch in place.

    `records` is never looked into here. It may be bytes, or a slice of a log file that stays
    readable until it is released.
    """

    epoch: Epoch
    base_offset: Offset
    end_offset: Offset
    records: Sized

    @property
    def position(self) -> Position:
        return Position(self.epoch, self.end_offset)


Entry: TypeAlias = EpochStart | Run


def _is_majority(side: Collection[NodeId], says_yes: Callable[[NodeId], bool]) -> bool:
    return sum(map(says_yes, side)) > len(side) // 2
