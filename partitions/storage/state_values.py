"""The values that `state.db` holds, and the name of a partition in it."""

from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.protocol.types import NO_EPOCH, Epoch, Offset, Position
from tidemark.protocol.values import dataclass

_ZERO: Final = Offset(0)
NO_VOTE: Final = HardState(NO_EPOCH, None)
"""Of a replica that has heard of no epoch yet."""


class PartitionKey(NamedTuple):
    """A partition by its topic's id, which no later topic of the same name shares."""

    topic_id: UUID
    partition: int


class Condition(IntEnum):
    """Whether a replica holds all that it has promised to hold. One that does not neither votes
    nor counts until it holds what its leader had committed."""

    CLEAN = 0
    UNCLEAN = 1
    """The end of its log may be gone: it was in the page cache only when the power failed, or when
    a sync did."""
    DAMAGED = 2
    """Something that was on the disk is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """All that is recorded of one partition."""

    key: PartitionKey
    name: str
    """Of its directory; empty if an older release has recorded it."""
    log_start: Offset = _ZERO
    recovery_point: Offset = _ZERO
    hard_state: HardState = NO_VOTE
    epochs: tuple[EpochStart, ...] = ()
    """Ascending."""
    condition: Condition = Condition.CLEAN
    is_journaled: bool = True
    """Whether its batches are in the journal (`flush=commit`), and not in the page cache alone."""

    @property
    def newest_epoch(self) -> Epoch:
        """The newest that it has heard of."""
        row = self.epochs[-1].epoch if self.epochs else NO_EPOCH
        return max(self.hard_state.epoch, row)


class GroupSnapshot(NamedTuple):
    """A state machine's state after all entries of its log up to a position."""

    position: Position
    data: bytes


class BrokerRun(NamedTuple):
    """What is known at the beginning of one run of a broker."""

    directory_id: UUID
    incarnation: int
    """Counts the runs of this data directory, from 1."""
    is_cache_lost: bool
    """Whether what was not synced may be gone: another boot, and no clean stop before it, or a sync
    that failed."""
