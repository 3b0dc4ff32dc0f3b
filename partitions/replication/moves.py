"""Leaders that are being moved away from this broker, each to the broker that was asked for.

The leader does it all by itself (decision 7): it waits until the target has nearly everything,
holds writes, waits until all that was appended is committed and held by the target, and hands over.
What goes wrong before the target is elected leaves the leader leading. Nothing here is durable: the
wish is in the cluster's metadata, and whoever leads the group next finds it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Final

from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.progress import NodeProgress
from tidemark.partitions.replication.ended_move import EndedMove, Ending
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Epoch, NodeId, Position
from tidemark.protocol.values import dataclass

_NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTiming:
    """How patient a leader is that is to give up the lead. In seconds but for `attempts`."""

    pause_seconds: float = 0.5
    """Writes are held for no longer than this in one attempt."""
    again_seconds: float = 0.25
    """Between two attempts writes flow for at least so long."""
    attempts: int = 3
    look_seconds: float = 0.05
    """A target has caught up if it holds what the leader's log held so long ago."""


class Phase(StrEnum):
    """Where a move is."""

    CATCH_UP = "catch up"
    PAUSE = "pause"
    HAND_OVER = "hand over"


@dataclass(slots=True)
class _Move:
    replica: GroupReplica
    target: NodeId
    epoch: Epoch
    """The one in which this replica leads, and which it is to give up."""
    deadline: float
    begun_at: float
    phase: Phase = Phase.CATCH_UP
    due: float = 0.0
    """When to look, whatever happens."""
    not_before: float = 0.0
    """Until then writes flow."""
    attempts: int = 0
    mark: Position | None = None
    """Where the log ended when it was last looked at."""
    paused_at: float = 0.0
    """When writes were held for the last time, or are since; without meaning before the first."""
    paused_seconds: float = 0.0
    why: str = ""
    """What stands in the way, if it goes no further."""

    @property
    def is_paused(self) -> bool:
        return self.phase is not Phase.CATCH_UP


