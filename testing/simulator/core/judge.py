"""The judges of the core's group, told of what the played disks have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidemark.partitions.raft.entries import EpochStart, Run
from tidemark.partitions.raft.messages import HandOver, HardState, Message, ResetRequest
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.simulator.core.log import Write
from tidemark.testing.simulator.group_judge import GroupJudge, lineage_of, positions

if TYPE_CHECKING:
    from tidemark.testing.simulator.core.process import CoreProcess


class CoreJudge(GroupJudge["CoreProcess"]):
    """Of the one group."""

    def batches(self, replica: CoreProcess, start: Offset, end: Offset) -> Iterable[BatchHeader]:
        return replica.log.batches(start, end)

    def has_failed(self, replica: CoreProcess) -> bool:
        return replica.failure is not None

    def says(self, node: NodeId, to: NodeId, message: Message) -> None:
        super().says(node, to, message)
        if isinstance(message, HandOver):
            self._hands_over(node, to, message.epoch)

    def _hands_over(self, node: NodeId, to: NodeId, epoch: Epoch) -> None:
        """The epoch's leader tells another to lead, in the turn in which it has found it ready."""
        # One that has gone on to a later epoch, or has lost something, does not heed it.
        has_lost = to in self._gone or to in self._returned or to in self._in_doubt
        if self.is_journaled and not has_lost and self.elections.durable_epoch(to) <= epoch:
            last = lineage_of(self._replicas[node]).last
            self.durable_logs.check_told_to_lead(node, to, last)

    def synced(self, node: NodeId, write: Write) -> None:
        """A write has reached the node's disk."""
        if isinstance(write, HardState):
            self.elections.durable(node, write)
        elif self.is_journaled:
            log = self.durable_logs.of(node)
            match write:
                case EpochStart():
                    log.begin(write.position)
                case Run():
                    log.extend(write.position)
                case Position():
                    log.truncate(write)
                case ResetRequest():
                    log.reset(positions(write.table), write.start)
