"""In which order what comes of a turn is done."""

from __future__ import annotations

import errno
import math
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import cast
from uuid import UUID

import trio
from trio.testing import MockClock

from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.checkpoints import Checkpoints
from tidemark.broker.replicas.disk import DiskWriter
from tidemark.broker.replicas.driver import ReplicationDriver
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.peer_messages import Heartbeat, PeerMessage
from tidemark.partitions.storage.journal.records import JournalRecord, forget
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

KEY = PartitionKey(UUID(int=7), 0)
HEARTBEAT = Heartbeat(incarnation=1, sequence=1, acknowledges=0)


class Recorder:
    """A driver whose disk and network note what they are told, and when what is sent has left."""

    def __init__(self) -> None:
        self.turn = Turn()
        self.done: list[tuple[str, int]] = []
        self.told: dict[int, bool] = {}
        self.failures: list[OSError] = []
        self.node = ReplicationNode(NodeId(1), 1, rng=Random(1))
        self.timers = Timers()
        self.driver = ReplicationDriver(
            self.node,
            turn=self.turn,
            timers=self.timers,
            disk=cast("DiskWriter", self),  # as far as the driver needs it
            checkpoints=cast("Checkpoints", None),  # no record is of a replica that is here
            odd_events=cast("OddEvents", None),
        )
        self.driver.send = self.send

    def send(self, sends: Mapping[NodeId, Sequence[PeerMessage]]) -> None:
        # As sockets do: what a turn has for one broker leaves at once.
        for to in sends:
            self.turn.after(partial(self.done.append, ("left", to)))

    def write(
        self,
        batch: int,
        records: Sequence[JournalRecord],
        persisted: object,
        *,
        syncs: object,
        is_told: bool,
    ) -> None:
        self.done.append(("written", batch))
        self.told[batch] = is_told

    def fail(self, error: OSError) -> None:
        self.failures.append(error)

    def do(self, *, sends: bool) -> None:
        if sends:
            self.node.outbox.send(NodeId(2), HEARTBEAT)
        self.node.outbox.stage_record(forget(KEY))
        self.driver.touch()


def test_what_is_for_the_others_leaves_before_the_own_disk_is_told() -> None:
    """The disk's thread takes the interpreter as soon as it can: followers would wait for it."""
    recorder = Recorder()
    recorder.turn.run(lambda: recorder.do(sends=True))
    assert recorder.done == [("left", 2), ("written", 1)]


def test_the_disk_hears_whether_others_were_told_of_a_batch() -> None:
    recorder = Recorder()
    recorder.turn.run(lambda: recorder.do(sends=True))
    recorder.turn.run(lambda: recorder.do(sends=False))
    assert recorder.told == {1: True, 2: False}


def test_the_timer_is_set_when_all_else_is_done() -> None:
    recorder = Recorder()

    def next_deadline() -> float:
        recorder.done.append(("asked", 0))
        return math.inf

    recorder.node.next_deadline = next_deadline  # type: ignore[method-assign]  # to see it asked
    recorder.turn.run(lambda: recorder.do(sends=True))
    assert recorder.done == [("left", 2), ("written", 1), ("asked", 0)]


def test_batches_are_written_in_their_order_whether_something_is_sent_or_not() -> None:
    recorder = Recorder()

    def do_both() -> None:
        recorder.do(sends=True)
        recorder.turn.after(lambda: recorder.do(sends=False))

    recorder.turn.run(do_both)
    written = [number for what, number in recorder.done if what == "written"]
    assert written == sorted(written)
    assert len(recorder.done) == len(written) + 1


def test_where_nothing_is_sent_the_disk_is_told_at_once() -> None:
    recorder = Recorder()
    recorder.turn.run(lambda: recorder.do(sends=False))
    assert recorder.done == [("written", 1)]


def test_a_disk_that_a_group_has_found_to_have_failed_is_told_so() -> None:
    recorder, error = Recorder(), OSError(errno.EIO, "gone")
    recorder.node.disk_failed(error)
    recorder.turn.run(recorder.driver.touch)
    assert recorder.failures == [error]


async def test_where_nothing_is_due_until_later_nobody_is_woken_before(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    """As when a heartbeat went out before its time, in step with another broker's."""
    recorder, ticks = Recorder(), list[float]()
    deadlines = [1.0]

    def tick(now: float) -> None:
        ticks.append(now)
        deadlines[0] = math.inf

    # To see when it is called, and to say for itself when that is to be.
    recorder.node.tick = tick  # type: ignore[method-assign]
    recorder.node.next_deadline = lambda: deadlines[0]  # type: ignore[method-assign]
    nursery.start_soon(recorder.timers.run)
    recorder.turn.run(lambda: recorder.do(sends=False))
    await trio.sleep(0.9)
    deadlines[0] = 1.5
    recorder.turn.run(lambda: recorder.do(sends=False))
    await trio.sleep(0.5)
    assert ticks == []
    deadlines[0] = 1.45
    recorder.turn.run(lambda: recorder.do(sends=False))
    await trio.sleep(5)
    assert ticks == [1.45]
