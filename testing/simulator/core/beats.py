"""What a replica of the core's layer has heard of who leads, as real ones do by heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset, Position

if TYPE_CHECKING:
    from tidemark.testing.simulator.core.process import CoreProcess


class Beat(NamedTuple):
    """What a heartbeat says of the group."""

    epoch: Epoch
    leads: bool
    committed: Position


class HeardBeat:
    """The newest, and whose."""

    __slots__ = ("_by", "_source", "beat")

    def __init__(self) -> None:
        self.beat = Beat(NO_EPOCH, False, Position(NO_EPOCH, Offset(0)))
        self._source: NodeId | None = None
        self._by: CoreProcess | None = None

    def take(self, sender: CoreProcess, beat: Beat) -> bool:
        """Whether it is as new as what was heard."""
        heard = self.beat
        # Within an epoch, "no more" is final.
        if (beat.epoch, not beat.leads) < (heard.epoch, not heard.leads):
            return False
        self.beat, self._source, self._by = beat, sender.node_id, sender
        return True

    def came_alive(self, process: CoreProcess) -> bool:
        """Whether this process, which is there again, was heard to lead. Another life of it was not
        this one."""
        if self._source != process.node_id:
            return False
        if self._by is not process:
            self.beat = self.beat._replace(leads=False)
        return self.beat.leads

    def leads_no_more(self, leader: NodeId, epoch: Epoch) -> bool:
        """Whether who is said to lead in this epoch was heard to have resigned, or another to lead
        a later epoch."""
        beat = self.beat
        has_resigned = self._source == leader and not beat.leads and epoch == beat.epoch
        return has_resigned or epoch < beat.epoch
