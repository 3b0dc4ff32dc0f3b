"""Snapshots of the metadata: the log begins where there is one, whatever a crash leaves."""

from dataclasses import dataclass, field
from functools import partial

import pytest

from tests.broker.fake_cluster import FakeGroup
from tidemark.broker.metadata import cluster_snapshots
from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.metadata.cluster_snapshots import ClusterSnapshots, keep_received, restore
from tidemark.partitions.state_machines.cluster_commands import AllocateProducerIds
from tidemark.partitions.state_machines.cluster_machine import ClusterMachine, command_batch
from tidemark.partitions.storage.state_db import GroupSnapshot, PartitionState, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, NodeId, Offset, Position


@dataclass
class FakeLog:
    log_start: Offset = field(default=Offset(0))
    fails: bool = False
    failure: str | None = None

    async def give_up_below(self, offset: Offset) -> None:
        if self.fails:
            raise OSError("no room")
        self.log_start = offset


@dataclass
class Durability:
    waits: int = 0

    async def wait(self) -> None:
        self.waits += 1


def filled(group: FakeGroup, count: int) -> None:
    for _ in range(count):
        version = group.machine.state.version
        command = AllocateProducerIds(at_version=version, node_id=NodeId(1), count=1)
        group.append_own(bytes(command_batch(command, now_ms=1)))
        group.commit()


async def test_a_snapshot_moves_the_logs_start_and_is_what_the_next_start_begins_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_snapshots, "COMMANDS_MAX", 3)
    group, log, state, durability = FakeGroup(), FakeLog(), StateDb.open(":memory:"), Durability()
    snapshots = ClusterSnapshots(group.machine, state, log, durability.wait)
    filled(group, 2)
    assert not snapshots.is_due
    filled(group, 1)
    due = [snapshots.is_due]
    await snapshots.take()
    due.append(snapshots.is_due)
    assert due == [True, False]
    assert (log.log_start, durability.waits) == (3, 1)
    assert group.machine.snapshot_at(Offset(3)) == group.machine.state.encode()
    restarted = ClusterMachine()
    restore(restarted, state)
    assert restarted.position == group.machine.position
    assert restarted.state.encode() == group.machine.state.encode()


def test_there_is_no_snapshot_of_what_is_applied_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may end in the middle of a batch: the next start would not know how to go on."""
    monkeypatch.setattr(cluster_snapshots, "COMMANDS_MAX", 1)
    group, log, state = FakeGroup(), FakeLog(), StateDb.open(":memory:")
    snapshots = ClusterSnapshots(group.machine, state, log, Durability().wait)
    filled(group, 2)
    before, log.failure = snapshots.is_due, "a newer version wrote it"
    assert (before, snapshots.is_due) == (True, False)


async def test_a_log_that_was_not_moved_yet_is_moved_by_the_next_start() -> None:
    group, log, state = FakeGroup(), FakeLog(fails=True), StateDb.open(":memory:")
    state.save([PartitionState(key=CLUSTER_KEY, name="__cluster-0")])
    snapshots = ClusterSnapshots(group.machine, state, log, Durability().wait)
    filled(group, 3)
    with pytest.raises(OSError, match="no room"):
        await snapshots.take()
    assert group.machine.snapshot_at(Offset(0)) == b"", "the log still begins there"
    restarted = ClusterMachine()
    restore(restarted, state)
    assert state.partition_states()[CLUSTER_KEY].log_start == restarted.applied == 3


async def test_a_reset_brings_its_snapshot_and_an_older_one_does_not_replace_it() -> None:
    group, log, state = FakeGroup(), FakeLog(), StateDb.open(":memory:")
    other = FakeGroup()
    filled(other, 9)
    filled(group, 2)

    async def be_reset() -> None:
        start = Position(Epoch(4), Offset(9))
        log.log_start = Offset(9)
        group.machine.restore(other.machine.state.encode(), start)

    snapshots = ClusterSnapshots(group.machine, state, log, be_reset)
    group.machine.on_received = partial(keep_received, state)
    await snapshots.take()
    stored = state.group_snapshot(CLUSTER_KEY)
    assert stored is not None
    assert stored.position == Position(Epoch(4), Offset(9))
    assert stored.data == other.machine.state.encode()
    assert log.log_start == 9


def test_a_snapshot_that_is_missing_is_missed() -> None:
    state = StateDb.open(":memory:")
    restore(ClusterMachine(), state)
    state.save([PartitionState(key=CLUSTER_KEY, name="__cluster-0", log_start=Offset(5))])
    with pytest.raises(StorageError, match="snapshot of what was before is missing"):
        restore(ClusterMachine(), state)
    state.save_group_snapshot(CLUSTER_KEY, GroupSnapshot(Position(Epoch(1), Offset(5)), b"x"))
    with pytest.raises(StorageError):
        restore(ClusterMachine(), state)
