"""What replicas tell the broker that they are on: see `Host`."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.ready import Leadership
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node_state import NodeState
from tidemark.protocol.types import NodeId


class HostingNode(NodeState):
    """The part of a `ReplicationNode` that is the `Host` of its replicas."""

    def committed(self, replica: GroupReplica) -> None:
        if replica.is_leader:
            if replica.is_eager:
                self._news.add(replica.key, self.peers.nodes, is_pressing=True)
            else:
                self._news.committed(replica)
            if self.confirmations:
                self.confirmations.look(replica)
        else:
            self.observers.committed(replica)
            replica.follow_log_start(self.known.get(replica.key).log_start)

    def told_committed(self, replica: GroupReplica, to: Sequence[NodeId]) -> None:
        self._news.told(replica, to)

    def paused(self, replica: GroupReplica) -> None:
        self._paused[replica] = self._now + self.timing.retry_seconds

    def leadership(self, replica: GroupReplica, leadership: Leadership) -> None:
        key, (epoch, leader) = replica.key, (leadership.epoch, leadership.leader)
        self.outbox.leadership(key)
        if self.confirmations:
            self.confirmations.look(replica)
        if leader != self.node_id:
            self.observers.led_elsewhere(key)
        if self._leaders.changed(replica, leader):
            self._news.add(key, self.peers.nodes, is_pressing=True)
        self.concerns.led(replica, has_leader=leader is not None, now=self._now)
        if leader is None:
            self._campaigns.seek(replica, self._now)
            return
        self._campaigns.remove(key, self._now)
        if leader != self.node_id and (
            not self.peers.is_alive(leader) or self.known.leads_no_more(leader, key, epoch)
        ):
            # Its word has come late.
            replica.tell(Group.leader_lost)
