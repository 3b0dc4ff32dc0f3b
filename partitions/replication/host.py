"""What a broker is for the replicas on it: the seam between `group_replica` and `node`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from tidemark.partitions.raft.ports import Limits, Peers
from tidemark.partitions.raft.ready import Leadership
from tidemark.partitions.replication.out_of_room import MissedRecords
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.recent import RecentBytes
from tidemark.protocol.types import NodeId

if TYPE_CHECKING:
    from tidemark.partitions.replication.group_replica import GroupReplica


class Host(Protocol):
    """Shared by all replicas of a broker."""

    node_id: NodeId
    incarnation: int
    """Grows with each start of the process, from 1."""
    limits: Limits
    outbox: Outbox
    recent: RecentBytes
    missed: MissedRecords
    dirty: dict[GroupReplica, None]
    """Replicas that may have something to do before the turn ends, in that order."""
    held: int
    """How many replicas wait for the journal before they may touch their files."""

    @property
    def peers(self) -> Peers: ...

    def now_ms(self) -> int:
        """The time of day."""
        ...

    def committed(self, replica: GroupReplica) -> None:
        """More of a group is committed."""
        ...

    def told_committed(self, replica: GroupReplica, to: Sequence[NodeId]) -> None:
        """Entries are on their way to these, which say how far a group is committed."""
        ...

    def leadership(self, replica: GroupReplica, leadership: Leadership) -> None:
        """A replica has learned who leads its group, or that nobody does."""
        ...

    def paused(self, replica: GroupReplica) -> None:
        """A replica has failed, and may be resumed in a while; or it is held, and then its files
        are to be cut."""
        ...

    def disk_failed(self, error: OSError) -> None:
        """The disk has refused what does not pass: the broker is to end."""
        ...

    def warn(self, what: str) -> None:
        """Something that should not happen, for people to read."""
        ...
