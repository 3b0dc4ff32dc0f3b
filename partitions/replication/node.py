"""All groups of one broker: who of the others lives, who leads what, whose turn it is to campaign.

Events come in with their time; what has come of them is taken once a turn (`take_output`). There is
no task and no timer for a group: an idle one costs nothing, and what happens in a turn costs what
changed in it. The broker drives this with its reactor, the simulator with its event queue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from random import Random
from typing import Final

from tidemark.partitions.raft.entries import without
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import (
    AppendRequest,
    PullResponse,
    ResetRequest,
)
from tidemark.partitions.raft.ports import Limits
from tidemark.partitions.raft.ready import Leadership
from tidemark.partitions.replication.campaigns import Campaigns
from tidemark.partitions.replication.concerns import Concerns
from tidemark.partitions.replication.confirming import Confirmations, Confirmed, Question
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.leaders import Leaders
from tidemark.partitions.replication.moves import Moves
from tidemark.partitions.replication.news import News
from tidemark.partitions.replication.observers import Freshness, Observers
from tidemark.partitions.replication.outbox import Outbox, Output
from tidemark.partitions.replication.peer_messages import (
    ConfirmAnswer,
    ConfirmRound,
    GroupBeat,
    GroupMessage,
    Heartbeat,
    ObserverReport,
    PeerMessage,
    group_messages,
)
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.recent import RecentBytes
from tidemark.partitions.replication.retries import Retries, needs_watch, reset_peer
from tidemark.partitions.replication.steady_lane import SteadyLane
from tidemark.partitions.replication.steady_messages import SteadyAnswers, SteadyAppends
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.journal import records as journal
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Epoch, NodeId

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
        self.dirty: dict[GroupReplica, None] = {}
        self.held = 0
        self.peers = PeerTable(node_id, failure_timeout_s=self.timing.failure_timeout_s)
        self._now_ms = now_ms
        self._warnings: list[str] = []
        self._replicas: dict[PartitionKey, GroupReplica] = {}
        self._leaders = Leaders(node_id, self.peers, self.outbox, self._replicas)
        self.known = self._leaders.known
        self._news = News(incarnation, self.timing, self.peers, self.outbox, self._leaders.beat_of)
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
        self._lane = SteadyLane(self.outbox, self._replicas.get) if has_lane else None
        self._now = 0.0

    def set_last_resorts(self, nodes: Iterable[NodeId]) -> None:
        """These brokers are to be elected only where no other can be."""
        self._campaigns.last_resorts = frozenset(nodes)

    # Groups

    def add(
        self,
        replica: GroupReplica,
        *,
        priority: Priority = Priority.REST,
        preference: Sequence[NodeId] = (),
        is_eager: bool = False,
        now: float | None = None,
    ) -> None:
        """Take part in a group.

        `preference`: the voters in the order in which they had better lead it. `is_eager`: all
        brokers want to know at once what is committed, not the group's members alone.
        """
        assert replica.key not in self._replicas
        self._advance(now)
        self._replicas[replica.key] = replica
        replica.priority, replica.preference = priority, preference
        replica.is_eager = is_eager
        self._join(replica)

    def _join(self, replica: GroupReplica) -> None:
        self.concerns.joined(replica, self._now)
        self._leaders.join(replica)
        self.dirty[replica] = None
        self._campaigns.seek(replica, self._now)

    def get(self, key: PartitionKey) -> GroupReplica | None:
        return self._replicas.get(key)

    @property
    def replicas(self) -> Iterable[GroupReplica]:
        return self._replicas.values()

    def remove(self, key: PartitionKey, *, is_deleted: bool, lives_on: bool = False) -> None:
        """Take part no more. `is_deleted`: and the journal is to forget it; its log is not
        touched again. `lives_on`: on other brokers the group goes on, and who leads it is known."""
        if is_deleted and not lives_on:
            self._leaders.forget(key)
        replica = self._replicas.pop(key, None)
        if replica is None:
            return
        self.moves.abort(key, "the replica was given up", self._now)
        if self._leaders.leave(replica, is_deleted=is_deleted):
            self._news.add(key, self.peers.nodes)
        self._paused.pop(replica, None)
        self.concerns.left(replica)
        if self._lane is not None:
            self._lane.remove(replica)
        replica.close()
        self.dirty.pop(replica, None)
        self._campaigns.remove(key, self._now)
        self.observers.forget(key)
        self.confirmations.give_up(key)
        if is_deleted:
            self.outbox.stage_record(journal.forget(key))

    def observe(
        self,
        key: PartitionKey,
        parents: Sequence[NodeId],
        *,
        preferred: Sequence[NodeId] = (),
        is_told: bool = False,
    ) -> None:
        """Pull what is committed in a group that was added, and in which this broker has no vote,
        from one of these. To be called again when they change.

        The `preferred` go first, in their order. `is_told`: the leader knows this broker for an
        observer (`set_observers` there), and tells it how far the group is committed.
        """
        self.observers.observe(key, parents, preferred=preferred, is_told=is_told)
        self._leaders.hear_again(self._replicas[key])

    def set_observers(self, key: PartitionKey, nodes: Sequence[NodeId]) -> None:
        """These brokers observe a group that may be led here: they are told how far it is."""
        new = [node for node in nodes if node not in self.observers.of(key)]
        self.observers.set_observers(key, nodes)
        if new:
            self._news.add(key, [node for node in new if node != self.node_id])

    def freshness(self, replica: GroupReplica) -> Freshness:
        """How far a replica here is behind what its leader has committed, as of the last event."""
        return self.observers.freshness(replica, self._now)

    def confirm(self, key: PartitionKey, done: Confirmed) -> Question:
        """Ask a majority whether this broker leads a group; see `confirming.py`."""
        return self.confirmations.ask(key, done)

    def move_leader(
        self, key: PartitionKey, target: NodeId, deadline: float, *, now: float | None = None
    ) -> None:
        """Have a group that is led here led by `target` by then; what has become of it is in a
        turn's output. Raises `RequestError` if that cannot be."""
        replica = self._replicas.get(key)
        if replica is None:
            raise RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "this broker has no replica of it")
        self._advance(now)
        self.moves.begin(replica, target, now=self._now, deadline=deadline)

    def _advance(self, now: float | None) -> None:
        """Where little happens, the last event may have been long ago."""
        if now is not None:
            self._now = now

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        """Who leads the group, as far as this broker knows, and in which epoch."""
        return self._leaders.leader_of(key)

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
        if isinstance(message, SteadyAppends | SteadyAnswers):
            self._receive_rows(source, message)
            return
        if not isinstance(message, GroupMessage):
            self._take_question(source, message)
            return
        replica = self._replicas.get(message.key)
        if replica is not None:
            replica.receive(source, message.message)
            if isinstance(message.message, AppendRequest | ResetRequest):
                self._leaders.met(replica)
            elif isinstance(message.message, PullResponse):
                self.observers.answered(source, message.key, message.message, now)

    def _take_question(
        self, source: NodeId, message: ConfirmRound | ConfirmAnswer | ObserverReport
    ) -> None:
        match message:
            case ConfirmRound():
                self.confirmations.answer(source, message)
            case ConfirmAnswer():
                self.confirmations.take(source, message)
            case ObserverReport():
                self.observers.take_report(source, message, self._now)

    def _receive_rows(self, source: NodeId, message: SteadyAppends | SteadyAnswers) -> None:
        if self._lane is None:
            for key, said in group_messages([message]):
                replica = self._replicas.get(key)
                if replica is not None:
                    replica.receive(source, said)
        elif isinstance(message, SteadyAppends):
            self._lane.take(source, message)
        else:
            self._lane.acknowledge(source, message)
            if self.moves:  # one waits for a single follower, of whose answer nothing else may come
                self.dirty.update(self.moves.replicas)

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
            self._news.begin()
        for node in self.peers.set_nodes(nodes):
            self._news.forget(node)
        for node in self.peers.nodes:
            if node not in before:
                self._tell_all_to(node)

    def persisted(self, batch: int) -> None:
        """Everything up to that output batch is durable."""
        self.outbox.persisted(batch)

    def tick(self, now: float) -> None:
        """Time has passed. To be called when `next_deadline` is reached, at least."""
        self._now = now
        if self._news.late_s(now) > self.timing.failure_timeout_s / 2:
            # This process stood still. The others may have spoken all the while.
            self.peers.excuse(now, 2 * self.timing.calm_heartbeat_s)
        for node in self.peers.silent(now):
            self._lost(node)
        for replica in self._campaigns.take_due(now, self._replicas):
            replica.tell(Group.campaign)
        if self._campaigns:
            self._news.hasten()
        self.observers.tick(now)
        self.confirmations.tick(now)
        self._retries.tick(now)
        self.moves.tick(now)
        self._resume(now)
        self.concerns.tick(now)
        self._news.tick(now)

    def next_deadline(self) -> float:
        """When to call `tick`; it may be in the past."""
        # Asked for in every turn: what is mostly not there costs nothing.
        deadline = min(
            self.peers.next_deadline(),
            self._campaigns.next_deadline(),
            self._retries.next_deadline(),
            self.observers.next_deadline(),
            self.concerns.next_deadline(),
            self._news.next_deadline(),
        )
        if self.confirmations:
            deadline = min(deadline, self.confirmations.next_deadline())
        if self.moves:
            deadline = min(deadline, self.moves.next_deadline())
        if self._paused:
            deadline = min(deadline, *self._paused.values())
        return deadline

    def take_output(self) -> Output:
        """What has come of everything since the last time. To be called once a turn."""
        lane = self._lane
        while self.dirty:
            dirty, self.dirty = self.dirty, {}
            for replica in dirty:
                if lane is None or not replica.work_steadily(lane):
                    replica.work()
                if replica not in self._retries and needs_watch(replica):
                    self._retries.watch(replica, self._now)
                if self.concerns.unclean:
                    self.concerns.worked(replica, self._now)
                if self.moves and replica.key in self.moves:
                    self.moves.changed(replica, self._now)
        if lane is not None:
            lane.close_turn()
        self.confirmations.send(self._now)
        self._news.send_pressing(self._now)
        output = self.outbox.take()
        ended_moves = self.moves.take_ended()
        if self._warnings or ended_moves:
            output = replace(output, warnings=self._warnings, ended_moves=ended_moves)
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
            audience = self._audience(replica)
            self._news.add(replica.key, audience, is_pressing=replica.is_eager)
            if self.confirmations:
                self.confirmations.look(replica)
        else:
            self.observers.committed(replica)
            replica.follow_log_start(self.known.get(replica.key).log_start)

    def paused(self, replica: GroupReplica) -> None:
        self._paused[replica] = self._now + self.timing.retry_s

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
            not self.peers.is_alive(leader) or self.known.has_resigned(leader, key, epoch)
        ):
            # Its word has come late.
            replica.tell(Group.leader_lost)

    # Who lives

    def _take_heartbeat(self, source: NodeId, heartbeat: Heartbeat) -> None:
        if self.peers.is_outdated(source, heartbeat.incarnation):
            return
        self._meet(source, heartbeat.incarnation)
        sent = self._news.take_in(source, heartbeat)
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
            self._news.confirm_soon(source)

    def _meet(self, node: NodeId, incarnation: int) -> None:
        """A process of `node` lives, perhaps another one than before."""
        is_new = self.peers.incarnation(node) != incarnation
        if self.peers.is_replaced(node, incarnation):
            self._lost(node)
            self._leaders.replaced(node)
            self.observers.forget_process(node)
        if self.peers.heard(node, self._now):
            self._came_alive(node)
        if is_new:
            self._news.restarted(node)
            self._tell_all_to(node)

    def _came_alive(self, node: NodeId) -> None:
        self._leaders.came_alive(node)
        self._begin_again_with(node)
        for key in self._campaigns.take_parked(self._now):
            self._campaigns.seek(self._replicas[key], self._now)

    def _begin_again_with(self, node: NodeId) -> None:
        """What was on its way to it, or from it, is lost."""
        for replica in self._leaders.led_with(node):
            replica.tell(partial(reset_peer, node=node))
            replica.tell(Group.check_quorum)
        self.observers.lost(node, self._now)

    def _lost(self, node: NodeId) -> None:
        """A broker is dead, as far as this one can tell."""
        if not self.peers.down(node, self._now):
            return
        self._leaders.lost(node)
        for replica in self._leaders.led_with(node):
            replica.tell(Group.check_quorum)

    def _take_beat(self, source: NodeId, beat: GroupBeat) -> bool:
        """Whether it changes who leads the group."""
        replica = self._replicas.get(beat.key)
        is_news = self._leaders.take(source, beat)
        if replica is not None and beat.leads and not replica.is_leader:
            self.observers.heard(replica, self._now)
        return is_news

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
        others = without(self.node_id, replica.group.config.members)
        observers = self.observers.of(replica.key)
        return (*others, *without(self.node_id, tuple(observers))) if observers else others

    def _tell_all_to(self, node: NodeId) -> None:
        """`node` knows nothing of what this broker leads."""
        for replica in self._leaders.led_by(self.node_id):
            self._news.add(replica.key, (node,))
