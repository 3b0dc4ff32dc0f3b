"""What a group wants done: the one way out of the core.

Everything in a `Ready` is done in this order: reset, truncation, entries, hard state (all of them
written at once, durable later), then `send`. Once what carries `token` is durable, `send_after` may
go, and the group is told with `persisted(token)`. So "persist before you speak" is a matter of two
lists and not of care.
"""

from __future__ import annotations

from typing import NamedTuple

from tidemark.partitions.raft.entries import Entry
from tidemark.partitions.raft.messages import HardState, Message, ResetRequest
from tidemark.protocol.types import Epoch, NodeId, Position
from tidemark.protocol.values import dataclass


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


@dataclass(frozen=True, slots=True)
class Failure:
    """The leader's log parts from this one below what is committed: somebody has lost data.

    The group has stopped for good, and cuts nothing.
    """

    logs_part_at: Position
    committed: Position

    def __str__(self) -> str:
        return f"would have to cut to {self.logs_part_at}, but {self.committed} is committed"


class Ready(NamedTuple):
    """What has come of the events since the last one, or a part of it: take until there is none.

    A tuple, because one is made for every append, and a frozen dataclass takes four times as long.
    """

    token: int = 0
    """Durable once everything that was to be written up to this `Ready` is.

    Grows; 0 if nothing waits for it. A `Ready` may have a token and nothing to write: what an
    answer in `send_after` promises was written earlier and is not durable yet.
    """
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
    failure: Failure | None = None
    """If the group has stopped for good."""

    @property
    def is_cut(self) -> bool:
        """Whether a part of the log, or all of it, goes before the entries are written."""
        return self.reset is not None or self.truncate_to is not None
