"""What the replicas of one group say to each other. Who says it, and of which group, is outside.

Every message carries its sender's epoch; one from an older epoch is refused or dropped, one from
a newer epoch ends the receiver's role. Messages may be lost, doubled and late, but none outlives
the process that sent it: what a replica said before it lost records must not arrive after that.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TypeAlias

from tidemark.partitions.raft.entries import Entry, EpochStart
from tidemark.protocol.types import Epoch, NodeId, Position
from tidemark.protocol.values import dataclass


class Ballot(IntEnum):
    """What a vote is asked for."""

    PRE = 0
    """Would you vote for me? Binds nobody (Raft, dissertation §9.6)."""
    REAL = 1
    MIGRATION = 2
    """A real one that the leader has asked for: voters do not mind that they hear a leader."""


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """`epoch` is the one the candidate would lead, also for a PRE ballot."""

    epoch: Epoch
    ballot: Ballot
    last: Position
    """The candidate's last entry, durable or not."""


@dataclass(frozen=True, slots=True)
class VoteResponse:
    """`epoch` is the request's if the vote is granted, else the voter's own."""

    epoch: Epoch
    ballot: Ballot
    granted: bool
    is_clean: bool = True
    """Whether the voter knows that it has lost nothing it ever acknowledged."""


@dataclass(frozen=True, slots=True)
class AppendRequest:
    """Entries that follow `prev` in the leader's log; none at all is a probe of `prev`."""

    epoch: Epoch
    prev: Position
    entries: tuple[Entry, ...]
    committed: Position
    """The leader's; the follower's is this, as far as it has verified its own log."""
    clean_at: Position | None = None
    """To a follower that is not clean: it is, once it holds this."""
    ends_doubt: int = 0
    """The life of the follower whose doubt ends with that, if it is in doubt; see `doubt.py`."""


@dataclass(frozen=True, slots=True)
class AppendResponse:
    """What became of the request that began at `prev`."""

    epoch: Epoch
    prev: Position
    match: Position | None
    """Up to here the logs are the same, and durable here; `None` if they part before `prev`.

    It is the last entry of the request, or less where the follower had a part of a run already.
    """
    conflict: Position | None = None
    """Then: the largest epoch here at or below `prev`'s, and where it ends here."""
    is_clean: bool = True
    life: int = 0
    """Of the follower: grows with each start; 0 where it is left out."""
    in_doubt: bool = False
    """Whether it may have forgotten epochs and votes, too."""


@dataclass(frozen=True, slots=True)
class ResetRequest:
    """Give up your log and begin anew at `start`: what you need of mine is gone."""

    epoch: Epoch
    start: Position
    """The leader's log start, and the epoch of the entry that ends there."""
    table: tuple[EpochStart, ...]
    """The leader's epochs up to `start`; the last one's configuration is in force there."""
    snapshot: bytes
    """Of the state machine at `start`; empty where there is none."""
    committed: Position


@dataclass(frozen=True, slots=True)
class HandOver:
    """The leader to its successor: campaign now, with a MIGRATION ballot (§3.10)."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class Opened:
    """To whoever may lead: the sender's replica is there now, or has room again, and has not taken
    in what was said to it before."""

    epoch: Epoch


@dataclass(frozen=True, slots=True)
class PullRequest:
    """An observer asks for committed entries after its last one."""

    last: Position
    committed: Position
    bytes_max: int


@dataclass(frozen=True, slots=True)
class PullResponse:
    """Committed entries that follow `prev`, the observer's `last`; or a reset, or nothing new."""

    epoch: Epoch
    prev: Position
    entries: tuple[Entry, ...]
    committed: Position
    reset: ResetRequest | None = None


@dataclass(frozen=True, slots=True)
class HardState:
    """What must be durable before a vote, or an append of a newer epoch, is answered."""

    epoch: Epoch
    voted_for: NodeId | None


Message: TypeAlias = (
    VoteRequest
    | VoteResponse
    | AppendRequest
    | AppendResponse
    | ResetRequest
    | HandOver
    | Opened
    | PullRequest
    | PullResponse
)
