"""Brokers without a network and without time: everything happens when the test says so.

Each broker is a real `ReplicationNode` with real logs, a real journal and a real `state.db`, over
files in memory. Messages lie in one pool until they are delivered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from uuid import UUID

from tidemark.partitions.replication.applier import Applier
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.replication.ended_move import EndedMove
from tidemark.partitions.replication.group_replica import Appended, GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.opening import GroupSpec, open_group
from tidemark.partitions.replication.outbox import GroupChange, Output
from tidemark.partitions.replication.peer_messages import Heartbeat, PeerMessage
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.state_db import PartitionKey, StateDb
from tidemark.protocol.records.header import check_batch
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import NodeId, Offset, TopicPartition
from tidemark.testing.memory_files import MemoryFiles

KEY = PartitionKey(UUID(int=7), 0)
TOPIC = TopicPartition("orders", 0)
JOURNAL_FILE_BYTES = 64 * 4096


def batch_of(*values: str, producer: int = -1, epoch: int = 0, sequence: int = 0) -> bytearray:
    """A batch as a producer sends it."""
    return bytearray(
        encode_batch(
            [Record(value=value.encode(), timestamp_ms=1) for value in values],
            producer_id=producer,
            producer_epoch=epoch if producer >= 0 else -1,
            base_sequence=sequence if producer >= 0 else -1,
        )
    )


class Broker:
    """One broker's process. `start` another one on what a crash left."""

    def __init__(
        self,
        node_id: int,
        files: MemoryFiles,
        state: StateDb,
        timing: Timing,
        *,
        has_lane: bool = True,
    ) -> None:
        self.node_id = NodeId(node_id)
        self.files = files
        self.state = state
        run = state.begin_run("boot")
        self.directory = DataDirectory.open(files, "/data")
        self.redone = redo(files, self.directory, state)
        self.journal = Journal.open(
            files, self.directory.journal_path, self.redone.start, file_bytes=JOURNAL_FILE_BYTES
        )
        self.node = ReplicationNode(
            self.node_id, run.incarnation, rng=Random(node_id), timing=timing, has_lane=has_lane
        )
        self.readers = FileCache(files, open_max=8)
        self.is_disk_slow = False
        """Nothing becomes durable by itself."""
        self.changes: list[GroupChange] = []
        self.warnings: list[str] = []
        self.ended_moves: list[EndedMove] = []
        self.unwritten: list[Output] = []

    def open(
        self,
        voters: Sequence[int],
        *,
        key: PartitionKey = KEY,
        partition: TopicPartition = TOPIC,
        flush_commit: bool = True,
        preference: Sequence[int] = (),
        priority: Priority = Priority.REST,
        is_eager: bool = False,
        applier: Applier | None = None,
        settings: LogSettings | None = None,
        journaled_bytes_max: int = 1 << 20,
        now: float | None = None,
    ) -> GroupReplica:
        if partition not in self.directory.partitions():
            self.directory.create_partition(partition)
            self.directory.sync()
        replica = open_group(
            GroupSpec(
                key=key,
                directory=self.directory.partition_path(partition),
                settings=settings or LogSettings(),
                syncs_before_ack=flush_commit,
                journaled_bytes_max=journaled_bytes_max,
                voters=tuple(map(NodeId, voters)),
                applier=applier,
            ),
            self.state.partition_states().get(key),
            self.state,
            host=self.node,
            files=self.files,
            readers=self.readers,
        )
        self.node.add(
            replica,
            priority=priority,
            preference=tuple(map(NodeId, preference)),
            is_eager=is_eager,
            now=now,
        )
        return replica

    def replica(self, key: PartitionKey = KEY) -> GroupReplica:
        found = self.node.get(key)
        assert found is not None
        return found

    def append(self, *values: str, producer: int = -1, sequence: int = 0) -> Appended | Duplicate:
        records = batch_of(*values, producer=producer, sequence=sequence)
        return self.replica().append(check_batch(records), records, 0)

    def values(self, key: PartitionKey = KEY) -> list[str]:
        """All that is in the log, committed or not."""
        return values_between(self.replica(key), None)

    def committed_values(self, key: PartitionKey = KEY) -> list[str]:
        return values_between(self.replica(key), self.replica(key).high_watermark)

    def take(self) -> Output:
        """What has come of a turn; what is to be durable waits in `unwritten`."""
        output = self.node.take_output()
        self.changes += output.changes
        self.warnings += output.warnings
        self.ended_moves += output.ended_moves
        if output.write:
            self.unwritten.append(output)
        return output

    def sync(self) -> None:
        """Write and sync everything that waits, and report it."""
        outputs, self.unwritten = self.unwritten, []
        for output in outputs:
            for each in output.syncs:
                each.run()
            if not self.journal.put_off(output.records):
                self.journal.write(output.records)
        if outputs:
            self.journal.sync()
            self.node.persisted(outputs[-1].write)
            for output in outputs:
                for removal in output.removals:
                    removal.run()

    def checkpoint(self) -> None:
        mark = self.journal.begin_checkpoint()
        assert self.node.can_checkpoint
        rows = [replica.state_row(replica.log.sync()) for replica in self.node.replicas]
        self.state.save(rows, journal_start=mark)
        self.journal.checkpointed(mark)

    def crashed(self, rng: Random | None = None) -> MemoryFiles:
        """The disk as another process finds it: killed, or without power if `rng` is given."""
        return self.files.after_kill() if rng is None else self.files.after_crash(rng)


