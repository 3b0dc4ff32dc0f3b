"""The group of the cluster's metadata, without replication: a test says when it commits."""

from collections.abc import Callable
from dataclasses import dataclass, field

import trio

from tidemark.broker.metadata.cluster_log import ClusterLog
from tidemark.broker.network.turn import Turn
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_commands import Command
from tidemark.partitions.state_machines.cluster_machine import ClusterMachine
from tidemark.protocol.records.header import place, read_header
from tidemark.protocol.types import Epoch, NodeId, Offset


@dataclass(frozen=True)
class Appended:
    end_offset: Offset
    epoch: Epoch


@dataclass
class FakeGroup:
    """One replica's log. `commit` is what the other replicas would do."""

    machine: ClusterMachine = field(default_factory=ClusterMachine)
    is_serving: bool = True
    epoch: Epoch = field(default=Epoch(1))
    leader: NodeId | None = field(default=NodeId(1))
    failure: str | None = None
    commits_at_once: bool = False
    log: list[bytearray] = field(default_factory=list)

    def append_own(self, batches: bytes) -> Appended:
        assert self.is_serving
        batch = bytearray(batches)
        base = read_header(self.log[-1]).next_offset if self.log else Offset(0)
        place(batch, 0, base_offset=base, epoch=self.epoch)
        self.log.append(batch)
        if self.commits_at_once:
            trio.lowlevel.current_trio_token().run_sync_soon(self.commit)
        return Appended(read_header(batch).next_offset, self.epoch)

    def commit(self) -> None:
        """All that is in the log."""
        for batch in self.log:
            self.machine.apply(read_header(batch), batch)


class FollowedCluster:
    """The metadata, changed at once."""

    def __init__(self) -> None:
        self.state = ClusterState()
        self.follow = list[Callable[[], None]]()

    def when_changed(self, callback: Callable[[], None]) -> None:
        self.follow.append(callback)

    def apply(self, command: Command) -> None:
        self.state.apply(command)
        self.change()

    def change(self) -> None:
        for callback in self.follow:
            callback()


class FixedClock:
    def now_ms(self) -> int:
        return 7


def cluster_log(group: FakeGroup, *older: tuple[int, int]) -> ClusterLog:
    """`older` are brokers that are there, with the newest version that they speak."""
    return ClusterLog(
        NodeId(1),
        group,
        group.machine,
        turn=Turn(),
        clock=FixedClock(),
        older_than=lambda version: [NodeId(node) for node, spoken in older if spoken < version],
    )
