"""Who of the other brokers lives, as far as this one can tell, and what follows for the groups."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.node_host import HostingNode
from tidemark.partitions.replication.peer_messages import GroupBeat, Heartbeat
from tidemark.partitions.replication.retries import needs_watch, reset_peer, restart_peer
from tidemark.protocol.types import NodeId


class MeetingNode(HostingNode):
    """The part of a `ReplicationNode` that meets other brokers, hears them and loses them."""

    def peer_up(self, node: NodeId, incarnation: int, now: float) -> None:
        """There is a connection with that process of `node`; perhaps in place of an earlier one,
        with which messages were lost."""
        self._now = now
        if self.peers.is_outdated(node, incarnation):
            return
        was_alive = self.peers.is_alive(node)
        is_new = incarnation != self.peers.incarnation(node)
        self._meet(node, incarnation)
        # Each has taken the other's word for who it is.
        if self.peers.confirmed(node, now, now):
            self._came_alive(node, has_said_nothing=is_new)
        elif was_alive:
            self._begin_again_with(node)

    def peer_down(self, node: NodeId, now: float) -> None:
        """Its connection has ended: its process has, or cannot be reached."""
        self._now = now
        self._lost(node)

    def set_peers(self, nodes: Iterable[NodeId]) -> None:
        """These are the brokers of the cluster."""
        nodes = list(nodes)
        for node in self.peers.nodes:
            if node not in nodes:
                self._lost(node)
        before = set(self.peers.nodes)
        if not before:
            self._news.begin()
        for node in self.peers.set_nodes(nodes):
            self._news.forget(node)
            self._forget_process(node)
        for node in self.peers.nodes:
            if node not in before:
                self._tell_all_to(node)

    def _take_heartbeat(self, source: NodeId, heartbeat: Heartbeat) -> None:
        if self.peers.is_outdated(source, heartbeat.incarnation):
            return
        self._meet(source, heartbeat.incarnation)
        sent = self._news.take_in(source, heartbeat, self._now)
        if sent is None:
            return
        self.peers.applied(source, heartbeat.metadata_version)
        # To be confirmed soon: a first sign of life, and news of who leads, of which there may be
        # many, and they would be sent again and again meanwhile.
        is_pressing = not self.peers.is_alive(source)
        if self.peers.confirmed(source, sent, self._now):
            self._came_alive(source)
        for beat in heartbeat.groups:
            is_pressing |= self._take_beat(source, beat)
        self.peers.spoke(source, self._now)
        if is_pressing:
            self._news.confirm_soon(source)

    def _take_beat(self, source: NodeId, beat: GroupBeat) -> bool:
        """Whether it changes who leads the group."""
        replica = self._replicas.get(beat.key)
        before = self._leaders.known.get(beat.key)
        is_news = self._leaders.take(source, beat)
        if replica is not None and beat.leads and not replica.is_leader:
            self.observers.heard(replica, before, self._now)
        return is_news

    def _meet(self, node: NodeId, incarnation: int) -> None:
        """A process of `node` lives, perhaps another one than before."""
        is_new = self.peers.incarnation(node) != incarnation
        if self.peers.note_incarnation(node, incarnation):
            self._lost(node)
            self._forget_process(node)
        if self.peers.heard(node, self._now):
            self._came_alive(node)
        if is_new:
            self._news.restarted(node)
            self._tell_all_to(node)

    def _forget_process(self, node: NodeId) -> None:
        """That one leads nothing more, and what it held may be gone."""
        self._leaders.replaced(node)
        self.observers.forget_process(node)

    def _came_alive(self, node: NodeId, *, has_said_nothing: bool = False) -> None:
        self._leaders.came_alive(node)
        self._begin_again_with(node, has_said_nothing=has_said_nothing)
        for key in self._campaigns.take_parked(self._now):
            self._campaigns.seek(self._replicas[key], self._now)

    def _begin_again_with(self, node: NodeId, *, has_said_nothing: bool = False) -> None:
        """What was on its way to it, or from it, is lost.

        Of a process that `has_said_nothing` yet, all replicas are still to say that they are open,
        and what is sent to one before is lost: thousands take their time.
        """
        begin_again = partial(restart_peer if has_said_nothing else reset_peer, node=node)
        for replica in self._leaders.led_with(node):
            replica.tell(begin_again)
            replica.tell(Group.check_quorum)
            if has_said_nothing and not replica.group.has_ready and needs_watch(replica):
                self._retries.watch_later(replica, self._now)
        self.observers.lost(node, self._now)

    def _lost(self, node: NodeId) -> None:
        """A broker is dead, as far as this one can tell."""
        if not self.peers.down(node, self._now):
            return
        self._leaders.lost(node)
        for replica in self._leaders.led_with(node):
            replica.tell(Group.check_quorum)

    def _tell_all_to(self, node: NodeId) -> None:
        """`node` knows nothing of what this broker leads."""
        for replica in self._leaders.led_by(self.node_id):
            self._news.add(replica.key, (node,))
