"""What a broker does with journal, segments and `state.db`, by the rules, and nothing else.

What happens to a partition is done to its log at once, and its record waits in `staged`; `write`
takes the records to the journal and `sync` makes them durable. What destroys something in a log
waits for its record to be durable.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import NamedTuple
from uuid import UUID

from tests.partitions.storage.batches import batch
from tests.partitions.storage.journal.records import KEY, OTHER
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.epoch_rows import rows_within
from tidemark.partitions.storage.journal import records
from tidemark.partitions.storage.journal.blocks import PAGE_BYTES
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.state_db import (
    PartitionKey,
    PartitionState,
    StateDb,
)
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset, Position
from tidemark.testing.memory_files import MemoryFiles

DATA = "/data"
UNJOURNALED = PartitionKey(UUID(int=7), 2)
"""Its batches are in the page cache only."""
ME = NodeId(1)
VOTERS = Configuration((ME, NodeId(2), NodeId(3)))
SETTINGS = LogSettings(segment_bytes=1000, index_interval_bytes=100)


class Held(NamedTuple):
    """What a replica holds, to be compared."""

    epochs: tuple[EpochStart, ...]
    vote: HardState
    start: Offset
    batches: tuple[bytes, ...]


class Replica:
    """One partition as its owner has it in memory."""

    def __init__(self, state: PartitionState, log: Log) -> None:
        self.key, self.name, self.is_journaled = state.key, state.name, state.is_journaled
        self.condition = state.condition
        self.epochs = list(rows_within(state.epochs, log.end_offset))
        self.vote = state.hard_state
        self.log = log

    @property
    def epoch(self) -> Epoch:
        return self.epochs[-1].epoch if self.epochs else NO_EPOCH

    @property
    def last(self) -> Position:
        return Position(self.epoch, self.log.end_offset)

    def held(self) -> Held:
        return Held(tuple(self.epochs), self.vote, self.log.start_offset, tuple(batches(self.log)))

    def state(self, recovery_point: Offset) -> PartitionState:
        return PartitionState(
            key=self.key,
            name=self.name,
            log_start=self.log.start_offset,
            recovery_point=recovery_point,
            hard_state=self.vote,
            epochs=tuple(self.epochs),
            condition=self.condition,
            is_journaled=self.is_journaled,
        )


class Node:
    """A broker's storage while it runs. What a crash leaves of it is another node's."""

    def __init__(
        self, files: MemoryFiles, state: StateDb, boot: str = "boot", *, file_pages: int = 4
    ) -> None:
        self.files, self.state, self.boot, self.file_pages = files, state, boot, file_pages
        self.directory = DataDirectory.open(files, DATA)
        self.run = state.begin_run(boot)
        self.report = redo(files, self.directory, state)
        self.journal = Journal.open(
            files,
            self.directory.journal_path,
            self.report.start,
            file_bytes=file_pages * PAGE_BYTES,
            files_max=4,
        )
        self.staged: list[JournalRecord] = []
        self.replicas = {
            key: Replica(stored, self._open(stored))
            for key, stored in state.partition_states().items()
        }

    def _open(self, stored: PartitionState) -> Log:
        return Log.open(
            self.files,
            f"{DATA}/{stored.name}",
            SETTINGS,
            start_offset=stored.log_start,
            recovery_point=stored.recovery_point,
            epochs=stored.epochs,
        )

    def create(self, key: PartitionKey, *, is_journaled: bool = True) -> Replica:
        name = f"t{key.topic_id.int}-{key.partition}"
        if name not in self.files.subdirectories(DATA):
            self.files.make_directory(f"{DATA}/{name}")
        self.files.sync_directory(DATA)
        stored = PartitionState(key=key, name=name, is_journaled=is_journaled)
        self.state.save([stored])
        replica = self.replicas[key] = Replica(stored, self._open(stored))
        return replica

    # What happens to a partition

    def append(self, key: PartitionKey, records_: int = 1, *, size: int = 10) -> None:
        replica = self.replicas[key]
        assert replica.epochs, "nobody leads"
        data = batch(replica.log.end_offset, records_, size=size, epoch=replica.epoch)
        replica.log.append(data)
        if replica.is_journaled:
            self.staged.append(records.batches(key, data))

    def append_large(self, key: PartitionKey, size: int) -> None:
        """Synced in its segment, and not written to the journal."""
        replica = self.replicas[key]
        end = replica.log.append(batch(replica.log.end_offset, size=size, epoch=replica.epoch))
        replica.log.sync()
        self.staged.append(records.synced(key, end))

    def begin_epoch(self, key: PartitionKey, epoch: int) -> None:
        replica = self.replicas[key]
        assert epoch > replica.epoch
        start = EpochStart(Epoch(epoch), replica.log.end_offset, ME, VOTERS)
        replica.epochs.append(start)
        self.staged.append(records.epoch_start(key, start))

    def vote(self, key: PartitionKey, epoch: int, voted_for: int | None) -> None:
        replica = self.replicas[key]
        replica.vote = HardState(Epoch(epoch), None if voted_for is None else NodeId(voted_for))
        self.staged.append(records.hard_state(key, replica.vote))

    def truncate(self, key: PartitionKey, to: Position) -> None:
        self.staged.append(records.truncate(key, to))
        self.sync()
        replica = self.replicas[key]
        replica.log.truncate(to.offset)
        replica.epochs = [row for row in replica.epochs if row.position <= to]

    def reset(
        self,
        key: PartitionKey,
        start: Position,
        table: tuple[EpochStart, ...],
        snapshot: bytes = b"",
    ) -> None:
        self.staged.append(records.reset(key, start, table, snapshot))
        self.sync()
        replica = self.replicas[key]
        replica.log.reset(start.offset)
        replica.epochs = list(table)

    def move_start(self, key: PartitionKey, offset: Offset, snapshot: bytes = b"") -> None:
        self.staged.append(records.log_start(key, offset, snapshot))
        self.sync()
        self.replicas[key].log.delete_before(offset, snapshot).run()

    def delete(self, key: PartitionKey) -> None:
        self.staged.append(records.forget(key))
        self.sync()
        replica = self.replicas.pop(key)
        replica.log.abandon()
        self.state.forget_partitions([key])
        for name in self.files.sizes(f"{DATA}/{replica.name}"):
            self.files.remove(f"{DATA}/{replica.name}/{name}")

    # Durability

    def write(self) -> None:
        if not self.journal.put_off(self.staged):
            self.journal.write(self.staged)
        self.staged = []

    def sync(self) -> None:
        self.write()
        self.journal.sync()

    def checkpoint(self, steps: int = 4) -> None:
        """All of it, or the first few steps, as if the process had died then."""
        mark = self.journal.begin_checkpoint()
        # A capture that was begun has to be synced.
        captured = self.replicas.values() if steps >= 2 else ()
        captures = [(r.log.begin_sync(), r.state(Offset(0))) for r in captured]
        if steps >= 1:
            self.sync()
        states = []
        for capture, state in captures:
            point = capture.sync()
            states.append(replace(state, recovery_point=point))
        if steps >= 3:
            self.state.save(states, journal_start=mark)
        if steps >= 4:
            self.journal.checkpointed(mark)

    # Crashes

    def killed(self) -> "Node":
        """The next process, after this one was killed."""
        files = self.files.after_kill()
        return Node(files, copy_of(self.state), self.boot, file_pages=self.file_pages)

    def killed_with(self, change: Callable[[MemoryFiles], None]) -> "Node":
        """The next process, after something was done to the files in between."""
        files = self.files.after_kill()
        change(files)
        return Node(files, copy_of(self.state), self.boot, file_pages=self.file_pages)

    def power_failed(self, rng: Random) -> "Node":
        """The next process, after the machine lost power."""
        files = self.files.after_crash(rng)
        return Node(files, copy_of(self.state), self.boot + "'", file_pages=self.file_pages)

    def held(self) -> dict[PartitionKey, Held]:
        return {key: replica.held() for key, replica in self.replicas.items()}


def copy_of(state: StateDb) -> StateDb:
    """So that one past can have several futures."""
    copy = StateDb.open(":memory:", new_id=state.directory_id)
    state._connection.backup(copy._connection)
    return copy


def batches(log: Log) -> list[bytes]:
    """All batches of a log."""
    found, offset = [], log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, bytes_max=1, end_offset=log.end_offset)
        found.append(part.read())
        offset = part.end_offset
    return found


def new_node() -> Node:
    """One with two partitions and one that is not journaled, each in its first epoch."""
    files = MemoryFiles()
    node = Node(files, StateDb.open(":memory:", new_id=UUID(int=99)))
    for key in (KEY, OTHER, UNJOURNALED):
        node.create(key, is_journaled=key is not UNJOURNALED)
        node.begin_epoch(key, 1)
    node.sync()
    return node


def position(epoch: int, offset: int) -> Position:
    return Position(Epoch(epoch), Offset(offset))


def crashed_in_every_way(node: Node) -> list[Node]:
    """What comes after a kill, and after the power failed, in a number of ways."""
    return [node.killed(), *(node.power_failed(Random(seed)) for seed in range(12))]


def all_but_the_unjournaled(node: Node) -> dict[PartitionKey, Held]:
    return {key: held for key, held in node.held().items() if key != UNJOURNALED}


def check_every_crash(node: Node) -> None:
    """After a crash now, all that is journaled is there; everything was synced."""
    expected = all_but_the_unjournaled(node)
    for after in crashed_in_every_way(node):
        assert all_but_the_unjournaled(after) == expected
        assert after.report.damage == ()
        for seed in range(3):
            again = after.power_failed(Random(seed))
            assert all_but_the_unjournaled(again) == expected, "what redo did is durable"
            assert again.report.appended_bytes == 0
