"""Three brokers and one group: what was acknowledged stays, whoever dies."""

from random import Random
from uuid import UUID

import pytest

from tests.partitions.replication.cluster import KEY, Cluster, alone, three
from tests.partitions.storage.batches import batch
from tidemark.partitions.raft.entries import Run
from tidemark.partitions.raft.messages import AppendRequest
from tidemark.partitions.replication.group_replica import Appended
from tidemark.partitions.replication.peer_messages import GroupMessage
from tidemark.partitions.storage.journal.records import RecordKind
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import (
    ORIGIN,
    Epoch,
    NodeId,
    Offset,
    TopicPartition,
)


def test_a_single_voter_serves_once_its_vote_and_its_epoch_are_durable() -> None:
    cluster = Cluster(1)
    cluster.open([1])
    broker = cluster[1]
    broker.node.tick(cluster.now)
    kinds = []
    while not broker.replica().is_serving:
        kinds.append([record.kind for record in broker.take().records])
        broker.sync()
    assert kinds.pop() == [], "a turn in which it hears of it"
    assert kinds == [[RecordKind.HARD_STATE], [RecordKind.EPOCH_START]]


def test_a_single_voter_commits_what_is_synced() -> None:
    cluster = alone()
    broker = cluster[1]
    assert broker.append("a", "b") == Appended(Offset(0), Offset(2), Epoch(0))
    broker.take()
    assert broker.replica().high_watermark == 0
    broker.sync()
    broker.take()
    assert broker.replica().high_watermark == 2


def test_a_new_leader_serves_no_earlier_than_it_knows_what_is_committed() -> None:
    cluster = Cluster(3)
    cluster.open()
    cluster.run(1.0)
    cluster.leader().append("a")
    cluster.settle()
    old = cluster.leader()
    for broker in cluster.followers():
        # It holds "a", and has not heard that it is committed.
        assert broker.values() == ["a"]
    cluster.kill(old.node_id)
    marks = []
    for _ in range(2000):
        cluster.now += 0.001
        for broker in cluster.brokers.values():
            broker.node.tick(cluster.now)
            replica = broker.replica()
            # Within a turn: something has happened, and its end has not been yet.
            marks += [replica.high_watermark] * replica.is_serving
            output = broker.take()
            for to, messages in output.sends.items():
                cluster.pool += [(broker.node_id, to, message) for message in messages]
            broker.sync()
            marks += [replica.high_watermark] * replica.is_serving
        pool, cluster.pool = cluster.pool, []
        for source, to, message in pool:
            if to in cluster.brokers:
                receiver = cluster.brokers[to]
                receiver.node.receive(source, message, cluster.now)
                replica = receiver.replica()
                marks += [replica.high_watermark] * replica.is_serving
    assert marks
    assert {*marks} == {1}


def test_three_voters_elect_the_preferred_one() -> None:
    cluster = three()
    assert cluster.leader() is cluster[2]
    assert all(b.node.leader_of(KEY) == (2, 0) for b in cluster.brokers.values())


def test_what_a_majority_holds_is_committed_everywhere() -> None:
    cluster = three()
    cluster[2].append("a", "b")
    assert cluster[2].replica().high_watermark == 0
    cluster.run(0.3)
    assert [b.committed_values() for b in cluster.brokers.values()] == [["a", "b"]] * 3


@pytest.mark.parametrize("flush_commit", [True, False])
def test_the_leader_dies_and_another_one_goes_on(flush_commit: bool) -> None:
    cluster = three(flush_commit=flush_commit)
    cluster[2].append("a")
    cluster.run(0.3)
    cluster.kill(2)
    cluster.run(0.5)
    leader = cluster.leader()
    leader.append("b")
    cluster.run(0.3)
    assert [b.committed_values() for b in cluster.brokers.values()] == [["a", "b"]] * 2


def test_a_tail_that_nobody_else_has_is_cut() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.settle()
    cluster.cut = {(2, 1), (2, 3)}
    cluster[2].append("lost")
    cluster.settle()
    files, state = cluster.kill(2)
    cluster.cut = set()
    cluster.run(1)
    cluster.leader().append("b")
    cluster.settle()
    back = cluster.start(2, files, state)
    back.open([1, 2, 3])
    assert back.values() == ["a", "lost"]
    cluster.run(1)
    assert back.committed_values() == ["a", "b"]


@pytest.mark.parametrize("seed", range(6))
def test_what_a_single_voter_acknowledged_survives_its_power(seed: int) -> None:
    cluster = alone()
    cluster[1].append("a", "b")
    cluster.run(0.1)
    assert cluster[1].replica().high_watermark == 2
    back = cluster.start(1, *cluster.kill(1, Random(seed)))
    back.open([1])
    assert back.values() == ["a", "b"]


