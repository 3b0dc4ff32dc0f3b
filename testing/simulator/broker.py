"""A broker through all its lives: what of it outlives a process, and the process if it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol
from uuid import UUID

from tidemark.partitions.raft.group import Group
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.peer_messages import PeerMessage
from tidemark.partitions.replication.reassignment_values import NO_LIMIT
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.storage.journal.blocks import FIRST_LSN
from tidemark.partitions.storage.room import Room
from tidemark.partitions.storage.state_db import PartitionKey, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NodeId, Offset
from tidemark.testing.memory_files import MemoryFiles
from tidemark.testing.simulator.clock import Clock
from tidemark.testing.simulator.coverage import Coverage
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.network import Network
from tidemark.testing.simulator.phases import phase_of
from tidemark.testing.simulator.placement import Placement
from tidemark.testing.simulator.process import Process
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.rot import RottenBit, rot_journal, rot_segment
from tidemark.testing.simulator.rpc import Answer
from tidemark.testing.simulator.trace import Trace
from tidemark.testing.simulator.transactions.play import Play
from tidemark.testing.simulator.watch import Watch
from tidemark.testing.simulator.wishes import Wishes

_RESTART_SECONDS: Final = 0.5
_DISK_SECONDS_MAX: Final = 10.0


class World(Protocol):
    """What surrounds a broker."""

    seed: int
    knobs: Knobs
    queue: EventQueue
    watch: Watch
    trace: Trace
    groups: Sequence[SimulatedGroup]
    nodes: Sequence[NodeId]
    coverage: Coverage
    wishes: Wishes
    placement: Placement | None
    network: Network
    play: Play | None
    given_up: dict[PartitionKey, Offset]

    @property
    def brokers(self) -> Mapping[NodeId, Broker]: ...

    def send(self, source: NodeId, target: NodeId, messages: Sequence[PeerMessage]) -> None: ...

    def answer(self, source: NodeId, client: str, answer: Answer) -> None: ...

    def moment(self, node: NodeId, name: str) -> None:
        """Something worth disturbing has happened to a node."""

    def look(self, key: PartitionKey, *, is_common: bool = False) -> None:
        """A group may be as it never was before."""

    def started(self, broker: Broker) -> None: ...

    def stopped(self, broker: Broker) -> None: ...

    def replica_failed(self, node: NodeId, replica: GroupReplica) -> None: ...

    def told_of_rot(self, broker: Broker) -> None: ...

    def rewind(self, key: PartitionKey) -> None: ...


class Broker:
    """The disk, the clock, and the process."""

    def __init__(self, node_id: NodeId, world: World) -> None:
        self.node_id = node_id
        self.world = world
        self.rng = stream(world.seed, f"broker {node_id}")
        drift = world.knobs.drift
        self.clock = Clock(1 + self.rng.uniform(-drift, drift), self.rng.uniform(1, 1000))
        self.files = MemoryFiles()
        self.room = Room()
        """Of all its logs; those of coordinators run out of it last, and others with them."""
        # A transaction that was committed is on the disk, so it is kept as it is over a crash.
        self.state = StateDb.open(":memory:", new_id=UUID(int=node_id))
        self.boots = 1
        self.starts = 0
        self.process: Process | None = None
        self.has_run = False
        self.is_disk_bad = False
        """Whether this start has a right to fail."""
        self.copy_bytes = world.knobs.copy_bytes
        self.known_commands = 0
        """Of the metadata's: those that it had heard of."""
        self.current_at = 0
        """How many there were when the process began: until it has heard of so many, what it
        knows may be old."""
        self.has_rot = False
        """Whether its journal has a bit flipped that no start has met yet."""
        self.rotten: RottenBit | None = None
        """A bit of a segment that is another than was written."""
        self._is_buried = False
        self.is_spared = False
        """Whether its disk does nothing more at a start than it should."""
        self.disk_factor = 1.0
        self.step_seconds = 0.0

    def bury(self) -> None:
        """It stays as it is: nobody starts it again."""
        self._is_buried = True

    def dig_out(self) -> None:
        self._is_buried = False

    def start(self) -> None:
        if self.process is not None or self._is_buried:
            return
        self.starts += 1
        self.files.now_ms = self.clock.wall_ms(self.world.queue.now)
        self._note("starts")
        # Not before it has once come up: a journal that was never whole may be called missing.
        is_failing = self.has_run and self.rng.random() < self.world.knobs.start_errors
        if is_failing and not self.is_spared:
            self.files.failing_syncs, self.files.spared_syncs = 1, self.rng.randrange(8)
        self.is_disk_bad = bool(self.files.failing_syncs or self.files.capacity_bytes is not None)
        self._recall()
        try:
            self.process = Process(self)
        except (OSError, StorageError) as error:
            if not self.is_disk_bad:
                raise
            self._note(f"cannot start: {error}")
            self._lose_memory(power=self.rng.random() < 0.5)
            self.world.queue.after(_RESTART_SECONDS, self.start)
            return
        self.has_run = True
        self.world.started(self)
        self.process.tick()
        if self.process is not None and self.process.hosting is not None:
            self.process.hosting.start()
        self.world.moment(self.node_id, "start")

    def stop(self, *, power: bool) -> None:
        """The process dies at once; without power, what was not synced may be lost or torn."""
        if self.process is None:
            return
        self._note("loses power" if power else "is killed")
        self.process.is_alive = False
        self.process = None
        self._lose_memory(power=power)
        self.world.stopped(self)

    def strike(self, disk: MemoryFiles) -> None:
        """The power has failed when the disk was as it is there; it comes back after a while."""
        self.files = disk
        self.stop(power=True)
        self.world.queue.after(_RESTART_SECONDS + self.rng.random(), self.start)

    def _lose_memory(self, *, power: bool) -> None:
        if power:
            self.boots += 1
            self.world.watch.loses_power(self.node_id)
            self.files = self.files.after_crash(self.rng)
        else:
            self.files = self.files.after_kill()

    def damage_journal(self) -> bool:
        """A bit of it flips, of what was synced, while the power is off.

        One broker at a time, and not where it is a majority by itself: what is lost then is lost.
        """
        judges = self.world.watch.groups.values()
        if self.process is None or self._may_not_rot():
            return False
        if not all(judge.may_be_damaged(self.node_id) for judge in judges):
            return False
        path, start = self.process.directory.journal_path, self.state.journal_start
        self.stop(power=True)
        self.has_rot = rot_journal(
            self.files, path, self.state.journal_owner, start or FIRST_LSN, self.rng
        )
        if self.has_rot:
            self._note("its journal rots")
        return True

    def rot_segment(self, key: PartitionKey) -> None:
        """A bit of one flips, far below what is written. One at a time, as above."""
        replica = self.replica(key)
        if replica is None or replica.failure is not None or self._may_not_rot():
            return
        judge = self.world.watch.groups[key]
        if not judge.may_be_damaged(self.node_id):
            return
        recorded = self.state.partition_states()[key]
        end = min(recorded.recovery_point, replica.high_watermark)
        self.rotten = rot_segment(self.files, replica.log.directory, key, end, self.rng)
        if self.rotten is not None:
            judge.rotten.add(self.node_id)
            self.world.coverage.counts["segments rotten"] += 1
            self.world.rewind(key)
            self._note(f"rots at {self.rotten.path} {self.rotten.position}")

    def _may_not_rot(self) -> bool:
        """Whether something is the matter with a disk already."""
        others = (other.has_rot or other.rotten for other in self.world.brokers.values())
        return any(others) or self.world.watch.has_doubt

    def is_rotten(self, key: PartitionKey) -> bool:
        """Whether its log of that group may be unreadable somewhere."""
        return self.rotten is not None and self.rotten.key == key

    def restore(self) -> None:
        """What an operator does who was told: files from a copy, and a start."""
        rotten, self.rotten = self.rotten, None
        if rotten is None:
            return
        self._note(f"{rotten.path} is restored")
        self.stop(power=False)
        rotten.restore(self.files)
        self.world.watch.groups[rotten.key].rotten.discard(self.node_id)
        self.start()

    def fail_stop(self, why: str) -> None:
        """The process has ended itself; somebody starts it again after a while."""
        self._note(f"stops: {why}")
        self.stop(power=self.rng.random() < 0.5)
        self.world.queue.after(_RESTART_SECONDS + self.rng.random(), self.start)

    def pause(self, seconds: float) -> None:
        if self.process is not None:
            self.process.pause(self.world.queue.now + seconds)

    # The metadata

    def _recall(self) -> None:
        """What a process begins with may be older than what the one before it had heard."""
        placement = self.world.placement
        if placement is not None:
            self.known_commands = self.rng.randint(0, self.known_commands)
            self.current_at = len(placement.commands)

    def known_state(self) -> ClusterState:
        """The metadata as a process begins with them."""
        placement = self.world.placement
        assert placement is not None
        state = placement.first_state()
        for command in placement.commands[: self.known_commands]:
            state.apply(command)
        return state

    def hear(self, commands: int) -> None:
        process = self.process
        if process is not None and process.hosting is not None:
            process.do(process.hosting.hear, commands)

    def lift_limits(self) -> None:
        """Copy replicas as fast as may be, from now on."""
        self.copy_bytes = NO_LIMIT
        if self.process is not None and self.process.hosting is not None:
            self.process.hosting.reassignments.bytes_per_second = NO_LIMIT

    def replica(self, key: PartitionKey) -> GroupReplica | None:
        return None if self.process is None else self.process.node.get(key)

    # What a nemesis does: see `Victim`

    def phase(self, key: PartitionKey) -> str:
        return phase_of(self.process, key)

    def jump_clock(self, seconds: float) -> None:
        self.clock.jump_seconds += seconds

    def fail_next_sync(self) -> None:
        self.files.failing_syncs = 1

    def fill_disk(self, *, free_bytes: int) -> None:
        self.files.capacity_bytes = 0
        used = -self.files.free_bytes()
        self.files.capacity_bytes = used + free_bytes

    def free_disk(self) -> None:
        self.files.capacity_bytes = None

    def run_low(self, *, is_out: bool) -> None:
        self.room.is_out = is_out

    def checkpoint(self) -> None:
        if self.process is not None:
            self.process.do(self.process.begin_checkpoint)

    def compact(self, key: PartitionKey) -> None:
        if self.process is not None:
            self.process.do(self.process.compact, key)

    def tell(self, key: PartitionKey, event: Callable[[Group], None]) -> None:
        if self.process is not None:
            self.process.tell(key, event)

    def observe(self, key: PartitionKey, parents: Sequence[NodeId]) -> None:
        if self.process is not None:
            self.process.do(self.process.observe, key, parents)

    def move_leader(self, key: PartitionKey, to: NodeId, seconds: float) -> None:
        if self.process is not None:
            self.process.do(self.process.move_leader, key, to, seconds)

    def disk_seconds(self, kind: str) -> float:
        """How long a write or a sync takes this time."""
        knobs = self.world.knobs
        mean = knobs.write_seconds if kind == "write" else knobs.sync_seconds
        if not mean:
            return 0.0
        seconds = self.disk_factor * mean * (0.5 + self.rng.expovariate(1.0) / 2)
        return min(seconds, _DISK_SECONDS_MAX)

    def _note(self, what: str) -> None:
        self.world.trace.note(self.world.queue.now, self.node_id, "life", what)
