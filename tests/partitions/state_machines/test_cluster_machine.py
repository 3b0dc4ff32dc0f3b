"""The metadata's log: batches in order give the state, from the start and from a snapshot."""

import pytest

from tidemark.partitions.state_machines.cluster import VersionConflict
from tidemark.partitions.state_machines.cluster_commands import (
    AllocateProducerIds,
    Command,
    FoundCluster,
    ProducerIdBlock,
    SetGroupConfigs,
    encode_command,
)
from tidemark.partitions.state_machines.cluster_machine import (
    ClusterMachine,
    Outcome,
    command_batch,
)
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import place, read_header
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset, Position


def feed(machine: ClusterMachine, command: Command, *, at: int, epoch: int = 3) -> None:
    batch = command_batch(command, now_ms=7)
    place(batch, 0, base_offset=Offset(at), epoch=Epoch(epoch))
    machine.apply(read_header(batch), batch)


def allocate(version: int) -> AllocateProducerIds:
    return AllocateProducerIds(at_version=version, node_id=NodeId(1), count=10)


def test_commands_are_applied_and_their_outcomes_told_with_their_positions() -> None:
    machine, told = ClusterMachine(), list[Outcome]()
    machine.on_applied = told.append
    feed(machine, FoundCluster(at_version=0, cluster_id="ours"), at=0)
    feed(machine, allocate(0), at=1, epoch=4)
    feed(machine, allocate(1), at=2, epoch=4)
    assert [each.position for each in told] == [
        Position(Epoch(3), Offset(1)),
        Position(Epoch(4), Offset(2)),
        Position(Epoch(4), Offset(3)),
    ]
    assert told[0].result is None
    assert isinstance(told[1].result, VersionConflict)
    assert isinstance(told[2].result, ProducerIdBlock)
    assert (machine.applied, machine.state.version) == (3, 2)


def test_a_snapshot_stands_for_the_log_before_it() -> None:
    machine, restored = ClusterMachine(), ClusterMachine()
    commands: list[Command] = [FoundCluster(at_version=0, cluster_id="x"), allocate(1)]
    for at, command in enumerate(commands):
        feed(machine, command, at=at)
    restored.restore(machine.state.encode(), machine.position)
    assert restored.snapshot_at(Offset(2)) == machine.state.encode()
    feed(restored, allocate(1), at=1)
    assert restored.state.version == 2, "what is in the snapshot is not applied again"
    for each in (machine, restored):
        feed(each, allocate(2), at=2)
    assert restored.state.encode() == machine.state.encode()


def test_an_empty_snapshot_is_the_state_before_any_command() -> None:
    machine, calls = ClusterMachine(), list[object]()
    assert machine.snapshot_at(Offset(0)) == b""
    feed(machine, allocate(0), at=0)
    machine.on_received = lambda _, start: calls.append(start)
    machine.on_restored = lambda: calls.append(machine.state.version)
    machine.restore(b"", ORIGIN)
    assert (machine.applied, calls) == (0, [ORIGIN, 0])


def test_what_cannot_be_read_is_not_passed_over() -> None:
    machine = ClusterMachine()
    batch = encode_batch([Record(value=b'{"do": "SomethingNewer"}')])
    with pytest.raises(StorageError, match="cannot be read"):
        machine.apply(read_header(batch), batch)
    damaged = bytearray(encode_batch([Record(value=b"{}")]))
    damaged[-1] ^= 1
    with pytest.raises(StorageError, match="offset 0"):
        machine.apply(read_header(damaged), damaged)
    with pytest.raises(StorageError):
        machine.restore(b"nonsense", Position(Epoch(1), Offset(5)))
    assert machine.applied == 0


def test_a_batch_is_not_begun_with_where_a_newer_version_wrote_one_of_its_commands() -> None:
    machine = ClusterMachine()
    known = encode_command(allocate(0))
    batch = encode_batch([Record(value=known), Record(value=b'{"do": "SomethingNewer"}')])
    with pytest.raises(StorageError, match=r"knows no SomethingNewer.*newest version"):
        machine.apply(read_header(batch), batch)
    assert (machine.applied, machine.state.version) == (0, 0)


def test_what_the_leader_took_and_this_version_refuses_is_not_passed_over() -> None:
    """Else this broker would refuse all that follows, and keep it in a snapshot."""
    machine, told = ClusterMachine(), list[Outcome]()
    machine.on_applied = told.append
    newer = SetGroupConfigs(at_version=0, group_id="g", configs={"consumer.naps": "7"})
    with pytest.raises(StorageError, match=r"offset 0.* took a SetGroupConfigs.*newest version"):
        feed(machine, newer, at=0)
    assert (machine.applied, machine.state.version, told) == (0, 0, [])


def test_a_snapshot_is_handed_on_before_it_is_known_whether_it_can_be_read() -> None:
    machine, received, start = ClusterMachine(), list[bytes](), Position(Epoch(1), Offset(5))
    machine.on_received = lambda snapshot, _: received.append(snapshot)
    with pytest.raises(StorageError, match="format 99"):
        machine.restore(b'{"format":99}', start)
    assert (received, machine.applied) == ([b'{"format":99}'], 0)


def test_the_snapshot_at_the_logs_start_is_there_until_the_log_has_moved() -> None:
    machine = ClusterMachine()
    feed(machine, allocate(0), at=0)
    machine.keep_snapshot(machine.state.encode(), machine.applied)
    assert machine.snapshot_at(Offset(0)) == b""
    machine.drop_snapshots(Offset(1))
    assert machine.snapshot_at(Offset(1)) == machine.state.encode()
    with pytest.raises(KeyError):
        machine.snapshot_at(Offset(0))
