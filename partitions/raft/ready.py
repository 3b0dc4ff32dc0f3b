"""What a group wants done: the one way out of the core.

Everything in a `Ready` is done in this order: reset, truncation, entries, hard state (all of them
written at once, durable later), then `send`. Once what carries `token` is durable, `send_after` may
go, and the group is told with `persisted(token)`. So "persist before you speak" is a matter of two
lists and not of care.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.partitions.raft.entries import Entry
from tidemark.partitions.raft.messages import HardState, Message, ResetRequest
from tidemark.protocol.types import Epoch, NodeId, Position


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to one node."""

    to: NodeId
    message: Message


@dataclass(frozen=True, slots=True)
class Leadership:
    """Who leads from now on, as far as this replica knows; `None`: nobody it could name."""

    epoch: Epoch
    leader: NodeId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What has come of the events since the last one."""

    token: int = 0
    """Grows with each `Ready` that has something to make durable; 0 for one that has nothing."""
    reset: ResetRequest | None = None
    truncate_to: Position | None = None
    entries: tuple[Entry, ...] = ()
    """To be written. What a leader appended itself is written already; the token covers it."""
    hard_state: HardState | None = None
    send: tuple[Outgoing, ...] = ()
    send_after: tuple[Outgoing, ...] = ()
    committed: Position | None = None
    """If it moved: nothing below its offset will ever change."""
    leadership: Leadership | None = None
    """If it changed."""
    is_serving: bool | None = None
    """If it changed: a leader serves clients once its own `EpochStart` is committed."""
