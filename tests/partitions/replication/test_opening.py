"""What of a directory is a replica: after crashes, losses and damage."""

import errno
import os
from dataclasses import replace
from random import Random

import pytest

from tests.partitions.replication.cluster import KEY, TOPIC, Broker, Cluster
from tests.partitions.storage.batches import batch
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.state_db import Condition
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, NodeId, Offset


def after(cluster: Cluster, rng: Random | None = None) -> Broker:
    return cluster.start(1, *cluster.kill(1, rng))


def three(*, flush_commit: bool = True) -> Cluster:
    cluster = Cluster(3)
    cluster.open([1, 2, 3], preference=[1, 2, 3], flush_commit=flush_commit)
    cluster.run(1)
    return cluster


def test_a_new_partition_is_recorded_before_anything_is_said_of_it() -> None:
    cluster = Cluster(1)
    cluster.open([1])
    assert KEY in cluster[1].state.partition_states()


@pytest.mark.parametrize("seed", range(8))
def test_a_new_partitions_files_are_on_the_disk_once_it_is_recorded(seed: int) -> None:
    cluster = Cluster(1)
    cluster[1].open([1])
    back = after(cluster, Random(seed))
    assert KEY in back.state.partition_states()
    assert list(back.files.sizes(f"/data/{TOPIC}")) == ["00000000000000000000.log"]


@pytest.mark.parametrize("seed", range(8))
def test_what_an_attempt_has_made_and_not_synced_is_synced_by_the_next_one(seed: int) -> None:
    cluster = Cluster(1)
    cluster[1].files.spared_syncs, cluster[1].files.failing_syncs = 1, 1
    with pytest.raises(SyncFailed):
        cluster[1].open([1])
    cluster[1].open([1])
    back = after(cluster, Random(seed))
    assert KEY in back.state.partition_states()
    assert list(back.files.sizes(f"/data/{TOPIC}")) == ["00000000000000000000.log"]


def test_a_replica_opens_as_it_was() -> None:
    cluster = three()
    cluster[1].append("a")
    cluster.run(0.3)
    before = cluster[1].replica()
    back = after(cluster)
    opened = back.open([1, 2, 3])
    assert opened.group.shape.rows == before.group.shape.rows
    assert opened.hard_state == before.hard_state
    assert back.values() == ["a"]


def test_batches_whose_epoch_never_reached_the_journal_are_given_up() -> None:
    cluster = Cluster(1)
    cluster.open([1, 2, 3])
    log = cluster[1].replica().log
    log.append(batch(0, epoch=0))
    log.sync()
    back = after(cluster)
    opened = back.open([1, 2, 3])
    assert opened.log_end == 0
    assert opened.group.shape.end_offset == 0


def test_a_log_that_lost_its_end_is_unclean() -> None:
    cluster = three(flush_commit=False)
    cluster[1].append("a")
    cluster.run(0.3)
    cluster.kill(2)
    cluster.run(0.3)
    cluster[1].replica().tell(lambda group: group.step_down())
    cluster.run(2)  # another epoch starts behind "a"
    assert cluster[1].replica().group.shape.rows[-1].start_offset == 1
    files, state = cluster.kill(1)
    broker = cluster.start(1, files, state)
    path = broker.directory.partition_path(broker.directory.partitions()[0])
    log = Log.open(files, path, LogSettings())
    log.truncate(Offset(0))
    opened = broker.open([1, 2, 3], flush_commit=False)
    assert not opened.group.is_clean
    assert [row.epoch for row in opened.group.shape.rows] == [0]
    assert broker.state.partition_states()[KEY].condition is Condition.UNCLEAN


def test_the_voters_stay_the_newest_that_were_durable_where_a_log_lost_its_end() -> None:
    """The change was committed, say. With the voters of before, two could lead in one epoch."""
    cluster = three(flush_commit=False)
    cluster[1].append("a")
    cluster.run(0.3)
    files, state = cluster.kill(1)
    broker = cluster.start(1, files, state)
    stored = state.partition_states()[KEY]
    joint = Configuration((NodeId(1), NodeId(4)), (NodeId(1), NodeId(2), NodeId(3)))
    row = EpochStart(Epoch(stored.epochs[-1].epoch + 1), Offset(1), NodeId(1), joint)
    state.save([replace(stored, epochs=(*stored.epochs, row))])
    path = broker.directory.partition_path(broker.directory.partitions()[0])
    Log.open(files, path, LogSettings()).truncate(Offset(0))
    opened = broker.open([1, 2, 3], flush_commit=False)
    assert opened.group.shape.rows[-1].epoch < row.epoch
    assert opened.group.config == joint
    assert state.partition_states()[KEY].epochs[-1].config == joint


def test_a_damaged_replica_is_in_doubt() -> None:
    cluster = Cluster(1)
    cluster.open([1, 2, 3])
    back = after(cluster)
    stored = back.state.partition_states()[KEY]
    back.state.save([replace(stored, condition=Condition.DAMAGED)])
    opened = back.open([1, 2, 3])
    assert opened.group.in_doubt
    assert not opened.group.is_clean
    assert opened.state_row(Offset(0)).condition is Condition.DAMAGED


def test_a_log_that_cannot_be_served_says_why() -> None:
    cluster = three()
    cluster[1].append("a")
    cluster.run(0.3)
    cluster[1].checkpoint()
    files, state = cluster.kill(1)
    broker = cluster.start(1, files, state)
    path = broker.directory.partition_path(broker.directory.partitions()[0])
    file = files.open(f"{path}/{'0' * 20}.log")
    file.truncate(10)
    with pytest.raises(StorageError):
        broker.open([1, 2, 3])


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_log_that_a_start_could_not_sync_is_unclean_if_the_journal_does_not_have_it(
    number: int,
) -> None:
    """What it shows is in the page cache, and the next start may find less."""
    cluster = three(flush_commit=False)
    cluster[1].append("a")
    cluster.run(0.3)
    failing = after(cluster)
    failing.files.failing_syncs, failing.files.sync_error = 1, number
    with pytest.raises(StorageError, match=os.strerror(number)):
        failing.open([1, 2, 3], flush_commit=False)
    assert not after(cluster).open([1, 2, 3], flush_commit=False).group.is_clean


def test_it_is_said_when_a_replica_that_may_have_lost_something_counts_again() -> None:
    cluster = three()
    cluster[1].append("a")
    cluster.run(0.3)
    left = cluster.kill(1)
    cluster.run(1)
    back = cluster.start(1, *left)
    stored = back.state.partition_states()[KEY]
    back.state.save([replace(stored, condition=Condition.UNCLEAN)])
    opened = back.open([1, 2, 3])
    assert list(back.node.concerns.unclean) == [opened]
    cluster.run(3)
    assert opened.group.is_clean
    assert not back.node.concerns.unclean
    cluster.run(4)
    said = "all replicas here hold again what they may have lost, count and vote"
    assert back.warnings.count(said) == 1
