"""A broker of the fast layer through all its lives: what its disk has, and its process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.group import Group
from tidemark.partitions.storage.epoch_rows import rows_within
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, Offset, Position
from tidemark.testing.simulator.core.log import CoreLog, Write
from tidemark.testing.simulator.core.process import CoreProcess
from tidemark.testing.simulator.phases import PHASE_OF_A_MOVE
from tidemark.testing.simulator.randomness import stream

if TYPE_CHECKING:
    from tidemark.testing.simulator.core.world import CoreWorld

_DISK_SECONDS_MAX: Final = 10.0
_JOURNAL_MAX: Final = 300


class CoreBroker:
    """See `Victim` for what can be done to it."""

    def __init__(self, node_id: NodeId, world: CoreWorld) -> None:
        self.node_id = node_id
        self.world = world
        self.rng = stream(world.seed, f"broker {node_id}")
        self.disk = CoreLog(Configuration(tuple(sorted(world.group.voters))))
        self.is_clean = True
        self.in_doubt = False
        self._journal: list[Write] = []
        """What has reached the disk since `_saved`, where damage is among the faults."""
        self._saved = self.disk.copy()
        self.process: CoreProcess | None = None
        self.starts = 0
        self.disk_factor = 1.0
        self.step_seconds = 0.0
        self.is_buried = False
        self._has_damage = "damage" in world.knobs.fault_kinds

    def start(self) -> None:
        if self.process is not None or self.is_buried:
            return
        self.starts += 1
        self.world.starts += 1
        self._note("starts")
        self.process = CoreProcess(self)
        self.process.opened()
        self.moment("start")

    def stop(self, *, power: bool) -> None:
        process = self.process
        if process is None:
            return
        self._note("loses power" if power else "is killed")
        self.process = None
        self.is_clean = process.group.is_clean
        self.in_doubt = process.group.in_doubt
        if power:
            self.world.judge.loses_power(self.node_id)
        unsynced = process.unsynced
        for writes in unsynced[: self.rng.randint(0, len(unsynced))]:
            process.to_disk(writes)
        if power and not self.world.group.is_journaled:
            self._lose_page_cache()
        self.world.stopped(self, process)

    def wrote(self, write: Write) -> None:
        self.disk.apply(write)
        if not self._has_damage:
            return
        self._journal.append(write)
        if len(self._journal) > _JOURNAL_MAX:
            self.save()

    def save(self) -> None:
        """A checkpoint: what the journal said until now is safe."""
        if self._has_damage:
            self._saved, self._journal = self.disk.copy(), []

    def damage_journal(self) -> bool:
        """Epochs, votes and entries since some moment are forgotten (`raft/doubt.py`).

        One at a time, and not where it is a majority by itself: what is lost then is lost.
        """
        judge = self.world.judge
        others = (other.has_doubt for other in self.world.brokers.values())
        if self.process is None or any(others) or not judge.may_be_damaged(self.node_id):
            return False
        self.stop(power=True)
        kept = self._journal[: self.rng.randint(0, len(self._journal))]
        self.disk = self._saved.copy()
        for write in kept:
            self.disk.apply(write)
        self.save()
        self.is_clean, self.in_doubt = False, True
        judge.loses_newest(self.node_id, self.disk.hard_state)
        self._note(f"has lost its journal's end, back to {self.disk.shape().last}")
        return True

    @property
    def has_doubt(self) -> bool:
        return self.in_doubt if self.process is None else self.process.group.in_doubt

    @property
    def counts_anew(self) -> bool:
        """Whether it may have lost what it acknowledged, and has not all of it back."""
        return not (self.is_clean if self.process is None else self.process.group.is_clean)

    def _lose_page_cache(self) -> None:
        self.is_clean = False
        ends = [end for end in self.disk.boundaries() if end >= self.disk.synced_end]
        end = ends[-1 - min(int(self.rng.expovariate(0.3)), len(ends) - 1)]
        # As a start does: what is durable of the voters stays.
        rows = rows_within(self.disk.rows, Offset(end))
        if rows and end < self.disk.end_offset:
            self.disk.truncate(Position(rows[-1].epoch, Offset(end)))
            self.disk.rows = list(rows)

    def pause(self, seconds: float) -> None:
        if self.process is not None:
            self.process.awake.pause(seconds)

    def phase(self, key: PartitionKey) -> str:
        process = self.process
        if process is None:
            return "recovering"
        group, move = process.group, process.moves.phase(key)
        if group.config.is_joint:
            return "reconfiguring"
        if move is not None:
            return PHASE_OF_A_MOVE[move]
        if group.successor is not None:
            return "handing over"
        if group.leader is None:
            return "electing"
        if group.is_leader and not group.is_serving:
            return "opening an epoch"
        return "replicating" if group.committed < group.shape.last else "idle"

    def disk_seconds(self) -> float:
        mean = self.world.knobs.sync_seconds
        return min(self.disk_factor * mean * (0.5 + self.rng.random()), _DISK_SECONDS_MAX)

    def tell(self, _key: PartitionKey, event: Callable[[Group], None]) -> None:
        if self.process is not None:
            self.process.operate(event)

    def move_leader(self, _key: PartitionKey, to: NodeId, seconds: float) -> None:
        if self.process is not None:
            self.process.move_leader(to, seconds)

    # What this layer does not have

    def observe(self, key: PartitionKey, parents: Sequence[NodeId]) -> None:
        """Nobody observes."""

    def jump_clock(self, seconds: float) -> None:
        """There is no time of day."""

    def rot_segment(self, key: PartitionKey) -> None:
        """There are no segments."""

    def fail_next_sync(self) -> None:
        """No sync fails."""

    def fill_disk(self, *, free_bytes: int) -> None:
        """There is always room."""

    def free_disk(self) -> None:
        """There is room."""

    def run_low(self, *, is_out: bool) -> None:
        """Nor does it run low."""

    def compact(self, key: PartitionKey) -> None:
        """A log in memory is not."""

    def checkpoint(self) -> None:
        """There is no journal."""

    def moment(self, name: str) -> None:
        self.world.moment(self.node_id, name)

    def _note(self, what: str) -> None:
        self.world.note(self.node_id, "life", what)