class Moves:
    """All those of a broker. A group that is not being moved costs nothing."""

    def __init__(self, node_id: NodeId, timing: MoveTiming | None = None) -> None:
        self._node_id = node_id
        self.timing = timing or MoveTiming()
        self._moves: dict[PartitionKey, _Move] = {}
        self._ended: list[EndedMove] = []

    def __bool__(self) -> bool:
        return bool(self._moves)

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._moves

    @property
    def replicas(self) -> Mapping[GroupReplica, None]:
        """Those of the groups."""
        return {move.replica: None for move in self._moves.values()}

    def phases(self) -> Iterable[Phase]:
        """Of each of them, in no order."""
        return (move.phase for move in self._moves.values())

    def phase(self, key: PartitionKey) -> Phase | None:
        move = self._moves.get(key)
        return None if move is None else move.phase

    def begin(self, replica: GroupReplica, target: NodeId, *, now: float, deadline: float) -> None:
        """Give the lead to `target` by then. Raises `RequestError`, and nothing has changed, if
        this replica cannot, and says why."""
        name, group = replica.name, replica.group
        if replica.key in self._moves:
            raise _refused(f"the leader of {name} is being moved already")
        if not replica.is_serving:
            raise RequestError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"this broker does not lead {name}"
            )
        if target == self._node_id:
            raise _refused(f"broker {target} leads {name} already")
        if target not in group.config.voters:
            raise _refused(f"broker {target} has no vote on {name}: it cannot lead it")
        if not group.peers.is_alive(target):
            raise _refused(f"broker {target} cannot be reached")
        why = f"broker {target} has not caught up"
        move = _Move(replica, target, replica.epoch, deadline, now, why=why)
        self._moves[replica.key] = move
        self._look(move, now)

    def abort(self, key: PartitionKey, why: str, now: float) -> None:
        """Go on leading, if the lead is not gone already."""
        move = self._moves.get(key)
        if move is not None:
            self._end(move, Ending.FAILED, why, now)

    def changed(self, replica: GroupReplica, now: float) -> None:
        """Something has happened to the group."""
        move = self._moves.get(replica.key)
        if move is not None:
            self._look(move, now)

    def tick(self, now: float) -> None:
        for move in list(self._moves.values()):
            if move.due <= now:
                self._look(move, now)

    def next_deadline(self) -> float:
        return min((move.due for move in self._moves.values()), default=_NEVER)

    def take_ended(self) -> list[EndedMove]:
        ended, self._ended = self._ended, []
        return ended

    # One move

    def _look(self, move: _Move, now: float) -> None:
        """Do the next thing that can be done."""
        replica = move.replica
        if not replica.is_leader or replica.epoch != move.epoch:
            self._gone(move, now)
            return
        if now >= move.deadline:
            self._end(move, Ending.FAILED, f"not by its deadline: {move.why}", now)
            return
        group = replica.group
        if not group.peers.is_alive(move.target):
            self._end(move, Ending.FAILED, f"broker {move.target} cannot be reached", now)
        elif move.target not in group.config.voters or group.config.is_joint:
            self._end(move, Ending.FAILED, "the group's voters are being changed", now)
        elif move.is_paused and now >= move.paused_at + self.timing.pause_seconds:
            self._give_up_attempt(move, now)
        elif move.phase is Phase.CATCH_UP:
            self._catch_up(move, group, now)
        if move.phase is Phase.PAUSE and replica.key in self._moves:
            self._hand_over_when_quiet(move, now)

    def _catch_up(self, move: _Move, group: Group, now: float) -> None:
        progress = _progress(group, move.target)
        mark = group.shape.last if move.mark is None else move.mark
        if now < move.not_before or progress is None or progress.match < mark:
            if now >= move.due:
                move.mark = group.shape.last
                move.due = min(now + self.timing.look_seconds, move.deadline)
            return
        move.phase, move.paused_at, move.mark = Phase.PAUSE, now, None
        move.attempts += 1
        move.due = min(now + self.timing.pause_seconds, move.deadline)
        move.replica.pause_writes()

    def _hand_over_when_quiet(self, move: _Move, now: float) -> None:
        """All that was appended is committed, so it is answered; and the target has it."""
        group = move.replica.group
        move.due = min(move.paused_at + self.timing.pause_seconds, move.deadline)
        progress = _progress(group, move.target)
        if progress is None or group.committed != group.shape.last:
            move.why = "what was appended is not committed yet"
        elif progress.match != group.shape.last:
            move.why = f"broker {move.target} does not hold all yet"
        elif move.replica.is_awaited():
            move.why = "producers wait for more replicas than a majority"
            move.due = min(now + self.timing.look_seconds, move.due)
        else:
            move.why = f"broker {move.target} was not elected"
            move.phase = Phase.HAND_OVER
            try:
                move.replica.tell(partial(Group.hand_over, to=move.target))
            except RequestError as error:
                self._end(move, Ending.FAILED, error.message or str(error), now)

    def _give_up_attempt(self, move: _Move, now: float) -> None:
        if move.attempts >= self.timing.attempts:
            why = f"tried {move.attempts} times: {move.why}"
            self._end(move, Ending.FAILED, why, now)
            return
        self._resume(move, now)
        move.phase, move.why = Phase.CATCH_UP, f"broker {move.target} has not caught up"
        move.not_before = now + self.timing.again_seconds
        move.due = min(move.not_before, move.deadline)

    def _gone(self, move: _Move, now: float) -> None:
        """This replica leads no more, or anew: the move has ended, or something else happened."""
        replica = move.replica
        leader = None if replica.is_leader else replica.leader
        if leader is None and replica.failure is None and not replica.is_leader:
            # The election is on. Those who wait want to know of whom; for a little while.
            wait_until = (move.paused_at + 2 * self.timing.pause_seconds) if move.is_paused else now
            if now < min(wait_until, move.deadline):
                move.due = min(wait_until, move.deadline)
                return
        if leader == move.target:
            self._end(move, Ending.DONE, "", now)
        else:
            who = "nobody is known to lead" if leader is None else f"broker {leader} leads"
            self._end(move, Ending.LEFT, who, now)

    def _end(self, move: _Move, ending: Ending, why: str, now: float) -> None:
        del self._moves[move.replica.key]
        self._resume(move, now)
        self._ended.append(
            EndedMove(
                key=move.replica.key,
                target=move.target,
                ending=ending,
                why=why,
                attempts=move.attempts,
                catch_up_seconds=(move.paused_at if move.attempts else now) - move.begun_at,
                paused_seconds=move.paused_seconds,
            )
        )

    def _resume(self, move: _Move, now: float) -> None:
        if move.is_paused:
            move.paused_seconds += now - move.paused_at
            self._take_back(move)
            move.replica.resume_writes()

    def _take_back(self, move: _Move) -> None:
        """Go on leading though the target was told to campaign: who is about to give the lead away
        takes no writes. Should the target be elected yet, it is as after any election."""
        replica = move.replica
        if replica.is_leader and replica.epoch == move.epoch:
            replica.tell(Group.abort_hand_over)


def _progress(group: Group, node: NodeId) -> NodeProgress | None:
    return next((each for each in group.progress() if each.node == node), None)


def _refused(why: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, why)
