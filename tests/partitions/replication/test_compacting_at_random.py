"""Replicas that compact their logs, each when it likes, while brokers die, lag and come back.

Whatever happens: a leader's log has, for each key, what was committed last or something later; all
replicas come to the same; and no log has a hole.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.partitions.replication.group_replica import Appended
from tidemark.partitions.storage.compaction.at_once import compact_at_once
from tidemark.partitions.storage.compaction.settings import CompactionSettings
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.state_db import StateDb
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.records.gaps import is_gap
from tidemark.protocol.records.header import check_batch, iter_headers
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.types import NodeId, Offset
from tidemark.testing.memory_files import MemoryFiles

BROKERS = (1, 2, 3)
SECONDS = 12.0
LOOK = 0.05
SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=100, retention_ms=-1)
# Nothing is deleted here: a follower that has lagged for longer than a deletion stays may miss it.
COMPACTION = CompactionSettings(min_cleanable_dirty_ratio=0.0)
Value = tuple[int, bytes]
"""The offset of a key's record, and its value."""


class Run:
    """One random schedule."""

    def __init__(self, seed: int, *, flush_commit: bool) -> None:
        self.rng = Random(seed)
        self.flush_commit = flush_commit
        self.cluster = Cluster(len(BROKERS))
        self.cluster.open(BROKERS, settings=SETTINGS, flush_commit=flush_commit)
        self.down: dict[NodeId, tuple[MemoryFiles, StateDb]] = {}
        self.committed: dict[bytes, Value] = {}
        self.compactions = self.appended = 0

    def append(self) -> None:
        for broker in self.cluster.brokers.values():
            replica = broker.replica()
            if replica.is_accepting:
                count = self.rng.randint(1, 3)
                keys = [b"%d" % self.rng.randrange(5) for _ in range(count)]
                batch = bytearray(
                    encode_batch(
                        [
                            Record(key=key, value=b"%d" % (self.appended + n), timestamp_ms=1)
                            for n, key in enumerate(keys)
                        ]
                    )
                )
                self.appended += count
                placed = replica.append(check_batch(batch), batch, 0)
                assert isinstance(placed, Appended)

    def compact(self, broker: Broker) -> None:
        replica = broker.replica()
        if replica.failure is not None or replica.is_held:
            return
        self.compactions += (
            1
            if compact_at_once(
                broker.files,
                replica.log,
                COMPACTION,
                end_offset=replica.high_watermark,
                now_ms=0,
            )
            else 0
        )

    def kill(self) -> None:
        node = self.rng.choice(list(self.cluster.brokers))
        has_power = not self.flush_commit or self.rng.random() < 0.5
        self.down[node] = self.cluster.kill(node, None if has_power else Random(self.rng.random()))

    def revive(self) -> None:
        node = self.rng.choice(list(self.down))
        broker = self.cluster.start(node, *self.down.pop(node))
        broker.open(BROKERS, settings=SETTINGS, flush_commit=self.flush_commit)
        for other in self.cluster.brokers.values():
            if other is not broker:
                other.node.peer_up(node, broker.node.incarnation, self.cluster.now)
                broker.node.peer_up(other.node_id, other.node.incarnation, self.cluster.now)

    def cut(self) -> None:
        """One hears from nobody, and lags; or all hear again."""
        alone = self.rng.choice(BROKERS)
        others = [node for node in BROKERS if node != alone]
        ways = {(other, alone) for other in others} | {(alone, other) for other in others}
        self.cluster.cut = set() if self.cluster.cut else ways

    def check(self) -> None:
        serving = [b for b in self.cluster.brokers.values() if b.replica().is_serving]
        for broker in serving:
            replica = broker.replica()
            if replica.epoch < max(other.replica().epoch for other in serving):
                continue  # it has not heard yet
            found = last_values(broker, replica.high_watermark)
            for key, (offset, value) in self.committed.items():
                there = found.get(key)
                assert there is not None
                assert there[0] > offset or there == (offset, value)
            self.committed = found

    def step(self) -> None:
        self.append()
        for broker in list(self.cluster.brokers.values()):
            if self.rng.random() < 0.1:
                broker.replica().log.sync()
                self.compact(broker)
            if self.rng.random() < 0.05 and broker.node.can_checkpoint:
                broker.sync()
                if broker.node.can_checkpoint:
                    broker.checkpoint()
        self.cluster.run(LOOK)
        self.check()

    def play(self) -> None:
        end = self.cluster.now + SECONDS
        while self.cluster.now < end:
            act = self.rng.random()
            if act < 0.04 and not self.down:
                self.kill()
            elif act < 0.12 and self.down:
                self.revive()
            elif act < 0.17:
                self.cut()
            self.step()
        self.cluster.cut.clear()
        while self.down:
            self.revive()
        for _ in range(round(20 / LOOK)):
            self.cluster.run(LOOK)
            self.check()


def last_values(broker: Broker, end: Offset) -> dict[bytes, Value]:
    log = broker.replica().log
    found: dict[bytes, Value] = {}
    offset = log.start_offset
    while offset < end:
        part = log.read(offset, bytes_max=1 << 20, end_offset=end)
        if not len(part):
            break
        for record in decode_records(part.read()):
            assert record.key is not None
            assert record.value is not None
            found[record.key] = (record.offset, record.value)
        assert part.end_offset > offset
        offset = part.end_offset
    return found


def gaps(broker: Broker) -> int:
    log = broker.replica().log
    count, offset = 0, log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, bytes_max=1 << 20, end_offset=log.end_offset)
        count += sum(is_gap(header) for _, header in iter_headers(part.read()))
        offset = part.end_offset
    return count


@pytest.mark.parametrize("flush_commit", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_what_was_committed_last_is_there_whoever_compacts_and_whoever_dies(
    seed: int, flush_commit: bool
) -> None:
    run = Run(seed, flush_commit=flush_commit)
    run.play()
    end = run.cluster.leader().replica().high_watermark
    brokers = [run.cluster[node] for node in BROKERS]
    assert [broker.replica().high_watermark for broker in brokers] == [end] * 3
    for broker in brokers:
        assert last_values(broker, end) == run.committed
        assert gaps(broker)
        broker.replica().log.sync()
        assert verify(broker.files, "/data/orders-0").problems == []
    assert run.compactions > 10
    assert run.appended > 100
