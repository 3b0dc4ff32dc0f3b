"""The cluster's metadata as its group's log gives them: committed batches in, outcomes out.

Each command is a record, whose value is the command's bytes; most have a batch to themselves. What
is in the log before `applied` is in the state, on every broker alike; a snapshot of the state
stands for it.
"""

from collections.abc import Callable
from typing import Final, TypeAlias
from uuid import UUID

from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    decode_command,
    encode_command,
)
from tidemark.protocol.errors import CorruptBatch, RequestError, StorageError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.records.records import Record, decode_batch, encode_batch
from tidemark.protocol.types import ORIGIN, BytesLike, Offset, Position
from tidemark.protocol.values import dataclass

CLUSTER_TOPIC: Final = "__cluster"
"""The name of the group's log. No topic that clients see has it."""
CLUSTER_ID: Final = UUID(int=1)
"""What stands for a topic id in the group's key; ids of topics are drawn and not counted."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of the command that ends at `position` in the log."""

    position: Position
    command: Command
    result: Applied | RequestError


Listener: TypeAlias = Callable[[Outcome], None]


class ClusterMachine:
    """The state, and how far into the log it goes."""

    def __init__(self) -> None:
        self.state = ClusterState()
        self.position = ORIGIN
        """All commands up to it are in the state."""
        self._snapshots: dict[Offset, bytes] = {Offset(0): b""}
        self.on_applied: Listener = _ignore
        """Called with each command that was applied, or refused."""
        self.on_restored: Callable[[bytes, Position], None] = _nothing
        """Called when the state has been replaced as a whole, with the snapshot that it is now."""

    @property
    def applied(self) -> Offset:
        """Where the next command begins."""
        return self.position.offset

    def apply(self, header: BatchHeader, batch: BytesLike) -> None:
        """Take the next committed batch in. Raises `StorageError` if this broker cannot read it.

        One that is in the state already is passed over: a log is read again from its start.
        """
        if header.next_offset <= self.applied:
            return
        assert header.base_offset == self.applied, "commands are applied in order, none left out"
        try:
            records = decode_batch(batch, header)
        except CorruptBatch as error:
            raise StorageError(f"the metadata at offset {header.base_offset}: {error}") from error
        for record in records:
            command = decode_command(record.value or b"")
            result: Applied | RequestError
            try:
                result = self.state.apply(command)
            except RequestError as error:
                result = error
            self.position = Position(header.partition_leader_epoch, Offset(record.offset + 1))
            self.on_applied(Outcome(self.position, command, result))

    def snapshot_at(self, start: Offset) -> bytes:
        """The snapshot at the log's start, for a replica that needs what is below it."""
        return self._snapshots[start]

    def keep_snapshot(self, snapshot: bytes, start: Offset) -> None:
        """The log may begin at `start` from now on, for there is this snapshot."""
        self._snapshots[start] = snapshot

    def drop_snapshots(self, start: Offset) -> None:
        """The log begins at `start`: what is older is of no use."""
        self._snapshots = {at: data for at, data in self._snapshots.items() if at >= start}

    def restore(self, snapshot: bytes, start: Position) -> None:
        """Go on from a snapshot of the log's start; an empty one is the state before any command.

        Raises `StorageError` if it cannot be read, and then nothing has changed.
        """
        self.state = ClusterState.decode(snapshot) if snapshot else ClusterState()
        self.position = start
        self._snapshots = {start.offset: snapshot}
        self.on_restored(snapshot, start)


def command_batch(*commands: Command, now_ms: int) -> bytearray:
    """The batch to be appended for commands, a record each; offset and epoch are written there."""
    records = [Record(timestamp_ms=now_ms, value=encode_command(each)) for each in commands]
    return bytearray(encode_batch(records))


def _ignore(_outcome: Outcome) -> None:
    pass


def _nothing(_snapshot: bytes, _start: Position) -> None:
    pass
