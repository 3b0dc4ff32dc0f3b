"""One life of a broker: from its start to the moment when it is killed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, Final, TypeVarTuple, Unpack

from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    VoteResponse,
)
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.moves import Phase
from tidemark.partitions.replication.outbox import NOTHING, Output
from tidemark.partitions.replication.peer_messages import (
    Heartbeat,
    PeerMessage,
    group_messages,
)
from tidemark.partitions.storage.journal.records import JournalRecord, RecordKind
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.testing.checkers import serving
from tidemark.testing.simulator.checkpoints import Checkpoint
from tidemark.testing.simulator.compacting import SlowCompactions
from tidemark.testing.simulator.compactions import compact
from tidemark.testing.simulator.desk import Desk
from tidemark.testing.simulator.hosting import Hosting
from tidemark.testing.simulator.opening import Opened, open_broker
from tidemark.testing.simulator.phases import PHASE_OF_A_MOVE
from tidemark.testing.simulator.rpc import Answer, Ask, Request
from tidemark.testing.simulator.transactions.calls import Call
from tidemark.testing.simulator.transactions.desk import TransactionDesk
from tidemark.testing.simulator.transactions.tables import judge_table
from tidemark.testing.simulator.writer import Writer

if TYPE_CHECKING:
    from tidemark.testing.simulator.broker import Broker

_RETRY_SECONDS: Final = 0.05
_MOMENTS: Final = {AppendRequest: "append", AppendResponse: "ack", HandOver: "hand over"}
_Args = TypeVarTuple("_Args")


class Process:
    """Turns: an event goes in, what comes out is written, sent and answered.

    Only one thing happens at a time, so a process that is paused, or slow, does later what would
    have been done by now, in the same order.
    """

    def __init__(self, broker: Broker) -> None:
        """Start: redo the journal, open the logs. Raises what that raises."""
        self.broker = broker
        self.world = broker.world
        self.is_alive = True
        self.paused_until = 0.0
        self.disturbances = 0
        self._busy_until = 0.0
        self._inbox: deque[tuple[Callable[..., None], tuple[object, ...]]] = deque()
        self._armed_at = inf
        self.newest_write = 0
        self._checkpoint: Checkpoint | None = None
        self._move_phases: dict[PartitionKey, Phase | None] = {}
        self._has_told_news = False
        """Whether the last heartbeat that left had some."""
        opened: Opened = open_broker(broker)
        self.node, self.journal, self.replicas, self.directory = opened
        self.writer = Writer(self, self.journal)
        self.desk = Desk(self, self.world.watch, self.reply)
        self.compactions = SlowCompactions(self)
        placement = self.world.placement
        self.hosting = None if placement is None else Hosting(self, placement)
        play = self.world.play
        self.transactions = None if play is None else TransactionDesk(self, play)
        self._later_checkpoint()

    # Time

    @property
    def now(self) -> float:
        """By this broker's own clock."""
        return self.broker.clock.monotonic(self.world.queue.now)

    @property
    def wall_ms(self) -> int:
        return self.broker.clock.wall_ms(self.world.queue.now)

    def later(self, seconds: float, action: Callable[[Unpack[_Args]], None], *args: *_Args) -> None:
        self.world.queue.after(seconds, self._do, action, args)

    def do(self, action: Callable[[Unpack[_Args]], None], *args: *_Args) -> None:
        """Do it now, or when the process gets to it; not at all if it is dead."""
        self._do(action, args)

    def _do(self, action: Callable[..., None], args: tuple[object, ...]) -> None:
        if not self.is_alive:
            return
        now = self.world.queue.now
        if self._inbox or now < self.paused_until or now < self._busy_until:
            self._inbox.append((action, args))
            self.disturbances += 1
            if len(self._inbox) == 1:
                self._go_on()
            return
        if self.broker.step_seconds:
            self._busy_until = now + self.broker.rng.random() * self.broker.step_seconds
        action(*args)

    def pause(self, until: float) -> None:
        self.paused_until = max(self.paused_until, until)

    @property
    def is_behind(self) -> bool:
        """Whether it was, or is, held up in what it has to do."""
        return bool(self._inbox) or self.world.queue.now < self.paused_until

    def wake(self) -> None:
        """End a pause early."""
        self.paused_until = 0.0
        self._go_on()

    def _go_on(self) -> None:
        """Do what has come in meanwhile, as soon as it is its turn."""
        queue = self.world.queue
        while self._inbox and self.is_alive:
            free_at = max(self.paused_until, self._busy_until)
            if queue.now < free_at:
                queue.at(free_at, self._go_on)
                return
            if self.broker.step_seconds:
                self._busy_until = queue.now + self.broker.rng.random() * self.broker.step_seconds
            action, args = self._inbox.popleft()
            action(*args)

    # Events

    def receive(self, source: NodeId, messages: Sequence[PeerMessage]) -> None:
        for message in messages:
            self.node.receive(source, message, self.now)
        self.turn()

    def peer_up(self, node: NodeId, incarnation: int) -> None:
        self.node.peer_up(node, incarnation, self.now)
        self.turn()

    def peer_down(self, node: NodeId) -> None:
        self.node.peer_down(node, self.now)
        self.turn()

    def request(self, client: str, request: Request) -> None:
        if isinstance(request, Ask):
            assert self.transactions is not None
            self.transactions.take(client, request)
        else:
            self.desk.take(client, request)
        self.turn()

    def called(self, call: Call) -> None:
        """By another broker's coordinator, or answered by one."""
        assert self.transactions is not None
        self.transactions.brokers.take(call)
        self.turn()

    def tick(self) -> None:
        self._armed_at = inf
        self.node.tick(self.now)
        self.turn()

    def persisted(self, write: int) -> None:
        self.node.persisted(write)
        if self._checkpoint is not None and self._checkpoint.write <= write:
            self._sync_checkpoint(self._checkpoint)
        self.turn()

    def turn(self) -> None:
        """What has come of the event: look at it, write it, send it, answer it."""
        self._turn()
        while self.is_alive and self.transactions is not None and self.transactions.take_more():
            self._turn()

    def _turn(self) -> None:
        touched = list(self.node.dirty)
        output = self.node.take_output()
        if touched:
            self.world.watch.believe(self.broker.node_id, touched)
        if output.disk_failure is not None:
            self.disk_failed(output.disk_failure)
            return
        if output is not NOTHING:
            self._follow(output)
        self.desk.release()
        self._judge_moves(output)
        self._arm()
        if self._checkpoint is None and self.journal.needs_checkpoint:
            self.begin_checkpoint()

    def _follow(self, output: Output) -> None:
        self._look_at(output)
        if output.write:
            self.newest_write = output.write
            self.writer.put(output)
        for target, messages in output.sends.items():
            self.world.watch.says(self.broker.node_id, target, messages)
            self.world.send(self.broker.node_id, target, messages)
            self._mark_moments(messages)
            self._mark_calm(messages)
        for change in output.changes:
            self.desk.look_again(change.key)
            if self.transactions is not None:
                self.transactions.changed(change)

    def _judge_moves(self, output: Output) -> None:
        node = self.node
        for ended in output.ended_moves:
            self.world.coverage.counts[f"moves {ended.ending.value}"] += 1
            self.world.wishes.ended(ended)
            self._note(
                "move", f"{ended.key.partition} to {ended.target}: {ended.ending} {ended.why}"
            )
            if ended.attempts:
                self.moment("move ended")
        if node.moves:
            for key, replica in self.replicas.items():
                # One that is paused for a change of its voters is looked at in a while.
                if key in node.moves and replica.is_paused and not replica.is_leader:
                    serving.check_tells_leader(replica.name, self.broker.node_id, replica.leader)
                phase = node.moves.phase(key)
                if phase is not None and phase is not self._move_phases.get(key):
                    self.moment(PHASE_OF_A_MOVE[phase])
                self._move_phases[key] = phase

    def _note(self, topic: str, what: str) -> None:
        self.world.trace.note(self.world.queue.now, self.broker.node_id, topic, what)

    def _mark_moments(self, messages: Sequence[PeerMessage]) -> None:
        for message in group_messages(messages):
            said = message.message
            name = _MOMENTS.get(type(said))
            if name is not None:
                self.moment(name)
            elif isinstance(said, VoteResponse) and said.granted:
                self.moment("promise" if said.ballot is Ballot.PRE else "grant")

    def _mark_calm(self, messages: Sequence[PeerMessage]) -> None:
        """All that was new has been told: heartbeats are fewer from now on."""
        for said in messages:
            if isinstance(said, Heartbeat):
                if self._has_told_news and not said.groups:
                    self.moment("calm")
                self._has_told_news = bool(said.groups)

    def _look_at(self, output: Output) -> None:
        node_id, watch, trace = self.broker.node_id, self.world.watch, self.world.trace
        now = self.world.queue.now
        for record in output.records:
            if record.key in self.replicas:
                watch.groups[record.key].staged(node_id, record)
            if record.kind is RecordKind.HARD_STATE:
                self.moment("vote")
            elif record.kind in (RecordKind.TRUNCATE, RecordKind.RESET):
                trace.note(now, node_id, "truncate", f"{record.kind.name} {record.key.partition}")
                self.moment("truncate")
                self.world.look(record.key)
        for change in output.changes:
            replica = self.replicas.get(change.key)
            if replica is None:
                continue
            judge = watch.groups[change.key]
            if change.leadership and replica.is_leader:
                judge.leads(node_id, replica)
                if self.world.knobs.give_ups:
                    judge_table(replica)
                self.moment("leader")
            judge.changed(node_id, replica)
            where = f"{judge.name} epoch {replica.epoch} leader {replica.leader}"
            if change.leadership:
                trace.note(now, node_id, "role", where)
                self.world.look(change.key, is_common=not replica.is_leader)
            if change.committed:
                trace.note(now, node_id, "commit", f"{judge.name} {replica.committed}")
                self.moment("commit")
                self.world.look(change.key, is_common=True)
            if change.failed:
                self.world.replica_failed(node_id, replica)

    def _arm(self) -> None:
        """Have the node ticked when it next wants to be."""
        deadline = self.node.next_deadline()
        if deadline == inf:
            return
        at = max(self.broker.clock.world(deadline), self.world.queue.now + 1e-6)
        if at < self._armed_at:
            self._armed_at = at
            self.world.queue.at(at, self._do, self._tick_if_due, (at,))

    def _tick_if_due(self, at: float) -> None:
        if at == self._armed_at:
            self.tick()

    # For the desk and the writer

    def replica(self, key: PartitionKey) -> GroupReplica | None:
        return self.node.get(key)

    def leader_of(self, key: PartitionKey) -> tuple[NodeId | None, Epoch]:
        return self.node.leader_of(key)

    def is_rotten(self, key: PartitionKey) -> bool:
        return self.broker.is_rotten(key)

    def count(self, what: str) -> None:
        self.world.coverage.counts[what] += 1

    def moment(self, name: str) -> None:
        self.world.moment(self.broker.node_id, name)

    def disk_seconds(self, kind: str) -> float:
        return self.broker.disk_seconds(kind)

    def written(self, records: Sequence[JournalRecord]) -> None:
        self.world.watch.written(self.broker.node_id, records)

    def durable(self, output: Output) -> None:
        self.world.watch.durable(self.broker.node_id, output.records)
        for removal in output.removals:
            try:
                removal.run()
            except SyncFailed as error:
                self.disk_failed(error)
                return
            except OSError:
                pass  # they are below the log's start: the next opening removes them

    def disk_failed(self, error: OSError) -> None:
        """After a failed sync nothing is known about the disk: the process ends."""
        self.broker.fail_stop(str(error))

    def reply(self, client: str, answer: Answer) -> None:
        self.world.answer(self.broker.node_id, client, answer)

    # Housekeeping

    def tell(self, key: PartitionKey, event: Callable[[Group], None]) -> None:
        """What an operator wants of a group's core."""
        replica = self.node.get(key)
        if replica is not None:
            self.do(self._tell, replica, event)

    def _tell(self, replica: GroupReplica, event: Callable[[Group], None]) -> None:
        replica.tell(event)
        self.turn()

    def observe(self, key: PartitionKey, parents: Sequence[NodeId]) -> None:
        if self.node.get(key) is not None:
            self.node.observe(key, parents, preferred=parents[:1], is_told=True)
            self.turn()

    def move_leader(self, key: PartitionKey, to: NodeId, seconds: float) -> None:
        """What an operator wishes, if this broker leads the group."""
        try:
            self.node.move_leader(key, to, self.now + seconds)
        except RequestError as error:
            self.world.coverage.counts["moves refused"] += 1
            self._note("move", f"refused: {error}")
        else:
            self.world.coverage.counts["moves begun"] += 1
            self._note("move", f"{key.partition} to {to} begins")
        self.turn()

    def move_log_start(self, key: PartitionKey, offset: Offset) -> None:
        """DeleteRecords, on a leader."""
        replica = self.node.get(key)
        if replica is None or not replica.is_serving:
            return
        if replica.log_start < offset <= replica.high_watermark:
            oldest = replica.producers.transactions.oldest
            if oldest is not None and oldest.first_offset < offset:
                self.count("starts moved within transactions")
            given_up = self.world.given_up
            given_up[key] = max(given_up.get(key, offset), offset)
            replica.move_log_start(offset)
            self.turn()

    def compact(self, key: PartitionKey) -> None:
        compact(self, key)

    def _later_checkpoint(self) -> None:
        self.later(self.world.knobs.checkpoint_interval, self._checkpoint_now_and_then)

    def _checkpoint_now_and_then(self) -> None:
        self.begin_checkpoint()
        self._later_checkpoint()

    def begin_checkpoint(self) -> None:
        if self._checkpoint is not None:
            return
        if not self.node.can_checkpoint:
            self.later(_RETRY_SECONDS, self.begin_checkpoint)
            return
        self.moment("checkpoint")
        # Those that have failed too: the journal has what they have promised.
        write, state = self.newest_write, self.broker.state
        left = {} if self.hosting is None else self.hosting.left_in
        self._checkpoint = Checkpoint(self.journal, state, self.replicas, left, write)
        if write <= self.writer.synced_write:
            self._sync_checkpoint(self._checkpoint)

    def _sync_checkpoint(self, checkpoint: Checkpoint) -> None:
        """What it rests on is in the journal."""
        if not checkpoint.is_syncing:
            checkpoint.is_syncing = True
            seconds = self.world.knobs.checkpoint_syncs * self.disk_seconds("sync")
            self.later(seconds, self._complete_checkpoint, checkpoint)

    def _complete_checkpoint(self, checkpoint: Checkpoint) -> None:
        try:
            checkpoint.complete()
        except OSError as error:
            self.disk_failed(error)
            return
        self._checkpoint = None

    @property
    def is_checkpointing(self) -> bool:
        return self._checkpoint is not None
