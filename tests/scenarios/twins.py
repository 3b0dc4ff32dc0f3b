"""Both ways at once: whatever a group takes the long way, a copy of it takes the short one.

`raft.steady` may say that it is not for a case; then it must have done nothing. Else the two must
be the same afterwards, to the last field, and have said the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from tidemark.partitions.raft import steady
from tidemark.partitions.raft.entries import Run
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.leader import Leader
from tidemark.partitions.raft.messages import AppendRequest, AppendResponse, Message
from tidemark.partitions.raft.ready import Outgoing, Ready
from tidemark.partitions.replication.steady_messages import AnswerRow, RowKey
from tidemark.protocol.types import NodeId, Offset, Position

_ROW = RowKey(b"the group's")


def state_of(value: object) -> object:
    """All that an object of the core holds, as values that can be compared."""
    slots = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    if isinstance(value, tuple) or not slots:
        if isinstance(value, list | tuple):
            return [state_of(each) for each in value]
        if isinstance(value, dict):
            return {key: state_of(each) for key, each in value.items()}
        return value
    shared = {"peers", "limits", "read"}
    state = {name: state_of(getattr(value, name)) for name in slots if name not in shared}
    return type(value).__name__, state


def twin_of(group: Group) -> Group:
    """A copy that shares only what the group is given."""
    shared = (group.peers, group.limits, group.read)
    reads_from = getattr(group.read, "__self__", None)
    memo: dict[int, Any] = {id(each): each for each in (*shared, reads_from)}  # Any: as deepcopy's
    return deepcopy(group, memo)


@contextmanager
def both_ways() -> Iterator[Counter[str]]:
    """In this block every group goes both ways; counts how often the short one was for it."""
    counts: Counter[str] = Counter()
    receive, take_ready = Group.receive, Group.take_ready

    def received(group: Group, source: NodeId, message: Message) -> None:
        if not isinstance(message, AppendRequest | AppendResponse):
            receive(group, source, message)
            return
        twin, before = twin_of(group), state_of(group)
        taken, is_answered = None, False
        if isinstance(message, AppendRequest):
            taken = _take_in(twin, source, message)
        else:
            is_answered = _acknowledge(twin, source, message)
        receive(group, source, message)
        if is_answered:
            counts["acknowledged"] += 1
            assert state_of(twin) == state_of(group)
        elif taken is not None:
            assert isinstance(message, AppendRequest)
            counts["taken in"] += 1
            drained = twin_of(group)
            ready = take_ready(drained)
            assert not drained.has_ready
            assert state_of(twin) == state_of(drained)
            row = AnswerRow(_ROW, message.epoch, message.prev.offset, twin.shape.end_offset)
            answer = replace(row.message, life=group.life)  # which a row does not say
            assert ready == Ready(
                token=taken[0],
                entries=message.entries,
                send_after=(Outgoing(source, answer),),
                committed=taken[1],
            )
        else:
            assert state_of(twin) == before, "it was not for this, and has done something"

    def taken_ready(group: Group) -> Ready:
        twin, before = twin_of(group), state_of(group)
        short = steady.take_ready(twin, lambda base, end: _find(group, base, end))
        long = take_ready(group)
        if short is None:
            assert state_of(twin) == before, "it was not for this, and has done something"
            return long
        is_leader = isinstance(group.role, Leader)
        what = "sent" if short.run is not None else "committed" if is_leader else "heard of"
        counts[what] += 1
        assert state_of(twin) == state_of(group)
        committed = group.committed.offset
        sent = () if short.run is None else (request_of(short.run, committed),)
        assert long == Ready(
            token=short.token,
            committed=short.committed,
            send=tuple(Outgoing(node, request) for node in short.to for request in sent),
        )
        return long

    with patch.object(Group, "receive", received), patch.object(Group, "take_ready", taken_ready):
        yield counts


def request_of(run: Run, committed: Offset) -> AppendRequest:
    """What a leader sends of a run to those that end where it begins."""
    prev = Position(run.epoch, run.base_offset)
    return AppendRequest(run.epoch, prev, (run,), Position(run.epoch, committed))


def _take_in(
    group: Group, source: NodeId, message: AppendRequest
) -> tuple[int, Position | None] | None:
    """As the lane does with what travels as a row."""
    epoch, entries = message.epoch, message.entries
    if len(entries) != 1 or message.clean_at is not None or message.committed.epoch != epoch:
        return None
    run = entries[0]
    if not isinstance(run, Run) or not (run.epoch == message.prev.epoch == epoch):
        return None
    if not steady.may_take(group, source, epoch, message.prev.offset):
        return None
    if run.base_offset != message.prev.offset or run.end_offset <= run.base_offset:
        return None  # which is looked at with the bytes
    return steady.take_in(group, run.end_offset, message.committed.offset)


def _acknowledge(group: Group, source: NodeId, message: AppendResponse) -> bool:
    epoch, match = message.epoch, message.match
    is_row = message.is_clean and match is not None and message.prev.epoch == epoch == match.epoch
    role = group.role
    if isinstance(role, Leader) and source in role._progress:
        is_row &= message.life == role._progress[source].held.life
    if not is_row or match is None:
        return False
    return steady.acknowledged(group, source, epoch, message.prev.offset, match.offset)


def _find(group: Group, base: Offset, end: Offset) -> Run | None:
    after = group.shape.last._replace(offset=base)
    found = group.read(after, group.shape.last, group.limits.append_bytes_max)
    run = found[0] if len(found) == 1 else None
    is_all = isinstance(run, Run) and (run.base_offset, run.end_offset) == (base, end)
    return run if is_all and isinstance(run, Run) else None
