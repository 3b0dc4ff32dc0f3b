"""A wish that one group's replicas be on other brokers, while its leader carries it out.

It is done one step at a look, each decided on what the group is like now:

1. the brokers that are to come are learners, one at a time, once they have heard of the wish too,
   and are sent the log, as fast as they are allowed to be;
2. a leader that is to go hands over to one that stays. Where nobody does, the group first goes over
   to the new voters with its leader;
3. writes are held for a moment, and the group goes over to the new voters, by its own change of
   configuration at the starts of two epochs;
4. the wish has come true once the new voters have committed an entry of their own.

It knows of no other group, nor whose turn it is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.progress import NodeProgress
from tidemark.partitions.replication.copy_meter import CopyMeter, NearLearners, lag_bytes
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.reassignment_values import (
    ReassignmentState,
    ReassignmentTiming,
    ReplicaWish,
    Stage,
)
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId


class Reassignment:
    """Invariant: writes of the group are held by it exactly while `is_holding`."""

    __slots__ = (
        "_failure",
        "_failures",
        "_heir",
        "_held_at",
        "_holding",
        "_node",
        "_not_before",
        "_note_hold",
        "_seen",
        "_seen_at",
        "_target",
        "_timing",
        "is_stuck",
        "learner",
        "meter",
        "near",
        "stage",
        "why",
        "wish",
    )

    def __init__(
        self,
        wish: ReplicaWish,
        node: ReplicationNode,
        timing: ReassignmentTiming,
        note_hold: Callable[[float], None],
        meter: CopyMeter,
    ) -> None:
        """`note_hold` is told for how many seconds writes were held, each time. `meter` may know
        what learners were sent before this was wished."""
        self.wish = wish
        self.stage = Stage.WAIT
        self.why = ""
        self.is_stuck = False
        """Others may have its turn."""
        self.learner: NodeId | None = None
        """Whom the log is being copied to."""
        self._node = node
        self._timing = timing
        self._note_hold = note_hold
        self.meter = meter
        self._not_before = 0.0
        self._failures = 0
        # What the last attempt came to, and who was to lead by it.
        self._failure = ""
        self._heir: NodeId | None = None
        self.near = NearLearners()
        self._holding: GroupReplica | None = None
        self._held_at = 0.0
        # While writes are held: the voters to go over to.
        self._target: tuple[NodeId, ...] = ()
        # How the learner was seen last, and since when it has been so.
        self._seen: tuple[NodeId, int, int] | None = None
        self._seen_at = 0.0

    @property
    def is_holding(self) -> bool:
        """Whether writes of the group are held, while it goes over."""
        return self._holding is not None

    @property
    def is_under_way(self) -> bool:
        """Whether it is to be looked at each time."""
        return self.is_holding or (self.stage is not Stage.WAIT and not self.is_stuck)

    def state(self) -> ReassignmentState:
        return ReassignmentState(
            stage=self.stage,
            why=self.why,
            learner=self.learner,
            copied_bytes=self.meter.copied_bytes,
            remaining_bytes=self.meter.remaining_bytes,
            bytes_per_second=self.meter.rate,
        )

    def measure(self, replica: GroupReplica, now: float) -> int:
        """How many bytes learners were sent since the last time."""
        if self.stage is Stage.WAIT and self.meter.is_untouched:
            self.meter.skip(now)  # it would look at each follower for nothing
            return 0
        return self.meter.look(replica, self.learner, now)

    # One step

    def look(self, replica: GroupReplica, now: float) -> None:
        """Do the next thing that can be done, while writes are not held; in a turn."""
        group = replica.group
        self.why, self.is_stuck = "", False
        if not replica.is_serving:
            self.idle(now)
            return
        config = group.config
        if config.is_joint or group.successor is not None:
            # The core finishes what was begun.
            self.stage, self.why = Stage.CHANGE, self._failure
            return
        if config.version > self.wish.at:
            self.idle(now)
            self.why, self.is_stuck = "this broker has yet to hear of a newer wish", True
            return
        are_there = {*config.voters} == {*self.wish.replicas}
        if are_there and config.version == self.wish.at:
            # Serving is to have committed an entry under this configuration, or a later one.
            # Those that went out stay learners until it is struck: they are to hear of it.
            self.stage, self.learner = Stage.DONE, None
            return
        if replica.key in self._node.moves:
            self.stage, self.why = Stage.LEAD, self._failure
            return
        if self._heir is not None:
            self._failure, self._heir = f"broker {self._heir} did not get the lead", None
        self._remove_strangers(replica)
        if not (are_there or self._copy(replica, now)):
            return
        if now < self._not_before:
            self.why = self._failure
        else:
            self._go_over(replica, now)

    def idle(self, now: float) -> None:
        """It is not led here, or not yet."""
        self.release(now)
        self.stage, self.why, self.learner = Stage.WAIT, "", None
        self._failure, self._heir = "", None

    # Learners

    def _copy(self, replica: GroupReplica, now: float) -> bool:
        """Whether all that are to come hold nearly everything; else there is one to be sent it."""
        group, stage = replica.group, self.stage
        self.stage, self.learner = Stage.COPY, None
        progress = {each.node: each for each in group.progress()}
        dead: list[NodeId] = []
        for node in self.wish.replicas:
            if node == self._node.node_id:
                continue
            if not group.peers.is_alive(node):
                dead.append(node)
            elif not self._node.peers.has_applied(node, self.wish.at):
                # An earlier command, which it has yet to hear of, may have it give up what it has.
                self.why, self.is_stuck = f"broker {node} has yet to hear of the wish", True
                return False
            elif node not in progress:
                replica.tell(partial(_begin_with, node=node))
                self.learner = node
                self.near.forget(node)
                return False
            elif not self._is_near(replica, progress[node]):
                self.learner = node
                self.near.forget(node)
                self._note_silence(progress[node], now)
                return False
            elif not progress[node].is_voter:
                self.near.note(replica, progress[node])
                replica.tell(partial(Group.allow, node=node, more_bytes=None))
        if dead:
            self.why, self.is_stuck = f"broker {dead[0]} cannot be reached", True
            return False
        if stage in (Stage.LEAD, Stage.CHANGE):
            self.stage = stage
        return True

    def _remove_strangers(self, replica: GroupReplica) -> None:
        """Learners that an earlier wish was about."""
        for each in replica.group.progress():
            if not each.is_voter and each.node not in self.wish.replicas:
                replica.tell(partial(Group.remove_learner, node=each.node))

    def _is_near(self, replica: GroupReplica, each: NodeProgress) -> bool:
        has_answered = each.answers > 0
        return has_answered and lag_bytes(replica, each) <= self._timing.near_bytes

    def _note_silence(self, each: NodeProgress, now: float) -> None:
        """One that takes nothing in does not keep others from their turn. What it is sent again
        meanwhile changes nothing about that."""
        heard, seen = (each.node, each.answers), (each.node, each.answers, each.bytes_sent)
        is_silent = now - self._seen_at >= self._timing.silence_seconds
        if self._seen is None or heard != self._seen[:2] or (seen != self._seen and not is_silent):
            self._seen, self._seen_at = seen, now
        elif is_silent:
            self.why = f"broker {each.node} does not take in what it is sent: its log says why"
            if each.allowance is not None and each.allowance <= 0:
                self.why = f"a limit holds back what broker {each.node} is sent"
            self.is_stuck = True

    # Going over

    def _go_over(self, replica: GroupReplica, now: float) -> None:
        wanted, me = self.wish.replicas, self._node.node_id
        voters = wanted
        if me not in wanted:
            heirs = [node for node in wanted if node in replica.group.config.voters]
            if heirs:
                self._hand_over(replica, heirs, now)
                return
            voters = (*wanted, me)
        self.stage, self._target = Stage.CHANGE, tuple(sorted(voters))
        self._holding, self._held_at = replica, now
        replica.pause_writes()
        self.look_at_held(replica, now)

    def _hand_over(self, replica: GroupReplica, heirs: list[NodeId], now: float) -> None:
        """First, while nothing else has begun: the next leader goes on with it."""
        self.stage = Stage.LEAD
        alive = [node for node in heirs if replica.group.peers.is_alive(node)]
        heir = (alive or heirs)[0]
        try:
            self._node.move_leader(replica.key, heir, now + self._timing.lead_seconds)
            self._heir = heir
        except RequestError as error:
            self._failure = error.message or str(error)
        self.why = self._failure
        self._try_later(now)

    def look_at_held(self, replica: GroupReplica, now: float) -> None:
        """Nothing is written: so nobody waits whom the change of epochs would send away."""
        config = replica.group.config
        has_changed = config == Configuration(self._target, version=self.wish.at)
        is_elsewhere = replica.leader not in (None, self._node.node_id)
        if is_elsewhere or (has_changed and replica.is_serving):
            self._failure, self._failures, self._not_before = "", 0, 0.0
            self.release(now)
        elif now >= self._held_at + self._timing.pause_seconds:
            self.release(now)
            held = f"{1000 * self._timing.pause_seconds:.0f} ms"
            why = self.why or "the voters had not changed"
            self._failure = f"writes were held for {held}, and then {why}"
            self._try_later(now)
        elif replica.is_serving and not config.is_joint:
            self._change(replica)

    def _change(self, replica: GroupReplica) -> None:
        group = replica.group
        if group.committed != group.shape.last:
            self.why = "what was appended is not committed yet"
            return
        self.why = ""
        try:
            change = partial(Group.change_config, voters=self._target, version=self.wish.at)
            replica.tell(change)
        except RequestError as error:
            self.why = error.message or str(error)  # they have not caught up: the next look tries

    def _try_later(self, now: float) -> None:
        timing = self._timing
        self._not_before = now + min(
            timing.again_seconds * 2**self._failures, timing.again_max_seconds
        )
        self._failures += 1

    def release(self, now: float) -> None:
        """Hold writes no more."""
        if self._holding is not None:
            self._holding.resume_writes()
            self._holding = None
            self._note_hold(now - self._held_at)


def _begin_with(group: Group, node: NodeId) -> None:
    """Nothing goes out before it is allowed."""
    group.add_learner(node)
    group.allow(node, 0)