def values_between(replica: GroupReplica, end: Offset | None) -> list[str]:
    from tidemark.protocol.records.records import decode_records

    log, found = replica.log, []
    offset, end = log.start_offset, log.end_offset if end is None else end
    while offset < end:
        part = log.read(offset, bytes_max=1 << 20, end_offset=end)
        records = decode_records(part.read())
        # As clients do, who get whole batches too.
        asked = (record for record in records if record.offset >= offset)
        found += [record.value.decode() for record in asked if record.value is not None]
        offset = part.end_offset
    return found


class Cluster:
    """Some brokers and what lies between them."""

    def __init__(self, count: int, *, timing: Timing | None = None, has_lane: bool = True) -> None:
        self.now = 1.0
        self.has_lane = has_lane
        self.timing = timing or Timing(failure_timeout_seconds=0.8)
        self.brokers: dict[NodeId, Broker] = {}
        self.pool: list[tuple[NodeId, NodeId, PeerMessage]] = []
        self.cut: set[tuple[int, int]] = set()
        """Ways on which nothing passes."""
        for number in range(1, count + 1):
            self.start(number, MemoryFiles(), StateDb.open(":memory:"))

    def __getitem__(self, node_id: int) -> Broker:
        return self.brokers[NodeId(node_id)]

    def start(self, node_id: int, files: MemoryFiles, state: StateDb) -> Broker:
        broker = Broker(node_id, files, state, self.timing, has_lane=self.has_lane)
        self.brokers[broker.node_id] = broker
        for each in self.brokers.values():
            each.node.set_peers(list(self.brokers))
        return broker

    def kill(self, node_id: int, rng: Random | None = None) -> tuple[MemoryFiles, StateDb]:
        """End a broker's process, or cut its power; the others notice. What is left of it."""
        dead = self.brokers.pop(NodeId(node_id))
        self.pool = [each for each in self.pool if dead.node_id not in each[:2]]
        for broker in self.brokers.values():
            broker.node.peer_down(dead.node_id, self.now)
        return dead.crashed(rng), dead.state

    def open(self, voters: Sequence[int] = (1, 2, 3), **options: object) -> None:
        for broker in self.brokers.values():
            broker.open(voters, **options)  # type: ignore[arg-type]  # as `Broker.open` has them

    def turn(self, broker: Broker) -> None:
        """Take what has come of a broker's events, and sync."""
        while True:
            output = broker.take()
            for to, messages in output.sends.items():
                self.pool += [(broker.node_id, to, message) for message in messages]
            if broker.is_disk_slow or not broker.unwritten:
                return
            broker.sync()

    def step(self) -> bool:
        """Everything that is ready now happens once. False: nothing was."""
        for broker in self.brokers.values():
            self.turn(broker)
        pool, self.pool = self.pool, []
        for source, to, message in pool:
            receiver = self.brokers.get(to)
            if receiver is not None and (source, to) not in self.cut:
                receiver.node.receive(source, message, self.now)
        return bool(pool)

    def settle(self) -> None:
        """Until nobody has anything to say."""
        for _ in range(1000):
            if not self.step():
                return
        raise AssertionError("it never ends")

    def run(self, seconds: float) -> None:
        """Let time pass, and everything happen in it."""
        end = self.now + seconds
        while True:
            self.settle()
            due = min(broker.node.next_deadline() for broker in self.brokers.values())
            if due > end:
                self.now = end
                return
            self.now = max(self.now + 0.001, due)
            for broker in self.brokers.values():
                broker.node.tick(self.now)

    def leader(self, key: PartitionKey = KEY) -> Broker:
        """The one that serves, which all of its group's replicas follow."""
        leaders = [b for b in self.brokers.values() if b.replica(key).is_serving]
        assert len(leaders) == 1, f"{len(leaders)} leaders"
        return leaders[0]

    def serving(self, key: PartitionKey = KEY) -> Broker:
        """The one that serves, where some broker may have no replica."""
        (found,) = [
            each
            for each in self.brokers.values()
            if (replica := each.node.get(key)) is not None and replica.is_serving
        ]
        return found

    def followers(self, key: PartitionKey = KEY) -> list[Broker]:
        leader = self.leader(key)
        return [broker for broker in self.brokers.values() if broker is not leader]


def three(*, has_lane: bool = True, **options: object) -> Cluster:
    """Three brokers with one group, which the second one leads."""
    cluster = Cluster(3, has_lane=has_lane)
    cluster.open([1, 2, 3], preference=[2, 1, 3], **options)
    cluster.run(1)
    return cluster


def alone(**options: object) -> Cluster:
    """One broker, the only voter of its group."""
    cluster = Cluster(1)
    cluster.open([1], **options)
    cluster.run(0.1)
    return cluster


def heartbeats(messages: Iterable[tuple[NodeId, NodeId, PeerMessage]]) -> list[Heartbeat]:
    return [message for _, _, message in messages if isinstance(message, Heartbeat)]
