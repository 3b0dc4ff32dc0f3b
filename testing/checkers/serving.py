"""What a replica may answer to clients, and when."""

from typing import Final

from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.checkers.violation import Violation

HELD_SECONDS_MAX: Final = 1.25
"""Half a second until the lead is given up, as long again until it is known who has it, and what
timers are late by."""


def check_serves(group: str, node: NodeId, epoch: Epoch, committed: Position) -> None:
    """A leader serves only once something of its own epoch is committed.

    Until then it does not know how far its predecessors had committed.
    """
    if committed.epoch != epoch:
        what = f"{node} serves in epoch {epoch} with {committed} committed"
        raise Violation("serves after its own epoch's commit", group, what)


def check_watermark(group: str, node: NodeId, watermark: Offset, end: Offset) -> None:
    if watermark > end:
        what = f"{node} has a high watermark of {watermark} and a log end of {end}"
        raise Violation("the high watermark is in the log", group, what)


def check_observer(group: str, node: NodeId, log: Position, committed: Position) -> None:
    """What an observer has is committed."""
    if log > committed:
        what = f"{node} observes {log}, and {committed} is committed"
        raise Violation("an observer holds only what is committed", group, what)


def check_goes_on(group: str, node: NodeId, lost: NodeId, successor: NodeId | None) -> None:
    """A leader has lost another broker: it takes nothing while it hands over, and does not wait
    for one that it knows to be gone."""
    if successor == lost:
        what = f"{node} takes nothing, for {lost} is to lead, which it has lost"
        raise Violation("no hand-over waits for who is gone", group, what)


def check_tells_leader(group: str, node: NodeId, leader: NodeId | None) -> None:
    """Writes are held at a replica that does not lead: only while it knows of nobody who does."""
    if leader is not None:
        what = f"{node} holds writes, and knows that {leader} leads"
        raise Violation("who waits is told who leads", group, what)


def check_held(group: str, seconds: float) -> None:
    """Writes are held while the lead goes elsewhere, and soon taken or sent on."""
    if seconds > HELD_SECONDS_MAX:
        what = f"they are held for {seconds:.3f} s"
        raise Violation("writes are not held for long", group, what)
