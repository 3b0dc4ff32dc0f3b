"""The way that nearly everything goes: a leader appends, and followers that are in step take it.

A `Ready`, and a message that is an object, cost more than a small batch does. Here a few numbers
stand for them, in groups whose state proves that nothing is lost by it: nothing but records of the
newest epoch is under way, and everybody is where the leader thinks. Each function either does to
the group just what the long way would do, or says that the case is not for it, and has done
nothing. It looks into the classes of the roles as if it were written there. A test holds both ways
against each other (`tests/scenarios/test_steady.py`).

A run says how far is committed by an offset alone, without an epoch. That is enough only because
the owner of a group lets nobody append before it serves: then its own `EpochStart` is committed.
Before, the same offset would name that start, and a follower would take it for committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import partial
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.leader import Leader
from tidemark.protocol.types import NodeId, Offset, Position


class RunInMemory(Protocol):
    """As a `Run` of the newest epoch."""

    @property
    def end_offset(self) -> Offset: ...
    @property
    def records(self) -> Sized: ...


R = TypeVar("R", bound=RunInMemory)
FindRun = Callable[[Offset, Offset], R | None]
"""`find(base, end)`: the batches of the newest epoch from one offset on, as far as one message has
room for them and no farther than to the other offset; if they can be had."""

# Made for every batch: calling the class takes twice the time.
_position: Final = partial(tuple.__new__, Position)


class SteadyReady(NamedTuple, Generic[R]):
    """A `Ready` that has at most one run for some followers, and nothing to be written. As long as
    it has one, there may be more."""

    token: int
    """As in `Ready`."""
    committed: Position | None
    """As in `Ready`."""
    to: tuple[NodeId, ...]
    """The followers that get `run`: an `AppendRequest` each, that begins where the run does."""
    run: R | None


def take_ready(group: Group, find: FindRun[R]) -> SteadyReady[R] | None:
    """In place of `Group.take_ready`, of a leader, or of a replica that has only heard what is
    committed; `None` if there is more to do than that."""
    role = group.role
    if not group.is_quiet:
        return None
    if type(role) is not Leader:
        return SteadyReady(*group.take_quiet(), (), None)
    last, window_bytes = group.shape.last, group.limits.window_bytes
    after: Position | None = None
    to: list[NodeId] = []
    for node, progress in role._progress.items():
        begin = progress.next
        if not progress.is_steady:
            if progress.wants(last) and progress.may_send(window_bytes):
                return None
        elif begin != last and progress.bytes_in_flight < window_bytes:
            if begin[0] != last[0] or after not in (None, begin):
                return None
            after = begin
            to.append(node)
    run = None
    if after is not None:
        if after[1] < group.shape.start_offset:
            return None
        run = find(after[1], last[1])
        if run is None:
            return None
        end, size_bytes = _position((last[0], run.end_offset)), len(run.records)
        for node in to:
            role._progress[node].sent(end, size_bytes)
    token, committed = group.take_quiet()
    return SteadyReady(token, committed, tuple(to), run)


def may_take(group: Group, source: NodeId, epoch: int, prev: int) -> bool:
    """Whether a run of `epoch` from `prev` on, which `source` sends, is what a follower waits for:
    it goes behind the log's last entry, and nothing else follows from it.
    """
    last, role = group.shape.last, group.role
    return (
        last[1] == prev
        and last[0] == epoch == group.epoch
        and group.leader == source
        and (not group.has_ready or group.is_quiet)
        and group.is_clean
        and type(role) is Follower
        and role.is_in_step
    )


def take_in(group: Group, end: Offset, committed: Offset) -> tuple[int, Position | None]:
    """In place of receiving it: the run up to `end` is in the log, of this epoch.

    The token with which it is durable, and what is committed if that has moved. To be acknowledged
    once the token is persisted.
    """
    role = group.role
    assert isinstance(role, Follower)
    group.extend(end, is_durable=False)
    heard = max(_position((group.epoch, committed)), role._leader_committed)
    group.commit_to(min(heard, group.shape.last))
    return group.take_quiet()


def acknowledged(group: Group, source: NodeId, epoch: int, prev: Offset, match: Offset) -> bool:
    """In place of receiving an `AppendResponse` of a clean follower, to a run of this epoch."""
    role = group.role
    if type(role) is not Leader or epoch != group.epoch or role.successor is not None:
        return False
    progress, shape = role._progress.get(source), group.shape
    if progress is None or progress.held.clean_at is not None:
        return False
    position = _position((epoch, match))
    if position != shape.last and not shape.contains(position):
        return False
    # What is committed already cannot make more of it so.
    if progress.succeeded(_position((epoch, prev)), position) and position > group.committed:
        role._commit(group)
    if progress.wants(shape.last):
        group.has_ready = True
    return True


def persisted(group: Group, token: int) -> None:
    """In place of `Group.persisted`."""
    group.note_durable(token)
    role = group.role
    # A leader that holds no more than is committed makes no more of it so.
    if group.failure is None and (type(role) is not Leader or group.durable > group.committed):
        role.persisted(group)
