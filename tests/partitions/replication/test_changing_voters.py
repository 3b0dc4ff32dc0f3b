"""With `flush=os` a loss of power takes the end of a log, but never a change of its voters."""

from __future__ import annotations

from random import Random

import pytest

from tests.partitions.replication.cluster import Broker, Cluster
from tests.partitions.storage.batches import batch
from tidemark.partitions.raft.entries import Configuration, EpochStart, Run
from tidemark.partitions.raft.messages import AppendRequest
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.protocol.types import Epoch, NodeId, Offset, Position


def nodes(*numbers: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, numbers))


OLD = Configuration(nodes(1, 2, 3))
JOINT = Configuration(nodes(1, 2, 4), nodes(1, 2, 3))
NOWHERE = Position(Epoch(-1), Offset(0))
SEEDS = range(6)


def four() -> Cluster:
    """Three voters, and an empty replica on 4."""
    cluster = Cluster(4)
    cluster.open([1, 2, 3], preference=[1, 2, 3], flush_commit=False)
    cluster.run(1)
    cluster.leader().append("a", "b")
    cluster.run(0.3)
    return cluster


def after(cluster: Cluster, node: int, seed: int) -> Broker:
    """It has lost its power."""
    broker = cluster.start(node, *cluster.kill(node, Random(seed)))
    broker.open([1, 2, 3], flush_commit=False)
    return broker


def run(offset: int, epoch: int) -> Run:
    data = bytes(batch(offset, epoch=epoch))
    return Run(Epoch(epoch), Offset(offset), Offset(offset + 1), data)


def send(
    replica: GroupReplica, source: NodeId, epoch: int, prev: Position, *entries: EpochStart | Run
) -> None:
    replica.receive(source, AppendRequest(Epoch(epoch), prev, entries, NOWHERE))


def change(cluster: Cluster) -> None:
    leader = cluster.leader().replica()
    leader.tell(lambda group: group.add_learner(NodeId(4)))
    cluster.run(0.3)
    leader.tell(lambda group: group.change_config(nodes(1, 2, 4)))
    cluster.run(1)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_precedes_a_change_of_voters_survives_the_power(seed: int) -> None:
    """Else they would be asked by the new voters, and compared by logs from before them."""
    cluster = four()
    change(cluster)
    cluster.leader().append("c")
    cluster.run(0.3)
    for node in (1, 2, 4):
        replica = after(cluster, node, seed).replica()
        assert replica.group.config == Configuration(nodes(1, 2, 4))
        changed = next(row for row in replica.group.shape.rows if row.config == JOINT)
        assert replica.log_end >= changed.start_offset == 2
        assert replica.group.shape.last >= changed.position


def test_an_epoch_with_the_same_voters_costs_no_sync_of_the_log() -> None:
    """Thousands may begin at once, where a broker has died."""
    cluster = four()
    broker = cluster.leader()
    broker.files.synced_paths.clear()
    broker.replica().tell(lambda group: group.step_down())
    cluster.run(2)
    assert len(broker.replica().group.shape.rows) > 1
    assert not [path for path in broker.files.synced_paths if path.endswith(".log")]


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_behind_a_cut_a_change_of_voters_waits_for_what_precedes_it(
    seed: int, *, is_written: bool
) -> None:
    """The journal has the cut first, then the batches are written, and only then it has the
    change."""
    cluster = Cluster(1)
    broker = cluster[1]
    replica = broker.open([1, 2, 3], flush_commit=False)
    leader, other = NodeId(2), NodeId(3)
    send(replica, other, 0, NOWHERE, EpochStart(Epoch(0), Offset(0), other, OLD), run(0, 0))
    cluster.settle()
    send(
        replica,
        leader,
        2,
        NOWHERE,
        EpochStart(Epoch(1), Offset(0), leader, OLD),
        run(0, 1),
        EpochStart(Epoch(2), Offset(1), leader, JOINT),
    )
    broker.is_disk_slow = True
    cluster.step()
    broker.sync()  # the cut
    assert replica.log_end == 1
    if is_written:
        cluster.step()
        broker.sync()  # and what comes behind it
    opened = after(cluster, 1, seed).replica()
    assert opened.group.config == (JOINT if is_written else OLD)
    if is_written:
        assert opened.group.shape.last == Position(Epoch(2), Offset(1))


@pytest.mark.parametrize("seed", SEEDS)
def test_voters_that_were_cut_are_new_when_they_come_again(seed: int) -> None:
    cluster = Cluster(1)
    replica = cluster[1].open([1, 2, 3], flush_commit=False)
    first, second = NodeId(2), NodeId(3)
    send(replica, first, 0, NOWHERE, EpochStart(Epoch(0), Offset(0), first, OLD), run(0, 0))
    cluster.settle()
    held = Position(Epoch(0), Offset(1))
    send(replica, first, 1, held, EpochStart(Epoch(1), Offset(1), first, JOINT))
    cluster.settle()
    send(replica, second, 2, held, run(1, 0))
    cluster.settle()
    assert replica.group.config == OLD
    held = Position(Epoch(0), Offset(2))
    send(replica, second, 2, held, EpochStart(Epoch(2), Offset(2), second, JOINT))
    cluster.settle()
    opened = after(cluster, 1, seed).replica()
    assert opened.group.config == JOINT
    assert opened.group.shape.last == Position(Epoch(2), Offset(2))
