"""What a broker has to do with observers: as one of them, and as the leader that they report to.

Pulling is `observing.py`; how stale replicas are, `staleness.py`; what is reported, `standings.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import PullResponse
from tidemark.partitions.raft.observer import Observer
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.known_leaders import KnownLeader, KnownLeaders
from tidemark.partitions.replication.observing import Pulls
from tidemark.partitions.replication.outbox import Outbox
from tidemark.partitions.replication.peer_messages import (
    GroupMessage,
    ObserverReport,
    ObserverStanding,
)
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.staleness import Staleness
from tidemark.partitions.replication.standings import RememberedStanding, Reports, Standings
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, Offset
from tidemark.protocol.values import dataclass

_NEVER: Final = float("inf")
_NOBODY: Final = NodeId(-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """How far a replica on this broker is behind its leader."""

    high_watermark: Offset
    lag_records: int | None
    """`None`: no leader was heard of."""
    staleness_ms: int | None
    """`None`: nor that, or it is behind since before anything was heard here."""
    parent: NodeId | None
    """Whom an observer pulls from; `None` for any other replica."""


class Observers:
    """Of all groups that this broker has a replica of."""

    def __init__(
        self,
        node_id: NodeId,
        timing: Timing,
        peers: PeerTable,
        known: KnownLeaders,
        outbox: Outbox,
        replicas: Mapping[PartitionKey, GroupReplica],
        rng: Random,
    ) -> None:
        self._node_id = node_id
        self._timing = timing
        self._peers = peers
        self._known = known
        self._outbox = outbox
        self._replicas = replicas
        self._pulls = Pulls(timing, peers, rng)
        self._staleness = Staleness(peers.spoken_at)
        self._reports = Reports()
        self._next_report = 0.0
        self._standings = Standings()
        self._observers: dict[PartitionKey, Sequence[NodeId]] = {}

    # Observing

    def observe(
        self,
        key: PartitionKey,
        parents: Sequence[NodeId],
        *,
        preferred: Sequence[NodeId] = (),
        is_told: bool = False,
    ) -> None:
        """See `ReplicationNode.observe`."""
        self._replicas[key].tell(Group.observe)
        self._pulls.observe(key, parents, preferred=preferred, is_told=is_told)

    def tick(self, now: float) -> None:
        """Pull what is due, and report."""
        for key, parent in self._pulls.take_due(now):
            replica = self._replicas.get(key)
            if replica is None or not isinstance(replica.group.role, Observer):
                self._pulls.remove(key)
            elif replica.failure is None and not replica.is_held:
                out = replica.group.next_pull(parent)
                self._outbox.send(out.to, GroupMessage(key, out.message))
        if self._pulls and now >= self._next_report:
            self._next_report = now + self._timing.report_seconds
            self._report(now)

    def next_deadline(self) -> float:
        return min(self._pulls.next_deadline(), self._next_report) if self._pulls else _NEVER

    def answered(self, source: NodeId, key: PartitionKey, answer: PullResponse, now: float) -> None:
        """A parent has answered."""
        known = self._known.get(key)
        # What it has no room for is not there the next time, either.
        has_room = not self._replicas[key].log.room.is_out
        self._pulls.answered(
            key,
            source,
            now,
            is_more=has_room and (bool(answer.entries) or answer.reset is not None),
            is_behind=has_room and known.leads and answer.committed < known.committed,
        )

    def hurry(self, key: PartitionKey) -> None:
        """Pull soon, if it is observed: there is room again for what there is."""
        self._pulls.hurry(key)

    def lost(self, node: NodeId, now: float) -> None:
        """What was said to a broker, and by it, may be lost."""
        self._pulls.lost(node, now)
        self._reports.lost(node)

    def _report(self, now: float) -> None:
        by_leader: dict[NodeId, list[ObserverStanding]] = {}
        for key in self._pulls.keys:
            replica, known = self._replicas.get(key), self._known.get(key)
            if replica is None or not known.leads or not self._peers.is_alive(known.node):
                continue
            staleness_ms, parent = self._staleness_ms(replica, now), self._pulls.parent(key)
            standing = ObserverStanding(
                key,
                replica.committed,
                -1 if staleness_ms is None else staleness_ms,
                _NOBODY if parent is None else parent,
            )
            incarnation = self._peers.incarnation(known.node)
            if self._reports.note_told(known.node, incarnation, known.epoch, standing):
                by_leader.setdefault(known.node, []).append(standing)
        for leader, standings in by_leader.items():
            self._outbox.send(leader, ObserverReport(tuple(standings)))

    # Any replica that does not lead

    def heard(self, replica: GroupReplica, before: KnownLeader, now: float) -> None:
        """A leader has said how far the group is committed; `before` is what was known."""
        key, committed = replica.key, self._known.get(replica.key).committed
        if committed > replica.committed and not replica.log.room.is_out:
            self._pulls.hurry(key)
        self._staleness.told(key, before, committed, replica.committed, now)

    def committed(self, replica: GroupReplica) -> None:
        self._staleness.reached(replica.key, replica.committed)

    def freshness(self, replica: GroupReplica, now: float) -> Freshness:
        """Of a replica here; the leader's own is always fresh."""
        if replica.is_leader:
            return Freshness(
                high_watermark=replica.high_watermark, lag_records=0, staleness_ms=0, parent=None
            )
        known = self._known.get(replica.key)
        lag = max(0, known.committed.offset - replica.high_watermark) if known.leads else None
        return Freshness(
            high_watermark=replica.high_watermark,
            lag_records=lag,
            staleness_ms=self._staleness_ms(replica, now),
            parent=self._pulls.parent(replica.key),
        )

    def _staleness_ms(self, replica: GroupReplica, now: float) -> int | None:
        known = self._known.get(replica.key)
        seconds = self._staleness.seconds(replica.key, known, replica.committed, now)
        return None if seconds is None else int(seconds * 1000)

    # Leading

    def set_observers(self, key: PartitionKey, nodes: Sequence[NodeId]) -> None:
        """These brokers observe the group. What any other has said of itself is forgotten: it gives
        its replica up."""
        self._standings.keep(key, nodes)
        if nodes:
            self._observers[key] = tuple(nodes)
        else:
            self._observers.pop(key, None)

    def of(self, key: PartitionKey) -> Sequence[NodeId]:
        """The brokers that observe the group, as the metadata say."""
        return self._observers.get(key, ())

    def take_report(self, source: NodeId, report: ObserverReport, now: float) -> None:
        for standing in report.standings:
            replica = self._replicas.get(standing.key)
            if replica is not None and replica.is_leader:
                self._standings.take(source, standing, now)

    def standings(self, key: PartitionKey) -> Mapping[NodeId, RememberedStanding]:
        """What the observers of a group that is led here have said of themselves."""
        return self._standings.of(key)

    def readers(
        self, replica: GroupReplica, at: Offset, now: float, lag_max_ms: int
    ) -> list[NodeId]:
        """Who may serve a reader at that offset in place of this leader, by number: the voters
        that hold it, and the observers that are no staler than that. All of them live.

        What observes no more may still have said something since. It would send readers back, who
        would be sent there again, some hundred times a second.
        """
        is_alive, observers = self._peers.is_alive, self.of(replica.key)
        found = [
            each.node
            for each in replica.group.progress()
            if each.is_voter and each.match.offset >= at and is_alive(each.node)
        ]
        for node, standing in self._standings.of(replica.key).items():
            if node not in observers:
                continue
            staleness_ms = standing.staleness_at(now, replica.committed)
            if staleness_ms is not None and staleness_ms <= lag_max_ms and is_alive(node):
                found.append(node)
        return sorted(found)

    def led_elsewhere(self, key: PartitionKey) -> None:
        self._standings.forget(key)

    # Ending

    def forget(self, key: PartitionKey) -> None:
        """There is no replica of that group here any more."""
        self._pulls.remove(key)
        self._staleness.forget(key)
        self._reports.forget(key)
        self._standings.forget(key)

    def forget_process(self, node: NodeId) -> None:
        """That process has ended."""
        self._standings.forget_node(node)
