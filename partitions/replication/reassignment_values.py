"""What is wished of a group's replicas, and how far that is."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

NO_LIMIT: Final = 0
"""Bytes per second: as many as there are."""


class ReplicaWish(NamedTuple):
    """Who is to vote in a group, the preferred leader first; and which wish this is."""

    replicas: tuple[NodeId, ...]
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentTiming:
    """In seconds but for the last ones."""

    pause_seconds: float = 0.5
    """Writes are held for no longer than this while the voters change."""
    again_seconds: float = 1.0
    """After an attempt that came to nothing, at first; then doubled, up to `again_max_seconds`."""
    again_max_seconds: float = 8.0
    lead_seconds: float = 10.0
    """How long the leader may take that is to hand over."""
    refill_max_seconds: float = 0.1
    """A process that stood still has not saved up more allowance than for so long."""
    copies_max: int = 4
    """Groups of one leader that are worked on at a time."""
    waiting_looked_at_max: int = 100
    """Groups at a look that wait for their turn, or in whose way something stands."""
    silence_seconds: float = 5.0
    near_bytes: int = 1 << 20
    """A learner that lacks no more is let keep up with what is written, without a limit."""


class Stage(StrEnum):
    """Where a reassignment is."""

    WAIT = "waiting"
    """For its turn, or for the group's leader to be known."""
    COPY = "copying"
    LEAD = "moving the leader"
    CHANGE = "changing voters"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentState:
    """How one is doing, for people to see."""

    stage: Stage
    why: str
    """What stands in the way, if it goes no further."""
    learner: NodeId | None
    """Which broker the log is being copied to."""
    copied_bytes: int
    remaining_bytes: int
    """About so many more has the learner to be sent."""
    bytes_per_second: float
