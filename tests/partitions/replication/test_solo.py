"""A replica that is alone in its group and syncs nothing: an append is all there is to do. One that
syncs is in `test_solo_synced`."""

from __future__ import annotations

from functools import partial

import pytest

from tests.partitions.replication.cluster import KEY, Cluster, alone
from tidemark.partitions.raft.group import Group
from tidemark.protocol.errors import RequestError
from tidemark.protocol.records.header import place_producer, read_fields, read_header
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Epoch, NodeId, Offset, Position


def test_a_lone_replica_that_syncs_nothing_commits_by_appending() -> None:
    broker = alone(flush_commit=False)[1]
    assert broker.replica().commits_in is not None
    for count in range(1, 4):
        broker.append("a")
        assert broker.replica().committed == Position(Epoch(0), Offset(count))
        assert broker.replica().commits_in is not None


def test_what_a_lone_replica_has_committed_is_reported_once_a_turn() -> None:
    broker = alone(flush_commit=False)[1]
    broker.append("a")
    broker.append("b")
    output = broker.take()
    assert [change.key for change in output.changes if change.committed] == [KEY]
    assert not output.records
    assert not output.sends


def idempotent(sequence: int, *, is_transactional: bool = False) -> bytearray:
    batch = bytearray(encode_batch([Record(timestamp_ms=1, value=b"a")]))
    place_producer(
        batch, 0, producer_id=7, epoch=0, sequence=sequence, is_transactional=is_transactional
    )
    return batch


def test_a_batch_in_a_transaction_is_not_simply_what_comes_next() -> None:
    replica = alone(flush_commit=False)[1].replica()
    first, second, third = idempotent(0), idempotent(1), idempotent(2)
    replica.append(read_header(first), first, 1)
    assert replica.append_next(read_fields(second), second, 1)
    others = idempotent(2, is_transactional=True)
    assert not replica.append_next(read_fields(others), others, 1)
    assert replica.append_next(read_fields(third), third, 1)
    assert not replica.append_next(read_fields(third), third, 1), "it is there already"


def test_whoever_looks_at_the_core_finds_all_that_was_appended() -> None:
    broker = alone(flush_commit=False)[1]
    broker.append("a", "b")
    assert broker.replica().group.shape.end_offset == 2
    assert broker.replica().group.committed == Position(Epoch(0), Offset(2))


def test_a_change_of_the_flush_mode_ends_it_and_begins_it_anew() -> None:
    cluster = alone(flush_commit=False)
    replica = cluster[1].replica()
    replica.syncs_before_ack = True
    cluster[1].append("a")
    assert replica.high_watermark == 0
    cluster.settle()
    assert replica.high_watermark == 1
    replica.syncs_before_ack = False
    cluster[1].append("b")
    cluster.settle()
    assert replica.commits_in is not None


def test_a_learner_is_sent_what_is_appended() -> None:
    cluster = Cluster(2)
    cluster.open([1], flush_commit=False)
    cluster.run(1)
    leader = cluster[1]
    assert leader.replica().commits_in is not None
    leader.replica().tell(partial(Group.add_learner, node=NodeId(2)))
    leader.append("a")
    cluster.run(1)
    assert leader.replica().commits_in is None
    leader.append("b")
    cluster.run(1)
    assert cluster[2].values() == ["a", "b"]


def test_a_group_that_all_brokers_want_to_hear_of_is_not_solo() -> None:
    assert alone(flush_commit=False, is_eager=True)[1].replica().commits_in is None


def test_a_replica_that_was_closed_or_has_failed_appends_nothing() -> None:
    for end in ("close", "fail"):
        broker = alone(flush_commit=False)[1]
        replica = broker.replica()
        replica.close() if end == "close" else replica.fail("is broken")
        with pytest.raises(RequestError):
            broker.append("a")
        assert replica.log_end == 0


def test_a_lone_leader_that_steps_down_appends_nothing() -> None:
    broker = alone(flush_commit=False)[1]
    broker.replica().tell(Group.step_down)
    with pytest.raises(RequestError):
        broker.append("a")


def test_a_batch_that_the_disk_does_not_take_is_not_committed() -> None:
    broker = alone(flush_commit=False)[1]
    broker.append("a")
    broker.files.capacity_bytes = 0
    with pytest.raises(OSError, match="No space"):
        broker.append("b")
    assert broker.replica().committed == Position(Epoch(0), Offset(1))
