"""What a core believes, held against what is so.

A core that believes something wrong has not lost anything yet, and most runs end before it does.
So this does not wait for the loss: it asks at once whether what a replica takes for durable is on
its disk, and whether what a leader takes its followers to hold is on theirs.
"""

from __future__ import annotations

from tidemark.partitions.raft.epochs import LogShape
from tidemark.protocol.types import NodeId, Position
from tidemark.testing.checkers.lineage import Lineage
from tidemark.testing.checkers.violation import Violation


def check_durable(group: str, node: NodeId, durable: Position, disk: Lineage) -> None:
    """A replica takes its own log for durable up to there."""
    if durable.epoch >= 0 and not holds(disk, durable):
        what = f"{node} takes {durable} for durable; its disk has {disk}"
        raise Violation("what a core takes for durable is", group, what)


def check_in_log(group: str, node: NodeId, durable: Position, log: LogShape) -> None:
    """What a replica takes for durable is its own: not what it has cut since, though a disk that is
    about to hear of the cut may still have that."""
    if durable.epoch >= 0 and durable > log.start and not log.contains(durable):
        what = f"{node} takes {durable} for durable; its log ends at {log.last}"
        raise Violation("what a core takes for durable is in its log", group, what)


def check_match(
    group: str, leader: NodeId, follower: NodeId, match: Position, disk: Lineage
) -> None:
    """A leader takes a follower to hold its log durably up to there."""
    if match.epoch >= 0 and not holds(disk, match):
        what = f"{leader} takes {follower} to hold {match}; its disk has {disk}"
        raise Violation("a follower holds what its leader believes", group, what)


def check_next(
    group: str, leader: NodeId, follower: NodeId, match: Position, next_: Position
) -> None:
    """What a leader sends next begins at or behind what it knows to be there."""
    if next_ < match:
        what = f"{leader} sends {follower} what follows {next_}, and {match} is there"
        raise Violation("next is not below match", group, what)


def holds(log: Lineage, position: Position) -> bool:
    """Like `contains`, and true of what lies below a log's start: there it is not known."""
    return log.contains(position) or bool(log.starts and position < log.starts[0])
