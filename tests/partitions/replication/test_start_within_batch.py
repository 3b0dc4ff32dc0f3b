"""A log whose start is within a batch, as DeleteRecords may leave it.

Clients read from the start on; replicas that begin there get the whole batch.
"""

from __future__ import annotations

import errno
from random import Random

import pytest

from tests.partitions.replication.cluster import KEY, Broker, Cluster, batch_of
from tests.partitions.replication.moving import Moving
from tidemark.partitions.replication.group_replica import Appended
from tidemark.partitions.replication.producer_state import EpochFrom, ProducerState
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.partitions.storage.compaction.at_once import compact_at_once
from tidemark.partitions.storage.compaction.settings import CompactionSettings
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.records.header import BatchHeader, check_batch, iter_headers, read_header
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, NodeId, Offset

VOTERS = (1, 2, 3)
SETTINGS = LogSettings(segment_bytes=200)
PRODUCER = 5


def three(*, flush_commit: bool = True, settings: LogSettings = SETTINGS) -> Cluster:
    cluster = Cluster(4)
    for number in VOTERS:
        cluster[number].open(
            VOTERS, preference=VOTERS, settings=settings, flush_commit=flush_commit
        )
    cluster.run(1)
    assert cluster[1].replica().is_serving
    return cluster


def again(
    cluster: Cluster, node: int, rng: Random | None = None, *, flush_commit: bool = True
) -> Broker:
    files, state = cluster.kill(node, rng)
    broker = cluster.start(node, files, state)
    broker.open(VOTERS, preference=VOTERS, settings=SETTINGS, flush_commit=flush_commit)
    meet(cluster)
    return broker


def meet(cluster: Cluster) -> None:
    for one in cluster.brokers.values():
        for other in cluster.brokers.values():
            if one is not other:
                one.node.peer_up(other.node_id, other.node.incarnation, cluster.now)


def observe(cluster: Cluster, number: int, parents: tuple[int, ...] = VOTERS) -> Broker:
    """Have it pull the group from these; the leader knows of it."""
    broker = cluster[number]
    broker.open(VOTERS, settings=SETTINGS)
    for each in cluster.brokers.values():
        each.node.set_observers(KEY, (NodeId(number),))
    broker.node.observe(KEY, tuple(map(NodeId, parents)), is_told=True)
    return broker


def move_start(cluster: Cluster, offset: int) -> None:
    cluster.serving().replica().move_log_start(Offset(offset))
    cluster.run(0.5)
    assert cluster.serving().replica().log_start == offset


def first_base(broker: Broker) -> int:
    """Where the batch begins that the log's start is in."""
    log = broker.replica().log
    part = log.read(log.start_offset, bytes_max=1, end_offset=log.end_offset).read()
    return next(iter_headers(part))[1].base_offset


def check(broker: Broker, start: int, base: int, values: list[str]) -> None:
    replica = broker.replica()
    assert replica.failure is None
    assert (replica.log_start, first_base(broker)) == (start, base)
    assert replica.group.shape.start_offset == base
    assert broker.committed_values() == values
    assert not [each for each in broker.warnings if "refused" in each]


def test_a_new_replica_gets_the_whole_batch() -> None:
    cluster = Moving(4)
    cluster[1].append("a", "b", "c", "d")
    cluster[1].append("e")
    cluster.settle()
    cluster[1].replica().move_log_start(Offset(2))
    cluster.go(1)
    cluster.wish(1, 2, 4)
    cluster.wait_done()
    assert cluster[4].replica().log.start_offset == 2
    cluster.check(1, 2, 4, values=["c", "d", "e"])


@pytest.mark.parametrize("flush_commit", [True, False])
def test_a_follower_that_was_away_begins_with_the_whole_batch(flush_commit: bool) -> None:
    cluster = three(flush_commit=flush_commit)
    files, state = cluster.kill(3)
    cluster[1].append("a", "b", "c")
    cluster[1].append("d", "e", "f")
    cluster[1].append("g")
    cluster.run(0.3)
    move_start(cluster, 5)
    returned = cluster.start(3, files, state)
    returned.open(VOTERS, preference=VOTERS, settings=SETTINGS, flush_commit=flush_commit)
    meet(cluster)
    cluster.run(3)
    check(returned, 5, 3, ["f", "g"])
    # It leads, and others begin at it, as at the one before it.
    cluster.kill(1)
    cluster.run(3)
    for number in (2, 3):
        check(cluster[number], 5, 3, ["f", "g"])


def test_an_observer_begins_with_the_whole_batch() -> None:
    cluster = three()
    cluster[1].append("a", "b", "c")
    cluster[1].append("d")
    cluster.run(0.3)
    move_start(cluster, 2)
    observer = observe(cluster, 4)
    cluster.run(2)
    check(observer, 2, 0, ["c", "d"])


@pytest.mark.parametrize("seed", [None, *range(5)])
@pytest.mark.parametrize("flush_commit", [True, False])
def test_after_a_new_start_of_the_leader_too(seed: int | None, flush_commit: bool) -> None:
    cluster = three(flush_commit=flush_commit)
    cluster[1].append("a")
    cluster[1].append("b", "c", "d")
    cluster.run(0.3)
    move_start(cluster, 2)
    cluster[1].checkpoint()
    rng = None if seed is None else Random(seed)
    for number in VOTERS:
        again(cluster, number, rng, flush_commit=flush_commit)
    cluster.run(3)
    check(cluster.serving(), 2, 1, ["c", "d"])
    assert cluster.serving().replica().high_watermark == 4
    observer = observe(cluster, 4)
    cluster.run(2)
    check(observer, 2, 1, ["c", "d"])


