"""Replicas that may have forgotten what they promised, and when a leader counts them again.

A replica whose journal was damaged may have lost entries that it acknowledged, as one whose page
cache is gone. But it may also have forgotten *epochs* and *votes*. It is in doubt then, and says so
with every answer to a leader, and in which of its lives. To have all that a leader has does not end
that: the leader may have been deposed long ago, with the very vote that was forgotten, and the two
would acknowledge what the next leader never sees.

**In elections**, the vote of a replica in doubt counts as that of an unclean one: towards the vote
of all, never towards a majority. If all vote for one candidate in an epoch, so does whoever else
was given the forgotten vote in it; and who stands in a later epoch does not vote in an earlier one.

**In commits**, nobody in doubt counts, not even a leader, until an entry that is *newer than the
doubt* (appended by a leader that knew of it, in its own epoch) is held by a majority of which
nobody is in doubt, or by all who vote. Let q be that entry, L the leader and f the epoch that it is
of, and let P be in doubt.

1. *A later epoch e > f, for whose candidate X a forgotten vote of P counts.* X needs others for a
   majority too, and one of them holds q: two majorities of the same voters share more than P if one
   of them is without P, and so do a majority and all. That one took q while its epoch was f, so it
   votes in e only later, and only for a log with q or a later entry. X has none: P voted for it
   before the damage, and q came after that. Nor had a leader between f and e given X a later one:
   its majority, too, would share somebody with those who then took q in f. So X has not won, and
   will not, whatever P does in f or votes for from then on.
2. *Epoch f.* It has its leader. P counts as having voted in it, for itself if for nobody it knows
   of, and that is durable before P takes itself for sure again.
3. *Earlier epochs.* P is in f, and neither votes nor acknowledges in them any more.
4. *Entries that P acknowledged and lost.* As for unclean replicas: what is committed is in L's log,
   unless it was committed in a later epoch, which there is not (1). P counts once it has L's log up
   to q.

Voters that come and go do not change that: a configuration is an entry, neighbouring ones share
majorities on each side, and whoever lacks a committed one has too short a log to win. Where nobody
appends anything, the leader opens a new epoch in its own favour, once those in doubt have all of
the log and enough others live. So does one that will be no voter: it hands over to nobody who is in
doubt, for he could not campaign, and if all heirs are, their doubts have to end first.

If a majority is in doubt at once, an epoch may be known to nobody else. Then what that majority
alone had is lost, and nobody can tell. A leader is elected by all, and it is said that it may lack
something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from tidemark.partitions.raft.progress import Progress
from tidemark.protocol.types import NodeId, Position

if TYPE_CHECKING:
    from tidemark.partitions.raft.group import Group

Doubts = tuple[tuple[NodeId, int], ...]
NONE: Final[Doubts] = ()


def held_by_all(group: Group, progress: Mapping[NodeId, Progress]) -> Position:
    """The highest position that every voter holds durably, whoever is in doubt."""
    me = group.node_id
    return min(
        group.durable if node == me else progress[node].held.match for node in group.config.members
    )


def end_doubts(group: Group, progress: Mapping[NodeId, Progress]) -> bool:
    """Something of this leader's epoch has been committed: those count to whose doubt it is newer.

    Returns whether any doubt is left.
    """
    if group.in_doubt:  # this epoch began after it: its start is new enough
        group.end_doubt()
    is_left = False
    for each in progress.values():
        held = each.held
        if held.doubted_at is not None:
            if group.committed > held.doubted_at:
                held.end_doubt(group.committed)
            else:
                is_left = True
    return is_left


def doubted(progress: Mapping[NodeId, Progress]) -> Iterable[NodeId]:
    """Those who wait for something that is newer than their doubt."""
    return (node for node, each in progress.items() if each.held.doubted_at is not None)


def doubts_of(progress: Mapping[NodeId, Progress]) -> Doubts:
    """What the next epoch of the same leader is to know: who is in doubt, in which life."""
    return tuple((node, each.held.life) for node, each in progress.items() if each.held.is_doubtful)


def needs_an_entry(group: Group, progress: Mapping[NodeId, Progress]) -> bool:
    """Whether doubts wait for nothing but an entry, and enough voters live to commit one."""
    last, is_alive = group.shape.last, group.peers.is_alive
    if group.committed != last or not any(
        is_alive(node) and progress[node].held.match == last for node in doubted(progress)
    ):
        return False

    def counts(node: NodeId) -> bool:
        return is_alive(node) and (node == group.node_id or progress[node].held.clean_at is None)

    config = group.config
    return config.agreed(counts) or all(map(is_alive, config.members))
