"""The judges of the core's group, told of what the played disks have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidemark.partitions.raft.entries import EpochStart, Run
from tidemark.partitions.raft.messages import HardState, ResetRequest
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import NodeId, Offset, Position
from tidemark.testing.simulator.core.log import Write
from tidemark.testing.simulator.group_judge import GroupJudge, positions

if TYPE_CHECKING:
    from tidemark.testing.simulator.core.process import CoreProcess


class CoreJudge(GroupJudge["CoreProcess"]):
    """Of the one group."""

    def batches(self, replica: CoreProcess, start: Offset, end: Offset) -> Iterable[BatchHeader]:
        return replica.log.batches(start, end)

    def has_failed(self, replica: CoreProcess) -> bool:
        return replica.failure is not None

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
