"""Whatever happens to two partitions, and whenever the broker dies: what was synced is there.

The model is a list: what the partitions held after each thing that happened. After a crash they
must hold what they held at one moment, not before the last sync. A log may hold more, if those
batches followed in the same epochs: they were written to the segments as well.
"""

from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.partitions.storage.journal.node import ME, VOTERS, Held, Node, new_node
from tests.partitions.storage.journal.records import KEY, OTHER
from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Epoch, Offset, Position

State = dict[PartitionKey, Held]
keys = st.sampled_from([KEY, OTHER])
seeds = st.integers(0, 2**16)


class PartitionsAgainstTheirPast(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.node = new_node()
        self.past = [self.state()]
        self.durable = 0
        """The moment in `past` that must not be lost."""

    def state(self) -> State:
        held = self.node.held()
        return {key: held[key] for key in (KEY, OTHER)}

    def happened(self, *, is_durable: bool = False) -> None:
        self.past.append(self.state())
        if is_durable:
            self.durable = len(self.past) - 1

    # What happens to a partition

    @rule(key=keys, count=st.integers(1, 4), size=st.integers(0, 300))
    def append(self, key: PartitionKey, count: int, size: int) -> None:
        self.node.append(key, count, size=size)
        self.happened()

    @rule(key=keys, size=st.integers(0, 1500))
    def append_large(self, key: PartitionKey, size: int) -> None:
        self.node.append_large(key, size)
        self.happened()

    @rule(key=keys, more=st.integers(1, 3))
    def begin_epoch(self, key: PartitionKey, more: int) -> None:
        self.node.begin_epoch(key, self.node.replicas[key].epoch + more)
        self.happened()

    @rule(key=keys, more=st.integers(1, 3), voted_for=st.none() | st.integers(1, 3))
    def vote(self, key: PartitionKey, more: int, voted_for: int | None) -> None:
        self.node.vote(key, self.node.replicas[key].vote.epoch + more, voted_for)
        self.happened()

    @rule(key=keys, data=st.data())
    def truncate(self, key: PartitionKey, data: st.DataObject) -> None:
        """To the end of a batch or the start of an epoch, as a new leader says."""
        to = data.draw(st.sampled_from(self.positions(key)))
        self.node.truncate(key, to)
        self.happened(is_durable=True)

    def positions(self, key: PartitionKey) -> list[Position]:
        replica = self.node.replicas[key]
        starts = [row.position for row in replica.epochs]
        ends, offset = [], replica.log.start_offset
        while offset < replica.log.end_offset:
            offset = replica.log.read(
                offset, bytes_max=1, end_offset=replica.log.end_offset
            ).end_offset
            epoch = max(row.epoch for row in replica.epochs if row.start_offset < offset)
            ends.append(Position(epoch, offset))
        inner = [p for p in (*starts, *ends) if p.offset >= replica.log.start_offset]
        return [*inner, replica.last]

    @rule(key=keys, offset=st.integers(0, 60), more=st.integers(1, 3))
    def reset(self, key: PartitionKey, offset: int, more: int) -> None:
        epoch = Epoch(self.node.replicas[key].epoch + more)
        table = (EpochStart(epoch, Offset(offset // 2), ME, VOTERS),)
        self.node.reset(key, Position(epoch, Offset(offset)), table)
        self.happened(is_durable=True)

    @rule(key=keys, part=st.floats(0, 1))
    def move_start(self, key: PartitionKey, part: float) -> None:
        log = self.node.replicas[key].log
        span = log.end_offset - log.start_offset
        self.node.move_start(key, Offset(log.start_offset + int(part * span)))
        self.happened(is_durable=True)

    # Durability

    @rule()
    def write(self) -> None:
        self.node.write()

    @rule()
    def sync(self) -> None:
        self.node.sync()
        self.durable = len(self.past) - 1

    @rule(steps=st.integers(0, 4))
    def checkpoint(self, steps: int) -> None:
        """All of it, or as much as there is before a crash that may come, or an abandoned one."""
        self.node.checkpoint(steps)
        if steps >= 1:
            self.durable = len(self.past) - 1

    # Crashes

    @rule()
    def kill(self) -> None:
        self.crashed(self.node.killed())

    @rule(seed=seeds)
    def power_failure(self, seed: int) -> None:
        self.crashed(self.node.power_failed(Random(seed)))

    @precondition(lambda self: len(self.past) > 3)
    @rule(seed=seeds)
    def power_failure_twice(self, seed: int) -> None:
        first = self.node.power_failed(Random(seed))
        self.check(first)
        self.crashed(first.power_failed(Random(seed + 1)))

    def crashed(self, after: Node) -> None:
        self.check(after)
        self.node = after
        self.past, self.durable = [self.state()], 0

    def check(self, after: Node) -> None:
        assert after.report.damage == ()
        held = {key: after.held()[key] for key in (KEY, OTHER)}
        moments = range(self.durable, len(self.past))
        assert any(self.is_of(held, moment) for moment in moments), (
            held,
            self.past[self.durable :],
        )

    def is_of(self, held: State, moment: int) -> bool:
        """Whether the partitions hold what they did then, and at most later batches beside."""
        for key, now in held.items():
            then = self.past[moment][key]
            if now._replace(batches=then.batches) != then:
                return False
            later = [state[key].batches for state in self.past[moment:]]
            if now.batches[: len(then.batches)] != then.batches:
                return False
            if not any(now.batches == batches[: len(now.batches)] for batches in later):
                return False
        return True


TestPartitionsAgainstTheirPast = PartitionsAgainstTheirPast.TestCase
TestPartitionsAgainstTheirPast.settings = settings(
    max_examples=40, stateful_step_count=30, deadline=None
)
