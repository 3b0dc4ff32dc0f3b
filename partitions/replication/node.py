"""All groups of one broker: who of the others lives, who leads what, whose turn it is to campaign.

Events come in with their time; what has come of them is taken once a turn (`take_output`). There is
no task and no timer for a group: an idle one costs nothing, and what happens in a turn costs what
changed in it. The broker drives this with its reactor, the simulator with its event queue.
"""

from __future__ import annotations

from dataclasses import replace

from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import AppendRequest, PullResponse, ResetRequest, VoteRequest
from tidemark.partitions.replication.node_groups import GroupsNode
from tidemark.partitions.replication.outbox import Output
from tidemark.partitions.replication.peer_messages import (
    ConfirmAnswer,
    ConfirmRound,
    GroupMessage,
    Heartbeat,
    ObserverReport,
    PeerMessage,
    group_messages,
)
from tidemark.partitions.replication.retries import needs_watch
from tidemark.partitions.replication.steady_messages import SteadyAnswers, SteadyAppends
from tidemark.protocol.types import NodeId


class ReplicationNode(GroupsNode):
    """One broker's part in all its groups. It is the `Host` of its replicas."""

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
            if isinstance(message.message, VoteRequest):
                self._campaigns.asked(replica, source, message.message, now)
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

    def persisted(self, write: int) -> None:
        """Everything up to that write is durable."""
        self.outbox.persisted(write)

    def tick(self, now: float) -> None:
        """Time has passed. To be called when `next_deadline` is reached, at least."""
        self._now = now
        late_seconds = self._news.late_seconds(now)
        if late_seconds > 0.0:
            # What the others said in that time may not have been read yet.
            self.peers.forgive(late_seconds, now)
        if late_seconds > self.timing.failure_timeout_seconds / 2:
            self.peers.excuse(now, 2 * self.timing.calm_heartbeat_seconds)
        for node in self.peers.silent(now):
            self._lost(node)
        for replica in self._campaigns.take_due(now, self._replicas):
            replica.tell(Group.campaign)
        if self._campaigns:
            self._news.hasten()
        for replica in self.missed.take_back():
            self.observers.hurry(replica.key)
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
                if not replica.is_solo and replica not in self._retries and needs_watch(replica):
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
        if self._warnings or ended_moves or self._disk_failure:
            output = replace(
                output,
                warnings=self._warnings,
                ended_moves=ended_moves,
                disk_failure=self._disk_failure,
            )
            self._warnings = []
        return output

    def _resume(self, now: float) -> None:
        for replica, due in list(self._paused.items()):
            if due <= now:
                del self._paused[replica]
                if replica.is_held:
                    replica.release()
                else:
                    replica.resume()
                    self._join(replica)
