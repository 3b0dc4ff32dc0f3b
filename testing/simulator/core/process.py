"""One life of a replica: the core, and what a broker does around it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from tidemark.partitions.raft.entries import EpochStart, Run
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.messages import (
    AppendRequest,
    AppendResponse,
    Ballot,
    HandOver,
    HardState,
    Message,
    ResetRequest,
    VoteRequest,
    VoteResponse,
)
from tidemark.partitions.raft.ports import Limits
from tidemark.partitions.raft.ready import Leadership, Outgoing, Ready
from tidemark.partitions.replication.campaigns import Campaigns
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.moves import Moves
from tidemark.partitions.replication.peer_table import PeerTable
from tidemark.partitions.replication.retries import Retries, needs_watch
from tidemark.protocol.errors import RequestError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.checkers import serving
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.core.awake import AwakeClock
from tidemark.testing.simulator.core.beats import Beat, HeardBeat
from tidemark.testing.simulator.core.log import Write
from tidemark.testing.simulator.opening import timing_of
from tidemark.testing.simulator.phases import PHASE_OF_A_MOVE
from tidemark.testing.simulator.randomness import stream

if TYPE_CHECKING:
    from tidemark.testing.simulator.core.broker import CoreBroker

_MOMENTS: Final = {AppendRequest: "append", AppendResponse: "ack", HandOver: "hand over"}
_LATE: Final = 1e-6


class _Batch(NamedTuple):
    """What is written together, and what is said once it is durable."""

    token: int
    writes: list[Write]
    send: Sequence[Outgoing]


class CoreProcess:
    """It looks to the leaders' moves, retries and campaigns like a `GroupReplica`, and to the last
    two like a `PeerTable`, too."""

    priority = Priority.REST
    delay_seconds = 0.0
    """Others confirm at once what they are sent."""

    def __init__(self, broker: CoreBroker) -> None:
        self.broker = broker
        self.world = world = broker.world
        self.node_id = broker.node_id
        self.key = world.group.key
        self.name = str(world.group.partition)
        self.failure: str | None = None
        self.is_paused = False
        self.paused_since = 0.0
        """By `awake`: when writes were held for the last time."""
        self.awake = AwakeClock(world.queue)
        self.heard_majority_at = self.world.queue.now
        """Or did not lead."""
        self.starts_known = 0
        """How many processes had started when it last looked who there is."""
        self.alive = {broker.node_id}
        self.known: dict[NodeId, CoreProcess] = {}
        """Of each of the others, the life of it that was heard last."""
        self.told: dict[NodeId, Beat] = {}
        """What each of the others was told last, and has heard."""
        self._heard = HeardBeat()
        self.led_epoch: Epoch | None = None
        self.log = broker.disk.copy()
        knobs = world.knobs
        self.group = Group(
            node_id=self.node_id,
            shape=self.log.shape(),
            hard_state=self.log.hard_state,
            committed=self.log.start.offset,
            read=self.log.read,
            peers=self,
            limits=Limits(
                append_bytes_max=knobs.append_bytes_max,
                window_bytes=knobs.window_bytes,
                early_bytes_max=knobs.early_bytes_max,
            ),
            is_clean=broker.is_clean,
            life=broker.starts,
            in_doubt=broker.in_doubt,
        )
        self.preference = world.group.voters
        # All that they look at of their peers is who is alive and has read, and of a replica what
        # is here.
        timing, peers = timing_of(knobs), cast(PeerTable, self)
        rng = stream(world.seed, f"node {self.node_id} {broker.starts}")
        self._campaigns = Campaigns(self.node_id, timing, peers, rng)
        self._retries = Retries(timing, peers)
        self._as_replica = cast(GroupReplica, self)
        self._replicas = {self.key: self._as_replica}
        self.moves = Moves(self.node_id)
        self._move_phase: str | None = None
        # Whether something has come that may have made it believe something wrong.
        self._has_learned = False
        self._armed_at = inf
        self._waiting: list[_Batch] = []
        self._syncing: list[_Batch] = []
        self._unstaged: list[Write] = []
        world.judge.starts(self.node_id, self, HardState(self.group.epoch, self.group.voted_for))

    # What judges, moves, retries and campaigns look at

    def is_alive(self, node: NodeId) -> bool:
        return node in self.alive

    def has_read(self, node: NodeId, since: float) -> bool:
        """All that arrives is read at once here."""
        return True

    def has_answered(self, node: NodeId, since: float) -> bool:
        """And answered."""
        return True

    @property
    def hard_state(self) -> HardState:
        return HardState(self.group.epoch, self.group.voted_for)

    @property
    def epoch(self) -> Epoch:
        return self.group.epoch

    @property
    def leader(self) -> NodeId | None:
        return self.group.leader

    @property
    def committed(self) -> Position:
        return self.group.committed

    @property
    def is_leader(self) -> bool:
        return self.group.is_leader and self.failure is None

    @property
    def is_serving(self) -> bool:
        return self.group.is_serving and self.failure is None

    @property
    def is_accepting(self) -> bool:
        return self.is_serving and self.group.is_accepting and not self.is_paused

    @property
    def log_end(self) -> Offset:
        return self.log.end_offset

    def tell(self, event: Callable[[Group], None]) -> None:
        if self.failure is None:
            event(self.group)

    def pause_writes(self) -> None:
        self.is_paused, self.paused_since = True, self.awake.seconds

    def resume_writes(self) -> None:
        self.is_paused = False

    def is_awaited(self) -> bool:
        """No client waits for more than a majority here."""
        return False

    # Events

    def receive(self, sender: CoreProcess, message: Message | Beat) -> None:
        if isinstance(message, Beat):
            self._take_beat(sender, message)
        else:
            self._has_learned = self.group.is_leader and isinstance(message, AppendResponse)
            if isinstance(message, VoteRequest):
                now = self.world.queue.now
                self._campaigns.asked(self._as_replica, sender.node_id, message, now)
            self.group.receive(sender.node_id, message)
        self.turn()

    def opened(self) -> None:
        self._seek()
        self.turn()

    def came_alive(self, process: CoreProcess) -> None:
        node, is_new = process.node_id, self.known.get(process.node_id) is not process
        self.alive.add(node)
        self.known[node] = process
        if self._heard.came_alive(process):
            self._follow(node)
        if self.is_leader:
            is_voter = node in self.group.config.members
            if is_voter or is_new:  # a learner says to its leader that it has been opened
                self.group.peer_reset(node)
            if is_voter:
                self.group.check_quorum()
        if self._campaigns.take_parked(self.world.queue.now):
            self._seek()
        self.turn()

    def lost(self, node: NodeId) -> None:
        self.alive.discard(node)
        self.told.pop(node, None)
        if self.group.leader == node:
            self.group.leader_lost()
        if self.is_leader and node in self.group.config.members:
            self.group.check_quorum()
        self.turn()
        serving.check_goes_on(self.name, self.node_id, node, self.group.successor)

    def operate(self, event: Callable[[Group], None]) -> None:
        self.tell(event)
        self.turn()

    def append(self, batches: Sequence[BatchHeader]) -> None:
        """A client's, which this leader takes."""
        if not self.is_accepting:
            return
        epoch, base = self.group.epoch, self.log.end_offset
        placed = []
        for batch in batches:
            end = self.log.end_offset
            placed.append(batch._replace(base_offset=end, partition_leader_epoch=epoch))
            self.log.append(placed[-1])
        end = self.log.end_offset
        run = Run(epoch, base, end, tuple(placed))
        if self.world.group.is_journaled:
            self._unstaged.append(run)
            self.group.appended(end)
        else:  # in the page cache, which counts once what is under way does
            outstanding = self._waiting or self._syncing
            if outstanding:
                outstanding[-1].writes.append(run)
            else:
                self.to_disk([run])
            self.group.appended(end, is_durable=True)
        self.turn()

    def move_leader(self, to: NodeId, seconds: float) -> None:
        now, counts = self.world.queue.now, self.world.coverage.counts
        try:
            self.moves.begin(self._as_replica, to, now=now, deadline=now + seconds)
        except RequestError:
            counts["moves refused"] += 1
        else:
            counts["moves begun"] += 1
        self.turn()

    def trim(self, share: float) -> None:
        """Give up a part of what is committed, where no write is under way."""
        start, end = self.log.start.offset, self.group.committed.offset
        if self._syncing or self._waiting or self._unstaged or self.group.has_ready or start >= end:
            return
        bases = [base for base in self.log.boundaries() if start < base <= end]
        if bases:
            offset = bases[int(share * len(bases))]
            self.log.trim(offset)
            self.broker.disk.trim(offset)
            self.broker.save()
            self.group.trim(offset)
            self.turn()

    def tick(self) -> None:
        self._armed_at = inf
        now = self.world.queue.now
        for _ in self._campaigns.take_due(now, self._replicas):
            self.tell(Group.campaign)
        self._retries.tick(now)
        self.moves.tick(now)
        self.turn()

    def turn(self) -> None:
        """What has come of the event."""
        group, now, world = self.group, self.world.queue.now, self.world
        while self.failure is None:
            while group.has_ready:
                self._do(group.take_ready())
            if not self.moves:
                break
            self.moves.changed(self._as_replica, now)
            if not group.has_ready:
                break
        if self.failure is None:
            replica = self._as_replica
            if group.is_leader and replica not in self._retries and needs_watch(replica):
                self._retries.watch(replica, now)
            if self._has_learned:
                self._has_learned = False
                world.judge.believes(self.node_id, self)
        if self.moves or self._move_phase is not None:
            self._look_at_moves()
        if self._waiting and not self._syncing:
            self._sync_soon()
        self._arm()

    # Doing what the core says

    def _do(self, ready: Ready) -> None:
        judge, node_id, writes = self.world.judge, self.node_id, self._unstaged
        if ready.reset is not None:
            self._write(ready.reset)
        if ready.truncate_to is not None:
            judge.cuts(node_id, ready.truncate_to)
            self._write(ready.truncate_to)
            self.broker.moment("truncate")
            self.world.look()
        for entry in ready.entries:
            self._write(entry)
        if ready.hard_state is not None:
            writes.append(ready.hard_state)
            self.broker.moment("vote")
        self._say(ready.send)
        if ready.token:
            self._waiting.append(_Batch(ready.token, writes, ready.send_after))
            self._unstaged = []
        self._tell(ready)

    def _write(self, write: Write) -> None:
        self.log.apply(write)
        self._unstaged.append(write)

    def _tell(self, ready: Ready) -> None:
        world, judge, node_id = self.world, self.world.judge, self.node_id
        if ready.failure is not None:
            # Who has lost what was committed, and may, is found out by those who have not.
            if not judge.may_have_lost:
                raise Violation("no replica fails", self.name, f"{node_id}: {ready.failure}")
            self.failure = str(ready.failure)
            return
        if ready.leadership is not None:
            self._changes(ready.leadership)
        if ready.committed is not None:
            world.note(node_id, "commit", str(ready.committed))
            self.broker.moment("commit")
            world.look(is_common=True)
        if ready.committed is not None or ready.leadership is not None or ready.is_serving:
            judge.changed(node_id, self)

    def _changes(self, leadership: Leadership) -> None:
        world, node_id = self.world, self.node_id
        epoch, leader = leadership.epoch, leadership.leader
        world.note(node_id, "role", f"epoch {epoch} leader {leader}")
        world.look(is_common=leader != node_id)
        if leader == node_id:
            self.led_epoch = epoch
            world.judge.leads(node_id, self)
            self.broker.moment("leader")
            self.told.clear()
            world.beat_soon(self)
        elif self.told and self.led_epoch is not None:
            world.beat_soon(self)
        if leader is None:
            self._seek()
            return
        self._campaigns.remove(self.key, world.queue.now)
        leads_no_more = self._heard.leads_no_more(leader, epoch)
        if leader != node_id and (leader not in self.alive or leads_no_more):
            self.group.leader_lost()

    def _say(self, outgoing: Sequence[Outgoing]) -> None:
        broker, world, node_id = self.broker, self.world, self.node_id
        for out in outgoing:
            to, message = out.to, out.message
            world.judge.says(node_id, to, message)
            world.send(self, to, message)
            name = _MOMENTS.get(type(message))
            if name is not None:
                broker.moment(name)
            elif isinstance(message, VoteResponse) and message.granted:
                broker.moment("promise" if message.ballot is Ballot.PRE else "grant")

    # The disk: one batch of writes at a time, and what waits meanwhile goes together

    def _sync_soon(self) -> None:
        self._syncing, self._waiting = self._waiting, []
        is_fast = not self.world.group.is_journaled and not any(
            isinstance(write, Position | EpochStart | HardState | ResetRequest)
            for batch in self._syncing
            for write in batch.writes
        )
        self.world.later(self, 0.0 if is_fast else self.broker.disk_seconds(), self._synced)
        self.broker.moment("sync")

    def _synced(self) -> None:
        batches, self._syncing = self._syncing, []
        for batch in batches:
            self.to_disk(batch.writes)
            self._say(batch.send)
            self.group.persisted(batch.token)
        self._has_learned = True
        self.turn()

    def to_disk(self, writes: Sequence[Write]) -> None:
        """These have reached it."""
        broker, judge, node_id = self.broker, self.world.judge, self.node_id
        for write in writes:
            broker.wrote(write)
            judge.synced(node_id, write)

    @property
    def unsynced(self) -> list[list[Write]]:
        """What a crash may keep the beginning of. What was staged together is kept together."""
        return [batch.writes for batch in (*self._syncing, *self._waiting)]

    def _seek(self) -> None:
        """There is no leader, as far as this replica knows."""
        self._campaigns.seek(self._as_replica, self.world.queue.now)

    # Heartbeats

    def beat(self) -> Beat | None:
        """What there is to say; nothing, if it never led."""
        if self.led_epoch is None:
            return None
        group = self.group
        leads = group.is_leader and self.failure is None and self.led_epoch == group.epoch
        return Beat(self.led_epoch, leads, group.committed)

    def _take_beat(self, sender: CoreProcess, beat: Beat) -> None:
        source = sender.node_id
        if self._heard.take(sender, beat) and beat.leads:
            self._follow(source)
        if not beat.leads and self.group.leader == source and self.group.epoch <= beat.epoch:
            self.group.leader_lost()

    def _follow(self, leader: NodeId) -> None:
        beat = self._heard.beat
        if beat.epoch >= self.group.epoch:
            self.group.heard_leader(leader, beat.epoch, beat.committed)

    # Housekeeping

    def _look_at_moves(self) -> None:
        world = self.world
        for ended in self.moves.take_ended():
            world.coverage.counts[f"moves {ended.ending.value}"] += 1
            world.wishes.ended(ended)
        phase = self.moves.phase(self.key)
        name = None if phase is None else PHASE_OF_A_MOVE[phase]
        if name is not None and name != self._move_phase:
            self.broker.moment(name)
        self._move_phase = name

    def _arm(self) -> None:
        deadline = self._campaigns.next_deadline()
        retry = self._retries.next_deadline()
        if retry < deadline:
            deadline = retry
        if self.moves:
            deadline = min(deadline, self.moves.next_deadline())
        if deadline < self._armed_at:
            now = self.world.queue.now
            at = max(deadline, now + _LATE)
            if at < self._armed_at:
                self._armed_at = at
                self.world.later(self, at - now, partial(self._tick_if_due, at))

    def _tick_if_due(self, at: float) -> None:
        if at == self._armed_at:
            self.tick()
