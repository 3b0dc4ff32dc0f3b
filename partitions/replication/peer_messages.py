"""What brokers tell each other about their groups.

Groups' own messages travel as they are. One heartbeat for each pair of brokers and interval says
"this process lives" for all groups together, and carries only the groups whose news the other
side has not confirmed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from tidemark.partitions.raft.messages import Message
from tidemark.partitions.replication.steady_messages import (
    SteadyAnswers,
    SteadyAppends,
    partition_key,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.protocol.values import dataclass


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
    metadata_version: int = -1
    """Up to which version the sender has applied the cluster's metadata."""
    groups: tuple[GroupBeat, ...] = ()


class GroupEpoch(NamedTuple):
    """A group, and an epoch of it."""

    key: PartitionKey
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class ConfirmRound:
    """The sender leads these groups in these epochs: is there anybody in a later one?"""

    number: int
    """Grows with each round of the sender, and over its incarnations."""
    groups: tuple[GroupEpoch, ...]


@dataclass(frozen=True, slots=True)
class ConfirmAnswer:
    """The epochs that the sender's replicas of these groups were in when that round came."""

    number: int
    """The newest round that is answered."""
    groups: tuple[GroupEpoch, ...]


class ObserverStanding(NamedTuple):
    """How far an observer of a group has come, as it says itself."""

    key: PartitionKey
    committed: Position
    staleness_ms: int
    """For how long it may have lacked what the leader had committed; -1: it does not know."""
    parent: NodeId
    """Whom it pulls from; -1: from nobody now."""


@dataclass(frozen=True, slots=True)
class ObserverReport:
    """To a broker that leads groups, from one that observes them."""

    standings: tuple[ObserverStanding, ...]


PeerMessage: TypeAlias = (
    GroupMessage
    | Heartbeat
    | SteadyAppends
    | SteadyAnswers
    | ConfirmRound
    | ConfirmAnswer
    | ObserverReport
)


def group_messages(messages: Iterable[PeerMessage]) -> Iterator[GroupMessage]:
    """What groups say, also where one message has a row for each of many."""
    for message in messages:
        if isinstance(message, GroupMessage):
            yield message
        elif isinstance(message, SteadyAppends | SteadyAnswers):
            for key, said in message.messages():
                yield GroupMessage(partition_key(key), said)
