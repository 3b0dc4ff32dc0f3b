"""All groups of one broker: who of the others lives, who leads what, whose turn it is to campaign.

Events come in with their time; what has come of them is taken once a turn (`take_output`). There is
no task and no timer for a group: an idle one costs nothing, and what happens in a turn costs what
changed in it. The broker drives this with its reactor, the simulator with its event queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from random import Random
from typing import Final

from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import (
    AppendRequest,
    Opened,
    PullResponse,
    ResetRequest,
)
from tidemark.partitions.raft.observer import Observer
from tidemark.partitions.raft.ports import Limits
from tidemark.partitions.raft.ready import Leadership
from tidemark.partitions.replication.campaigns import Campaigns
from tidemark.partitions.replication.checking import is_within_reach
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.heartbeats import Heartbeats
from tidemark.partitions.replication.known_leaders import KnownLeaders
from tidemark.partitions.replication.observing import Pulls
from tidemark.partitions.replication.outbox import Outbox, Output
from tidemark.partitions.replication.peer_messages import (
    GroupBeat,
    GroupMessage,
    Heartbeat,
    PeerMessage,
)
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.recent import RecentBytes
from tidemark.partitions.replication.retries import Retries, needs_watch, reset_peer
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.journal import records as journal
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, Position

_WARNINGS_MAX: Final = 100


class ReplicationNode:
    """One broker's part in all its groups. It is the `Host` of its replicas."""

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
    ) -> None:
        """`incarnation` grows with each start of the process; `rng` decides the elections' jitter;
        `now_ms` is the time of day, for what is remembered of producers."""
        self.node_id = node_id
        self.incarnation = incarnation
        self.timing = timing or Timing()
        self.limits = limits or Limits()
        self.recent = recent or RecentBytes()
        self.outbox = Outbox()
        self.dirty: dict[GroupReplica, None] = {}
        self.held = 0
        self.peers = PeerTable(node_id, failure_timeout_s=self.timing.failure_timeout_s)
        self.known = KnownLeaders()
        self._now_ms = now_ms
        self._warnings: list[str] = []
        self._replicas: dict[PartitionKey, GroupReplica] = {}
        # Where each replica's group is led, as that replica believes.
        self._led: dict[NodeId, dict[PartitionKey, GroupReplica]] = {}
        self._leader_of: dict[PartitionKey, NodeId] = {}
        self._heartbeats = Heartbeats(incarnation, self._beat_of)
        self._campaigns = Campaigns(node_id, self.timing, self.peers, rng)
        # Those that have taken nothing in from a leader since they are here.
        self._unmet: dict[GroupReplica, None] = {}
        self._paused: dict[GroupReplica, float] = {}
        # The last news of groups that were led here and left.
        self._parted: dict[PartitionKey, GroupBeat] = {}
        self._retries = Retries(self.timing, self.peers)
        self._pulls = Pulls(self.timing, self.peers, rng)
        self._now = 0.0
        self._next_heartbeat = 0.0
        self._next_heartbeat_to_dead = 0.0
        self._news_sent = 0.0
        self._is_news_due = False

    # Groups

    def add(
        self,
        replica: GroupReplica,
        *,
        priority: Priority = Priority.REST,
        preference: Sequence[NodeId] = (),
        is_eager: bool = False,
    ) -> None:
        """Take part in a group.

        `preference`: the voters in the order in which they had better lead it. `is_eager`: all
        brokers want to know at once what is committed, not the group's members alone.
        """
        assert replica.key not in self._replicas
        self._replicas[replica.key] = replica
        replica.priority, replica.preference = priority, preference
        replica.is_eager = is_eager
        self._parted.pop(replica.key, None)
        self._join(replica)

    def _join(self, replica: GroupReplica) -> None:
        known = self.known.get(replica.key)
        self._unmet[replica] = None
        if known.leads and self.peers.is_alive(known.node):
            self._hear_leader(replica, known.node, known.epoch, known.committed)
        else:
            self._tell_first(replica)
        self.dirty[replica] = None
        self._campaigns.seek(replica, self._now)

    def _tell_first(self, replica: GroupReplica) -> None:
        """Who had better lead may have asked for a vote already."""
        for node in replica.preference:
            if node == self.node_id:
                return
            if self.peers.is_alive(node):
                self._say_opened(replica, node)
                return

    def _say_opened(self, replica: GroupReplica, to: NodeId) -> None:
        self.outbox.send(to, GroupMessage(replica.key, Opened(replica.epoch)))

    def get(self, key: PartitionKey) -> GroupReplica | None:
        return self._replicas.get(key)

    @property
    def replicas(self) -> Iterable[GroupReplica]:
        return self._replicas.values()

    def remove(self, key: PartitionKey, *, is_deleted: bool) -> None:
        """Take part no more. `is_deleted`: and the journal is to forget it; its log is not
        touched again."""
        if is_deleted:
            self.known.remove(key)
            self._parted.pop(key, None)
        replica = self._replicas.pop(key, None)
        if replica is None:
            return
        if replica.led_epoch is not None and not is_deleted:
            # The others are to hear that it leads no more.
            self._parted[key] = GroupBeat(
                key, replica.led_epoch, False, replica.committed, replica.log_start
            )
            self._heartbeats.add_news(key, self.peers.nodes)
        self._paused.pop(replica, None)
        self._unmet.pop(replica, None)
        replica.close()
        self.dirty.pop(replica, None)
        self._set_leader(key, None)
        self._campaigns.remove(key)
        self._pulls.remove(key)
        if is_deleted:
            self.outbox.stage_record(journal.forget(key))

    def observe(self, key: PartitionKey, parents: Sequence[NodeId]) -> None:
        """Pull what is committed in a group that was added, and in which this broker has no vote,
        from one of these. To be called again when they change."""
        self._replicas[key].tell(Group.observe)
        self._pulls.observe(key, parents)

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        """Who leads the group, as far as this broker knows, and in which epoch."""
        known, replica = self.known.get(key), self._replicas.get(key)
        if replica is not None and replica.epoch >= known.epoch and replica.leader is not None:
            return (replica.leader if replica.failure is None else None), replica.epoch
        epoch = known.epoch if replica is None else max(known.epoch, replica.epoch)
        if known.leads and known.epoch == epoch and self.peers.is_alive(known.node):
            return known.node, epoch
        return None, epoch

    @property
    def can_checkpoint(self) -> bool:
        """False for the moment in which the journal says of some log what its files do not yet."""
        return self.held == 0

    # Events

    def receive(self, source: NodeId, message: PeerMessage, now: float) -> None:
        """Something came from another broker. Never raises for what it says.

        The bytes of batches must stay as they are for as long as they are held.
        """
        self._now = now
        if isinstance(message, Heartbeat):
            self._take_heartbeat(source, message)
            return
        if self.peers.heard(source, now):
            self._came_alive(source)
        replica = self._replicas.get(message.key)
        if replica is not None:
            replica.receive(source, message.message)
            if self._unmet and isinstance(message.message, AppendRequest | ResetRequest):
                self._unmet.pop(replica, None)
            if isinstance(message.message, PullResponse):
                is_more = bool(message.message.entries) or message.message.reset is not None
                self._pulls.answered(message.key, source, now, is_more=is_more)

    def peer_up(self, node: NodeId, incarnation: int, now: float) -> None:
        """There is a connection with that process of `node`; perhaps in place of an earlier one,
        with which messages were lost."""
        self._now = now
        if self.peers.is_outdated(node, incarnation):
            return
        was_alive = self.peers.is_alive(node)
        self._meet(node, incarnation)
        # Each has taken the other's word for who it is.
        if self.peers.confirmed(node, now, now):
            self._came_alive(node)
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
            self._next_heartbeat = 0.0
        for node in self.peers.set_nodes(nodes):
            self._heartbeats.remove(node)
        for node in self.peers.nodes:
            if node not in before:
                self._tell_all_to(node)

    def persisted(self, batch: int) -> None:
        """Everything up to that output batch is durable."""
        self.outbox.persisted(batch)

    def tick(self, now: float) -> None:
        """Time has passed. To be called when `next_deadline` is reached, at least."""
        late = now - self._next_heartbeat
        self._now = now
        if self._next_heartbeat and late > self.timing.failure_timeout_s / 2:
            # This process stood still. The others may have spoken all the while.
            self.peers.excuse(now, 2 * self.timing.heartbeat_s)
        for node in self.peers.silent(now):
            self._lost(node)
        for replica in self._campaigns.take_due(now, self._replicas):
            replica.tell(Group.campaign)
        self._pull(now)
        self._retries.tick(now)
        self._resume(now)
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + self.timing.heartbeat_s
            self._send_heartbeats(now)

    def next_deadline(self) -> float:
        """When to call `tick`; it may be in the past."""
        deadline = min(
            self.peers.next_deadline(),
            self._campaigns.next_deadline(),
            self._retries.next_deadline(),
            self._pulls.next_deadline(),
        )
        # Asked for in every turn: what is mostly not there costs nothing.
        if self.peers.has_any and self._next_heartbeat < deadline:
            deadline = self._next_heartbeat
        if self._is_news_due:
            deadline = min(deadline, self._news_sent + self.timing.news_gap_s)
        if self._paused:
            deadline = min(deadline, *self._paused.values())
        return deadline

    def take_output(self) -> Output:
        """What has come of everything since the last time. To be called once a turn."""
        while self.dirty:
            dirty, self.dirty = self.dirty, {}
            for replica in dirty:
                replica.work()
                if needs_watch(replica):
                    self._retries.watch(replica, self._now)
        if self._is_news_due and self._now >= self._news_sent + self.timing.news_gap_s:
            self._send_news()
        output = self.outbox.take()
        if self._warnings:
            output = output.with_warnings(self._warnings)
            self._warnings = []
        return output

    # What replicas tell: see `Host`

    def now_ms(self) -> int:
        return self._now_ms()

    def warn(self, what: str) -> None:
        if len(self._warnings) < _WARNINGS_MAX:
            self._warnings.append(what)

    def committed(self, replica: GroupReplica) -> None:
        if replica.is_leader:
            self._heartbeats.add_news(replica.key, self._audience(replica))
            self._is_news_due |= replica.is_eager
        else:
            replica.follow_log_start(self.known.get(replica.key).log_start)

    def paused(self, replica: GroupReplica) -> None:
        self._paused[replica] = self._now + self.timing.retry_s

    def leadership(self, replica: GroupReplica, leadership: Leadership) -> None:
        key, (epoch, leader) = replica.key, (leadership.epoch, leadership.leader)
        was_led_here = self._leader_of.get(key) == self.node_id
        self._set_leader(key, leader)
        self.outbox.leadership(key)
        if leader == self.node_id:
            self._unmet.pop(replica, None)
        if leader == self.node_id or was_led_here:
            beat = self._beat_of(key)
            if beat is not None:
                self.known.hear(self.node_id, beat)
            self._heartbeats.add_news(key, self.peers.nodes)
            self._is_news_due = True
        if leader is None:
            self._campaigns.seek(replica, self._now)
            return
        self._campaigns.remove(key)
        if leader != self.node_id and (
            not self.peers.is_alive(leader) or self.known.has_resigned(leader, key, epoch)
        ):
            # Its word has come late.
            replica.tell(Group.leader_lost)

    # Who lives

    def _take_heartbeat(self, source: NodeId, heartbeat: Heartbeat) -> None:
        if self.peers.is_outdated(source, heartbeat.incarnation):
            return
        self._meet(source, heartbeat.incarnation)
        sent = self._heartbeats.take_in(source, heartbeat)
        if sent is None:
            return
        # To be confirmed soon: a first sign of life, and news of who leads, of which there may be
        # many, and they would be sent again and again meanwhile.
        is_pressing = not self.peers.is_alive(source)
        if self.peers.confirmed(source, sent, self._now):
            self._came_alive(source)
        for beat in heartbeat.groups:
            is_pressing |= self._take_beat(source, beat)
        if is_pressing:
            self._heartbeats.hurry(source)
            self._is_news_due = True

    def _meet(self, node: NodeId, incarnation: int) -> None:
        """A process of `node` lives, perhaps another one than before."""
        is_new = self.peers.incarnation(node) != incarnation
        if self.peers.is_replaced(node, incarnation):
            self._lost(node)
            for key in self.known.forget_process(node):
                self.outbox.leadership(key)
        if self.peers.heard(node, self._now):
            self._came_alive(node)
        if is_new:
            self._heartbeats.restarted(node)
            self._tell_all_to(node)

    def _came_alive(self, node: NodeId) -> None:
        for key, known in self.known.led_by(node):
            self.outbox.leadership(key)
            replica = self._replicas.get(key)
            if replica is not None:
                self._hear_leader(replica, node, known.epoch, known.committed)
        self._begin_again_with(node)
        for key in self._campaigns.take_parked(self._now):
            self._campaigns.seek(self._replicas[key], self._now)

    def _begin_again_with(self, node: NodeId) -> None:
        """What was on its way to it, or from it, is lost."""
        for replica in self._led_with(node):
            replica.tell(partial(reset_peer, node=node))
            replica.tell(Group.check_quorum)
        self._pulls.lost(node, self._now)

    def _lost(self, node: NodeId) -> None:
        """A broker is dead, as far as this one can tell."""
        if not self.peers.down(node, self._now):
            return
        for replica in list(self._led.get(node, {}).values()):
            replica.tell(Group.leader_lost)
        for replica in self._led_with(node):
            replica.tell(Group.check_quorum)
        for key, _ in self.known.led_by(node):
            self.outbox.leadership(key)

    def _led_with(self, node: NodeId) -> list[GroupReplica]:
        """The groups led here that `node` votes in."""
        led = self._led.get(self.node_id, {})
        return [replica for replica in led.values() if node in replica.group.config.members]

    # Who leads

    def _take_beat(self, source: NodeId, beat: GroupBeat) -> bool:
        """Whether it changes who leads the group."""
        is_news = self.known.hear(source, beat)
        if is_news:
            self.outbox.leadership(beat.key)
        replica = self._replicas.get(beat.key)
        if replica is not None:
            self._apply_beat(replica, source, beat)
        return is_news

    def _apply_beat(self, replica: GroupReplica, source: NodeId, beat: GroupBeat) -> None:
        if beat.leads:
            self._hear_leader(replica, source, beat.epoch, beat.committed)
            replica.follow_log_start(beat.log_start)
            if beat.committed.offset > replica.high_watermark:
                self._pulls.hurry(beat.key)
        elif replica.leader == source and replica.epoch == beat.epoch:
            replica.tell(Group.leader_lost)

    def _hear_leader(
        self, replica: GroupReplica, leader: NodeId, epoch: Epoch, committed: Position
    ) -> None:
        is_news = epoch >= replica.epoch and is_within_reach(epoch, replica.epoch)
        if is_news and leader != self.node_id:
            replica.tell(lambda group: group.heard_leader(leader, epoch, committed))
            if replica in self._unmet:
                # What it has sent came before this replica was here.
                del self._unmet[replica]
                self._say_opened(replica, leader)

    def _set_leader(self, key: PartitionKey, leader: NodeId | None) -> None:
        before = self._leader_of.pop(key, None)
        if before is not None:
            self._led[before].pop(key, None)
        if leader is not None:
            self._leader_of[key] = leader
            self._led.setdefault(leader, {})[key] = self._replicas[key]

    def _resume(self, now: float) -> None:
        for replica, due in list(self._paused.items()):
            if due <= now:
                del self._paused[replica]
                replica.resume()
                self._join(replica)

    # What goes out

    def _audience(self, replica: GroupReplica) -> Sequence[NodeId]:
        """Who wants to know how far a group is committed."""
        if replica.is_eager:
            return self.peers.nodes
        return [node for node in replica.group.config.members if node != self.node_id]

    def _beat_of(self, key: PartitionKey) -> GroupBeat | None:
        replica = self._replicas.get(key)
        if replica is None or replica.led_epoch is None:
            return self._parted.get(key)
        leads = replica.is_leader and replica.led_epoch == replica.epoch
        return GroupBeat(key, replica.led_epoch, leads, replica.committed, replica.log_start)

    def _tell_all_to(self, node: NodeId) -> None:
        """`node` knows nothing of what this broker leads."""
        for key in self._led.get(self.node_id, {}):
            self._heartbeats.add_news(key, (node,))

    def _send_heartbeats(self, now: float) -> None:
        # A peer that is taken for dead must hear something, or two that both think so of each
        # other will never speak again; but all the news again and again would be too much.
        to_all = now >= self._next_heartbeat_to_dead
        if to_all:
            self._next_heartbeat_to_dead = now + self.timing.failure_timeout_s
        for node in self.peers.nodes:
            if to_all or self.peers.is_alive(node):
                self.outbox.send(node, self._heartbeats.make(node, now))
        self._is_news_due = False

    def _send_news(self) -> None:
        self._is_news_due = False
        self._news_sent = self._now
        for node in self.peers.nodes:
            if self._heartbeats.is_hurried(node) or (
                self.peers.is_alive(node) and self._heartbeats.has_unsent_news(node)
            ):
                self.outbox.send(node, self._heartbeats.make(node, self._now))

    def _pull(self, now: float) -> None:
        for key, parent in self._pulls.take_due(now):
            replica = self._replicas.get(key)
            if replica is None or not isinstance(replica.group.role, Observer):
                self._pulls.remove(key)
            elif replica.failure is None and not replica.is_held:
                out = replica.group.next_pull(parent)
                self.outbox.send(out.to, GroupMessage(key, out.message))
