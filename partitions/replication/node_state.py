"""What a broker has of all its groups: which they are, and the parts that see to them.

What happens to them is in the modules that build on this one: `node_host` for what replicas tell,
`node_peers` for who of the others lives, `node_groups` for which groups there are, `node` for the
events of a turn and what has come of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final

from tidemark.partitions.raft.entries import without
from tidemark.partitions.raft.ports import Limits
from tidemark.partitions.replication.campaigns import Campaigns
from tidemark.partitions.replication.concerns import Concerns
from tidemark.partitions.replication.confirming import Confirmations
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.leaders import Leaders
from tidemark.partitions.replication.moves import Moves
from tidemark.partitions.replication.news import News
from tidemark.partitions.replication.observers import Observers
from tidemark.partitions.replication.out_of_room import MissedRecords
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.recent import RecentBytes
from tidemark.partitions.replication.retries import Retries
from tidemark.partitions.replication.steady_lane import SteadyLane
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId

_WARNINGS_MAX: Final = 100


class NodeState:
    """The part of a `ReplicationNode` that the others build on."""

    def __init__(
        self,
        node_id: NodeId,
        incarnation: int,
        *,
        rng: Random,
        timing: Timing | None = None,
        limits: Limits | None = None,
        recent: RecentBytes | None = None,
        now_ms: Callable[[], int] = lambda: 0,
        has_lane: bool = True,
    ) -> None:
        """`incarnation` grows with each start of the process; `rng` decides the elections' jitter;
        `now_ms` is the time of day, for what is remembered of producers; without a lane, groups
        that are in step go the long way, too."""
        self.node_id = node_id
        self.incarnation = incarnation
        self.timing = timing or Timing()
        self.limits = limits or Limits()
        self.recent = recent or RecentBytes()
        self.outbox = Outbox()
        self.missed = MissedRecords(self.outbox)
        self.dirty: dict[GroupReplica, None] = {}
        self.held = 0
        self.peers = PeerTable(node_id, failure_timeout_seconds=self.timing.failure_timeout_seconds)
        self._now_ms = now_ms
        self._warnings: list[str] = []
        self._disk_failure: OSError | None = None
        self._replicas: dict[PartitionKey, GroupReplica] = {}
        self._leaders = Leaders(node_id, self.peers, self.outbox, self._replicas)
        self.known = self._leaders.known
        self._news = News(
            incarnation,
            self.timing,
            self.peers,
            self.outbox,
            self._leaders.beat_of,
            self._audience,
        )
        self._campaigns = Campaigns(node_id, self.timing, self.peers, rng)
        self.moves = Moves(node_id)
        """Leaders that are to go to other brokers; see `move_leader`."""
        self.concerns = Concerns(self.peers, self.warn)
        """Of which somebody should hear."""
        self._paused: dict[GroupReplica, float] = {}
        self._retries = Retries(self.timing, self.peers)
        self.observers = Observers(
            node_id, self.timing, self.peers, self.known, self.outbox, self._replicas, rng
        )
        self.confirmations = Confirmations(
            node_id, incarnation, self.timing, self.outbox, self._replicas
        )
        """Who waits to hear that this broker leads; see `confirm`."""
        self._lane: SteadyLane | None = None
        if has_lane:
            self._lane = SteadyLane(self.outbox, self._replicas.get, self._leaders.met)
        self._now = 0.0

    def get(self, key: PartitionKey) -> GroupReplica | None:
        return self._replicas.get(key)

    @property
    def replicas(self) -> Iterable[GroupReplica]:
        return self._replicas.values()

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        """Who leads the group, as far as this broker knows, and in which epoch."""
        return self._leaders.leader_of(key)

    @property
    def can_checkpoint(self) -> bool:
        """False for the moment in which the journal says of some log what its files do not yet."""
        return self.held == 0

    def now_ms(self) -> int:
        return self._now_ms()

    def disk_failed(self, error: OSError) -> None:
        self._disk_failure = self._disk_failure or error

    def warn(self, what: str) -> None:
        if len(self._warnings) < _WARNINGS_MAX:
            self._warnings.append(what)

    def _audience(self, replica: GroupReplica) -> Sequence[NodeId]:
        """Who wants to know how far a group is committed."""
        others = without(self.node_id, replica.group.config.members)
        observers = self.observers.of(replica.key)
        return (*others, *without(self.node_id, tuple(observers))) if observers else others

    def _advance(self, now: float | None) -> None:
        """Where little happens, the last event may have been long ago."""
        if now is not None:
            self._now = now
