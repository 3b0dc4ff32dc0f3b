"""What brokers tell each other about their groups.

Groups' own messages travel as they are. One heartbeat for each pair of brokers and interval says
"this process lives" for all groups together, and carries only the groups whose news the other
side has not confirmed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tidemark.partitions.raft.messages import Message
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, Offset, Position


class GroupMessage(NamedTuple):
    """From a group's replica on one broker to its replica on another."""

    key: PartitionKey
    message: Message


class GroupBeat(NamedTuple):
    """News of one group, from a broker that leads it or has led it."""

    key: PartitionKey
    epoch: Epoch
    """The epoch that the sender leads, or has led."""
    leads: bool
    """False: it leads this epoch no more, and never will again."""
    committed: Position
    log_start: Offset
    """Below it the leader has given all records up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The sender's process lives, and these are its news.

    A heartbeat carries everything that the receiver has not confirmed, so the newest one says it
    all: an older one that comes late is dropped, and a lost one costs nothing.
    """

    incarnation: int
    """Of the sender: grows with every start of its process."""
    sequence: int
    """Grows by one with each heartbeat to this receiver, and over incarnations: what confirms
    one of an earlier process is smaller than all of the next one's."""
    acknowledges: int
    """The receiver's newest heartbeat that was taken in; 0: none yet."""
    groups: tuple[GroupBeat, ...] = ()


PeerMessage: TypeAlias = GroupMessage | Heartbeat
