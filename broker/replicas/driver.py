"""This broker's replication groups, driven: what happened goes in, what follows comes out.

```text
a turn:    requests, messages of peers, "durable up to write n", the clock
its end:   take_output, once for all groups that the turn touched
             messages to peers       at once
             changes                 to the replicas: who waited is answered
             journal records         to the disk writer, as one write, once all that has left
             the timer               last: nobody waits for it
```

The groups themselves keep back what may be said only once it is durable. So nothing here is careful
about order, but for one thing: writes reach the journal in the order of their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol

import trio

from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.timers import Timer, Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.checkpoints import Checkpoints, Savable
from tidemark.broker.replicas.disk import DiskWriter
from tidemark.partitions.replication.confirming import Confirmed, Question
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.replication.ended_move import EndedMove
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.observers import Freshness
from tidemark.partitions.replication.outbox import GroupChange, Output
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, NodeId, Offset

Send = Callable[[Mapping[NodeId, Sequence[PeerMessage]]], None]
"""Sends messages to brokers, or drops them where there is no way. Must not block, nor raise."""


_EARLY_SECONDS: Final = 0.05
"""A timer that goes off so much too early may do so: to move it at every turn would cost more."""


class Watcher(Savable, Protocol):
    """A replica: it is told what became of its group. Must not raise."""

    def changed(self, change: GroupChange) -> None: ...
    def look_at_held(self) -> None:
        """Something has happened; perhaps more voters hold what a producer waits for."""
        ...


def send_to_nobody(sends: Mapping[NodeId, Sequence[PeerMessage]]) -> None:
    """A broker that is its cluster has no peers."""


def _tell_nobody(ended: Sequence[EndedMove]) -> None:
    """Nobody has asked for moves yet."""


class ReplicationDriver:
    """Feeds the node of this broker and carries out what it says. Used on the loop's thread."""

    def __init__(
        self,
        node: ReplicationNode,
        *,
        turn: Turn,
        timers: Timers,
        disk: DiskWriter,
        checkpoints: Checkpoints,
        odd_events: OddEvents,
    ) -> None:
        self.node = node
        self.send: Send = send_to_nobody
        """Where messages go; set once there is a network."""
        self.on_ended_moves: Callable[[Sequence[EndedMove]], None] = _tell_nobody
        """Told, within a turn, what has become of leaders that were to go from here."""
        self._turn = turn
        self._timers = timers
        self._timer: Timer | None = None
        self._disk = disk
        self._checkpoints = checkpoints
        self._odd_events = odd_events
        self._watchers: dict[PartitionKey, Watcher] = {}
        self._curious: dict[Watcher, None] = {}
        self._is_due = False
        self._has_stopped = False
        self._sets_timer = False
        """At the end of this turn."""
        # What is for the disk, until what is to be sent has left.
        self._unwritten: list[Output] = []
        self._changed: trio.Event | None = None
        """Set, and taken away, when something has become of a group. Made by whoever waits."""

    # Groups

    def add(
        self,
        replica: GroupReplica,
        watcher: Watcher,
        *,
        priority: Priority,
        preference: Sequence[NodeId],
        is_eager: bool = False,
    ) -> None:
        """Take part in a group from now on. `is_eager`: all brokers are to know what is committed,
        and at once."""
        self._watchers[replica.key] = watcher
        self.node.add(
            replica,
            priority=priority,
            preference=preference,
            is_eager=is_eager,
            now=self._timers.now(),
        )
        self.touch()

    def remove(self, key: PartitionKey, *, is_deleted: bool, lives_on: bool = False) -> None:
        """Take no part in a group any more: its files are going away. `lives_on`: but the group
        is not. One that is no more is also forgotten where it had no replica."""
        is_here = self._watchers.pop(key, None) is not None
        if is_here or (is_deleted and not lives_on):
            self.node.remove(key, is_deleted=is_deleted, lives_on=lives_on)
        if is_here:
            self.touch()

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        """Who leads a group, as far as this broker knows; also one it has no part in."""
        return self.node.leader_of(key)

    def freshness(self, replica: GroupReplica) -> Freshness:
        """How far a replica here is behind its leader. May be called on any thread: a scrape's."""
        return self.node.freshness(replica)

    def readers(self, replica: GroupReplica, at: Offset, lag_max_ms: int) -> list[NodeId]:
        """Who may serve a reader at that offset in place of this broker, which leads."""
        return self.node.observers.readers(replica, at, self._timers.now(), lag_max_ms)

    def confirm(self, key: PartitionKey, done: Confirmed) -> Question:
        """Have `done` called once it is certain that this broker leads a group, or does not."""
        question = self.node.confirm(key, done)
        self.touch()
        return question

    def alive(self, nodes: Iterable[NodeId]) -> int:
        """How many of these brokers can be heard from; this one can."""
        return sum(map(self.node.peers.is_alive, nodes))

    def silent_seconds(self, node: NodeId) -> float:
        """For how long nothing has come of a broker; infinite if nothing ever has."""
        heard = self.node.peers.heard_at(node)
        return math.inf if heard is None else self._timers.now() - heard

    def has_syncs(self) -> bool:
        """Whether this turn has brought so much that the files of a log are to be synced for it."""
        return self.node.outbox.has_syncs

    def watch_held(self, watcher: Watcher) -> None:
        """Have a watcher look at what the voters hold, after every turn, until it has enough."""
        self._curious[watcher] = None

    def stop_watching(self, watcher: Watcher) -> None:
        self._curious.pop(watcher, None)

    # Events

    def receive(self, source: NodeId, messages: Sequence[PeerMessage]) -> None:
        now = self._timers.now()
        for message in messages:
            self.node.receive(source, message, now)
        self.touch()

    def peer_up(self, node: NodeId, incarnation: int) -> None:
        self.node.peer_up(node, incarnation, self._timers.now())
        self.touch()

    def peer_down(self, node: NodeId) -> None:
        self.node.peer_down(node, self._timers.now())
        self.touch()

    def touch(self) -> None:
        """Something was done to a group: take what comes of it at the end of this turn."""
        if not self._is_due and not self._has_stopped:
            self._is_due = True
            self._turn.after(self._take)

    def stop(self) -> None:
        """The broker is ending: say and write nothing any more."""
        self._has_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def wait_durable(self) -> None:
        """Until all that the groups have asked to be written is durable, or the disk has failed.

        To be called outside of turns.
        """
        await self._disk.wait_durable(self._disk.newest)

    async def wait_changed(self) -> None:
        """Until a group has another leader, or more is committed; also one without a replica here.

        To be called outside of turns.
        """
        if self._changed is None:
            self._changed = trio.Event()
        await self._changed.wait()

    # Output

    def _take(self) -> None:
        self._is_due = False
        if self._has_stopped:
            return
        output = self.node.take_output()
        if output.disk_failure is not None:
            self._disk.fail(output.disk_failure)
        if output.sends:
            self.send(output.sends)
        for change in output.changes:
            watcher = self._watchers.get(change.key)
            if watcher is not None:
                watcher.changed(change)
        for watcher in list(self._curious):
            watcher.look_at_held()
        if output.changes and self._changed is not None:
            self._changed.set()
            self._changed = None
        if output.ended_moves:
            self.on_ended_moves(output.ended_moves)
        for warning in output.warnings:
            self._odd_events.warn("replication", "%s", warning)
        if output.write:
            self._unwritten.append(output)
            # Behind what sends, which has asked for the end of the turn before: the loop may sync
            # by itself, and the writer thread takes the interpreter from the system calls. So the
            # followers would wait for this broker's own disk.
            self._turn.after(self._write_all)
        if not self._sets_timer:
            self._sets_timer = True
            self._turn.last(self._set_timer)

    def _write_all(self) -> None:
        outputs, self._unwritten = self._unwritten, []
        for output in outputs:
            self._write(output)

    def _write(self, output: Output) -> None:
        self._disk.write(
            output.write,
            output.records,
            self._persisted,
            syncs=output.syncs,
            is_told=bool(output.sends),
        )
        for record in output.records:
            watcher = self._watchers.get(record.key)
            if watcher is not None:
                self._checkpoints.note(watcher, len(record.payload))
        if output.removals:
            self._checkpoints.remove_later(output.write, output.removals)

    def _persisted(self, write: int) -> None:
        self.node.persisted(write)
        self._checkpoints.look()
        self.touch()

    def _set_timer(self) -> None:
        self._sets_timer = False
        if self._has_stopped:
            return
        deadline = self.node.next_deadline()
        timer = self._timer
        if timer is not None and timer.callback is not None:
            # One that is a little early does no harm: nothing is due, and it is set anew.
            early_seconds = deadline - timer.deadline_seconds
            if early_seconds < 0 or _EARLY_SECONDS <= early_seconds < float("inf"):
                self._timer = self._timers.move(timer, deadline)
            return
        self._timer = self._timers.at(deadline, self._tick) if deadline < float("inf") else None

    def _tick(self) -> None:
        self.node.tick(self._timers.now())
        self.touch()