@pytest.mark.parametrize("has_lane", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_what_was_acknowledged_survives_the_power_of_all(seed: int, has_lane: bool) -> None:
    cluster = three(has_lane=has_lane)
    for value in "abc":
        cluster[2].append(value)
    cluster.run(0.3)
    left = {number: cluster.kill(number, Random(seed * 10 + number)) for number in (1, 2, 3)}
    for number, (files, state) in left.items():
        cluster.start(number, files, state)
    cluster.open([1, 2, 3])
    cluster.run(3)
    assert [b.committed_values() for b in cluster.brokers.values()] == [["a", "b", "c"]] * 3


def test_a_leader_that_is_cut_off_resigns_and_appends_no_more() -> None:
    cluster = three()
    cluster.cut = {(2, 1), (1, 2), (2, 3), (3, 2)}
    cluster.run(2)
    with pytest.raises(RequestError) as refusal:
        cluster[2].append("a")
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert cluster.leader() is not cluster[2]
    cluster.cut = set()
    cluster.run(1)
    assert cluster[2].replica().leader == cluster.leader().node_id


def test_a_returning_broker_does_not_disturb_the_leader() -> None:
    cluster = three()
    epoch = cluster[2].replica().epoch
    cluster.cut = {(1, 2), (2, 1), (1, 3), (3, 1)}
    cluster.run(10)
    cluster.cut = set()
    cluster.run(3)
    assert cluster.leader() is cluster[2]
    assert cluster[2].replica().epoch == epoch


def test_a_leader_that_nobody_hears_gives_way() -> None:
    cluster = three()
    cluster.cut = {(1, 2), (3, 2)}  # it can speak, and hears nothing
    cluster.run(3)
    assert not cluster[2].replica().is_leader


def test_messages_that_were_lost_are_sent_again() -> None:
    cluster = three()
    cluster[2].append("a")
    cluster.turn(cluster[2])
    cluster.pool.clear()
    cluster.run(2.5)
    assert cluster[3].committed_values() == ["a"]


def test_a_killed_leader_is_replaced_within_its_jitter_and_three_syncs() -> None:
    cluster = three()
    before = cluster.now
    cluster.kill(2)
    while not any(b.replica().is_serving for b in cluster.brokers.values()):
        cluster.run(0.01)
    assert cluster.now - before < 0.1
    assert cluster.leader() is cluster[1]  # the next one preferred


# Lies and failures


def test_a_peer_that_lies_is_refused_and_nothing_of_it_stored() -> None:
    cluster = three()
    epoch = cluster[2].replica().epoch
    lie = Run(epoch, Offset(0), Offset(2), bytes(batch(0, 1, epoch=epoch)))
    prev = cluster[2].replica().group.shape.last
    message = AppendRequest(epoch, prev, (lie,), ORIGIN)
    cluster[1].node.receive(NodeId(2), GroupMessage(KEY, message), cluster.now)
    output = cluster[1].take()
    assert output.records == ()
    assert not output.sends
    assert "refused" in output.warnings[0]
    assert cluster[1].values() == []


def test_a_leader_whose_disk_is_full_refuses_and_goes_on_when_there_is_room() -> None:
    cluster = alone()
    broker = cluster[1]
    broker.files.capacity_bytes = 0
    with pytest.raises(OSError, match="space"):
        broker.append("a")
    broker.files.capacity_bytes = None
    broker.append("b")
    cluster.run(0.1)
    assert broker.committed_values() == ["b"]


def test_one_groups_failure_is_no_other_groups() -> None:
    other, topic = PartitionKey(UUID(int=8), 0), TopicPartition("other", 0)
    cluster = three()
    cluster.open([1, 2, 3], key=other, partition=topic, preference=[2, 1, 3])
    cluster.run(1)
    cluster[2].replica().fail("cannot be read")
    cluster.run(1)
    assert cluster.leader().node_id != 2
    assert cluster.leader(other).node_id == 2
    with pytest.raises(RequestError) as refusal:
        cluster[2].append("a")
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_a_leader_appends_nothing_before_its_epoch_is_committed() -> None:
    cluster = Cluster(1)
    cluster[1].is_disk_slow = True
    cluster.open([1])
    broker = cluster[1]
    broker.node.tick(cluster.now)
    broker.take()
    broker.sync()
    broker.take()
    assert broker.replica().is_leader
    with pytest.raises(RequestError) as refusal:
        broker.append("a")
    assert refusal.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