def test_a_new_start_knows_that_the_batch_is_committed() -> None:
    """It was, when the start moved into it: all of it, and nothing may cut it."""
    cluster = three()
    cluster[1].append("a")
    cluster[1].append("b", "c", "d")
    cluster.run(0.3)
    move_start(cluster, 2)
    files, state = cluster.kill(3)
    broker = cluster.start(3, files, state)
    replica = broker.open(VOTERS, settings=SETTINGS)
    assert replica.high_watermark == replica.group.committed.offset == 4


@pytest.mark.parametrize("seed", range(20))
def test_the_batch_is_on_the_disk_before_the_start_is(seed: int) -> None:
    """With `flush=os`: were it lost, the log would begin anew where nobody's batches begin."""
    cluster = three(flush_commit=False)
    cluster[1].append("a")
    cluster[1].append("b", "c", "d")
    cluster.run(0.3)
    move_start(cluster, 2)
    returned = again(cluster, 3, Random(seed), flush_commit=False)
    cluster.run(3)
    check(returned, 2, 1, ["c", "d"])


def test_a_start_that_moves_on_within_the_batch_and_past_it() -> None:
    cluster = three()
    cluster[1].append("a", "b", "c", "d")
    cluster[1].append("e", "f")
    cluster.run(0.3)
    for start, base in ((1, 0), (3, 0), (4, 4), (5, 4)):
        move_start(cluster, start)
        for number in VOTERS:
            check(cluster[number], start, base, list("abcdef")[start:])
    move_start(cluster, 6)
    assert cluster[1].replica().group.shape.start_offset == 6
    observer = observe(cluster, 4)
    cluster.run(2)
    cluster[1].append("g")
    cluster.run(1)
    check(observer, 6, 6, ["g"])


def test_who_begins_with_the_whole_batch_knows_the_producers() -> None:
    cluster = three()
    files, state = cluster.kill(3)
    cluster[1].append("a", "b", producer=PRODUCER, sequence=0)
    cluster[1].append("c", "d", producer=PRODUCER + 1, sequence=0)
    cluster.run(0.3)
    move_start(cluster, 3)
    returned = cluster.start(3, files, state)
    returned.open(VOTERS, preference=(3,), settings=SETTINGS)
    meet(cluster)
    cluster.run(3)
    check(returned, 3, 2, ["d"])
    cluster[1].replica().tell(lambda group: group.hand_over(NodeId(3)))
    cluster.run(1)
    assert cluster.serving() is returned
    for producer, value, at in ((PRODUCER, "a", 0), (PRODUCER + 1, "c", 2)):
        retried = returned.append(value, value, producer=producer, sequence=0)
        assert isinstance(retried, Duplicate)
        assert retried.base_offset == at
        following = returned.append("e", producer=producer, sequence=2)
        assert isinstance(following, Appended)


def test_who_wrote_in_the_place_of_the_batch_around_the_start_is_known() -> None:
    """What is known of producers comes with the start, and the batch may be lost after that."""
    known = ProducerState()
    known.on_batch(placed(14, epoch=1, producer=PRODUCER))
    snapshot = known.take_ahead(Offset(30), [EpochFrom(Epoch(1), Offset(17))])
    for epoch, producers in ((1, {PRODUCER}), (2, {PRODUCER + 1})):
        state = ProducerState()
        state.load(snapshot)
        state.on_batch(placed(14, epoch=epoch, producer=PRODUCER + 1))
        assert {int(each) for each, _ in state.table.producers} == producers


def placed(base: int, *, epoch: int, producer: int) -> BatchHeader:
    header = read_header(batch_of(*"abcdef", producer=producer))
    return header._replace(base_offset=Offset(base), partition_leader_epoch=Epoch(epoch))


def test_a_start_within_a_gap_is_where_replicas_begin() -> None:
    """Compaction's gaps may be cut anywhere, and reach back to what is long gone."""
    cluster = three(settings=LogSettings(segment_bytes=400, index_interval_bytes=100))
    first = cluster[1]
    for number in range(12):
        records = bytearray(encode_batch([Record(key=b"k", value=b"%d" % number, timestamp_ms=1)]))
        first.replica().append(check_batch(records), records, 0)
    cluster.run(0.3)
    log = first.replica().log
    log.sync()
    settings = CompactionSettings(min_cleanable_dirty_ratio=0.0)
    compact_at_once(first.files, log, settings, now_ms=10**9, end_offset=Offset(12))
    move_start(cluster, 3)
    assert first_base(first) < 3
    assert first.replica().group.shape.start_offset == 3
    first = again(cluster, 1)  # what was in memory is forgotten
    assert first.replica().group.shape.start_offset == 3
    cluster.run(2)
    observer = observe(cluster, 4, parents=(1,))
    cluster.run(2)
    assert observer.replica().log_start == 3
    assert observer.committed_values() == first.committed_values()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_start_waits_until_it_can_be_told_what_it_is_within(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Were it taken for the start of a batch, no other replica could begin there. Of what is
    damaged, the rest is gone on with."""
    cluster = three()
    cluster[1].append("a", "b", "c")
    cluster[1].append("d")
    cluster.run(0.3)
    replica = cluster[1].replica()

    def refuse(log: Log, offset: Offset) -> tuple[Offset, Offset]:
        raise OSError(number, "not read")

    with monkeypatch.context() as refusing:
        refusing.setattr(Log, "batch_around", refuse)
        replica.move_log_start(Offset(2))
        cluster.run(0.5)
    is_damaged = number == errno.EIO
    assert replica.log_start == (2 if is_damaged else 0)
    cluster[1].append("e")
    cluster.run(0.5)
    assert replica.log_start == 2
    assert replica.group.shape.start_offset == (2 if is_damaged else 0)
