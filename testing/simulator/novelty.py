"""In how many ways two replicas of a group were seen to stand to each other.

Names and numbers are taken from them, so that there are only so many ways: of each its role,
whether it votes, by the newest voters, others, or while they change, and whether it may have lost
something; of the two, whose epoch is newer, and whether one log goes on where the other ends, or
they part. Runs that see nothing new any more have come to
the end of what they find, whatever their number. (Of all replicas of a group together there are so
many ways that nearly each run sees new ones.)

It is looked at when something of this may just have changed, and draws nothing: a run is the same
with it and without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NewType, TypeAlias

from tidemark.partitions.raft.candidate import Candidate, PreCandidate
from tidemark.partitions.raft.epochs import LogShape
from tidemark.partitions.raft.follower import Follower
from tidemark.partitions.raft.group import Group
from tidemark.partitions.raft.leader import Leader
from tidemark.protocol.types import Epoch, Position

State = NewType("State", int)
"""One of the ways; which number is which matters to nobody."""

COMMON_EACH: Final = 16
"""Most commits change nothing of it, and who hears of a leader is not the only one: one of so many
of these is looked at."""
_NO_LEADER, _FOLLOWS, _ASKS, _STANDS, _OPENS, _LEADS, _HANDS_OVER, _OBSERVES = range(8)
_ROLES: Final = 8
_HARMS: Final = 3
_REPLICAS: Final = _ROLES * _HARMS * 8
_SAME, _BEFORE, _PARTED, _OUT_OF_REACH = range(4)

_Seen: TypeAlias = tuple[Position, int, Epoch, LogShape]


def states_of(replicas: Sequence[Group]) -> Iterator[State]:
    """Of each two of those that run, in any order."""
    if not replicas:
        return
    config = max(replicas, key=_last).shape.config
    seen = []
    for each in replicas:
        own = each.shape.config
        number = _HARMS * _role(each) + (2 if each.in_doubt else not each.is_clean)
        number = 8 * number + 4 * (each.node_id in own.members)
        number += 2 * (own is config or own == config) + bool(own.outgoing)
        seen.append((each.shape.last, number, each.epoch, each.shape))
    seen.sort(key=_order, reverse=True)
    for index, longer in enumerate(seen):
        _, first, epoch, _ = longer
        for shorter in seen[index + 1 :]:
            newer = (shorter[2] > epoch) - (shorter[2] < epoch) + 1
            pair = _REPLICAS * first + shorter[1]
            yield State(16 * pair + 4 * newer + _relation(longer, shorter))


def _role(group: Group) -> int:
    role = group.role
    if isinstance(role, Follower):
        return _NO_LEADER if group.leader is None else _FOLLOWS
    if isinstance(role, Leader):
        if role.successor is not None:
            return _HANDS_OVER
        return _LEADS if group.is_serving else _OPENS
    if isinstance(role, Candidate):
        return _STANDS
    return _ASKS if isinstance(role, PreCandidate) else _OBSERVES


def _relation(longer: _Seen, shorter: _Seen) -> int:
    """Of two logs."""
    (longer_last, _, _, shape), (last, _, _, _) = longer, shorter
    if last == longer_last:
        return _SAME
    if last.offset < shape.start_offset:
        return _OUT_OF_REACH
    is_begun = last.epoch == longer_last.epoch or shape.contains(last)
    return _BEFORE if is_begun else _PARTED


def _last(group: Group) -> Position:
    return group.shape.last


def _order(seen: _Seen) -> tuple[Position, int]:
    return seen[:2]
