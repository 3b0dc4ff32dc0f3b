"""The cluster's metadata as its group's log gives them: committed batches in, outcomes out.

Each command is a record, whose value is the command's bytes; most have a batch to themselves. What
is in the log before `applied` is in the state, on every broker alike; a snapshot of the state
stands for it.

Brokers of different versions may share a log for a while. One that meets what it does not know goes
no further: it would have another state than the others from there on, and keep it in a snapshot. It
goes on when it has been upgraded, from where it stopped.
"""

from collections.abc import Callable
from typing import Final, TypeAlias
from uuid import UUID

from tidemark.partitions.state_machines.cluster import Applied, ClusterState, VersionConflict
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
METADATA_TOPICS: Final = frozenset({CLUSTER_TOPIC, "__cluster_metadata"})
"""Its names, the own one and Kafka's."""
CLUSTER_ID: Final = UUID(int=1)
"""What stands for a topic id in the group's key; ids of topics are drawn and not counted."""

_ADVICE: Final = (
    "Run the newest version here that runs on any broker of the cluster: it goes on from there"
)


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
        self.on_received: Callable[[bytes, Position], None] = _nothing
        """Called with the snapshot of another replica that the log begins with from now on."""
        self.on_restored: Callable[[], None] = _no_one
        """Called when the state has been replaced as a whole."""

    @property
    def applied(self) -> Offset:
        """Where the next command begins."""
        return self.position.offset

    def apply(self, header: BatchHeader, batch: BytesLike) -> None:
        """Take the next committed batch in. Raises `StorageError` if this broker cannot read it, or
        go by it; a batch that cannot be read is not begun with.

        One that is in the state already is passed over: a log is read again from its start.
        """
        if header.next_offset <= self.applied:
            return
        assert header.base_offset == self.applied, "commands are applied in order, none left out"
        for command, end_offset in _commands(header, batch):
            result = self._apply(command, end_offset)
            self.position = Position(header.partition_leader_epoch, end_offset)
            self.on_applied(Outcome(self.position, command, result))

    def _apply(self, command: Command, end_offset: Offset) -> Applied | RequestError:
        try:
            return self.state.apply(command)
        except VersionConflict as error:
            return error
        except RequestError as error:
            # Who appended it has checked it, on this very state.
            raise StorageError(
                f"the metadata at offset {end_offset - 1}: the broker that led them took a "
                f"{type(command).__name__} that this version of Tidemark refuses ({error.message})"
                f". {_ADVICE}"
            ) from error

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

        Raises `StorageError` if it cannot be read; then the state has not changed, and who can read
        it may have it.
        """
        self.on_received(snapshot, start)
        self.state = ClusterState.decode(snapshot) if snapshot else ClusterState()
        self.position = start
        self._snapshots = {start.offset: snapshot}
        self.on_restored()


def command_batch(*commands: Command, now_ms: int) -> bytearray:
    """The batch to be appended for commands, a record each; offset and epoch are written there."""
    records = [Record(timestamp_ms=now_ms, value=encode_command(each)) for each in commands]
    return bytearray(encode_batch(records))


def _commands(header: BatchHeader, batch: BytesLike) -> list[tuple[Command, Offset]]:
    """Each with the offset behind it; all of them can be read."""
    try:
        return [
            (decode_command(record.value or b""), Offset(record.offset + 1))
            for record in decode_batch(batch, header)
        ]
    except CorruptBatch as error:
        raise StorageError(f"the metadata at offset {header.base_offset}: {error}") from error
    except StorageError as error:
        raise StorageError(
            f"the metadata at offset {header.base_offset} have {error}. {_ADVICE}"
        ) from error


def _ignore(_outcome: Outcome) -> None:
    pass


def _no_one() -> None:
    pass


def _nothing(_snapshot: bytes, _start: Position) -> None:
    pass
