"""Throttles limit what new replicas are sent, and nothing else, as long as they are set."""

import pytest

from tests.partitions.replication.cluster import KEY, batch_of
from tests.partitions.replication.moving import Moving
from tests.partitions.replication.moving_many import Many
from tidemark.partitions.replication.reassigning import ReassignmentTiming, Stage
from tidemark.partitions.replication.throttles import UNLIMITED, Copy, CopyLimits, Throttle
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.records.header import check_batch
from tidemark.protocol.types import NodeId

OTHER = PartitionKey(KEY.topic_id, KEY.partition + 1)
FOURTH, FIFTH = map(NodeId, (4, 5))
TIMING = ReassignmentTiming(near_bytes=1000)
RATE = 10_000


def with_records(*throttles: Throttle) -> Moving:
    """A log of 40 KB that is on its way to broker 4."""
    cluster = Moving(timing=TIMING)
    for _ in range(40):
        cluster[1].append("x" * 1000)
        cluster.settle()
    cluster.parts[NodeId(1)].throttles = throttles
    cluster.wish(1, 2, 4)
    return cluster


def copied(cluster: Moving) -> int:
    return cluster.parts[NodeId(1)].bytes_sent


@pytest.mark.parametrize("throttle", [Throttle(RATE, {KEY}), Throttle(RATE, {KEY}, FOURTH)])
def test_a_learner_is_sent_no_more_than_its_throttle_lets_through(throttle: Throttle) -> None:
    cluster = with_records(throttle)
    begun, before = cluster.now, 0
    for _ in range(3):
        cluster.go(1.0)
        assert 0.8 * RATE <= copied(cluster) - before <= 1.2 * RATE
        assert copied(cluster) <= RATE * (cluster.now - begun) + 1100
        before = copied(cluster)


def test_a_learner_is_sent_something_however_low_its_throttle_is() -> None:
    """A tenth of a byte each time that it is looked at."""
    cluster = with_records(Throttle(2, {KEY}))
    begun = cluster.now
    cluster.go(1.0)
    assert 0 < copied(cluster) <= 2 * (cluster.now - begun) + 1100


def test_a_throttle_is_let_go_of_when_it_is_removed() -> None:
    cluster = with_records(Throttle(0, {KEY}))
    cluster.go(10)
    assert copied(cluster) == 0
    state = cluster.state()
    assert state.stage is Stage.COPY
    assert state.why == "a limit holds back what broker 4 is sent"
    cluster.parts[NodeId(1)].throttles = ()
    cluster.wait_done(1.0)
    assert len(cluster[4].values()) == 40


def test_who_votes_is_not_throttled() -> None:
    cluster = with_records(Throttle(0, {KEY}))
    cluster.go(1)
    cluster[1].append("live")
    cluster.settle()
    assert {cluster[node].values()[-1] for node in (2, 3)} == {"live"}


def test_a_throttle_of_something_else_is_none() -> None:
    cluster = with_records(Throttle(0, {OTHER}), Throttle(0, {KEY}, FIFTH))
    cluster.wait_done(1.0)


def test_those_that_share_a_limit_get_equal_parts_and_the_lowest_holds() -> None:
    copies = [Copy(KEY, FOURTH), Copy(KEY, FIFTH), Copy(OTHER, FOURTH)]
    fourth = Throttle(100, {KEY, OTHER}, FOURTH)
    leader = Throttle(90, {KEY})
    of_all = Throttle(60, None)

    def shares(*limits: Throttle) -> list[float]:
        return CopyLimits().shares(copies, limits, elapsed=1.0, elapsed_max=1.0)

    assert shares() == [UNLIMITED] * 3
    assert shares(fourth) == [50, UNLIMITED, 50]
    assert shares(fourth, leader) == [45, 45, 50]
    assert shares(fourth, leader, of_all) == [20, 20, 20]


def test_what_was_let_through_is_made_good_before_anything_else_is_sent() -> None:
    limits, copies = CopyLimits(), [Copy(KEY, FOURTH), Copy(KEY, FIFTH)]
    fourth = Throttle(100, {KEY}, FOURTH)

    def shares(elapsed: float = 1.0) -> list[float]:
        return limits.shares(copies, (fourth,), elapsed=elapsed, elapsed_max=1.0)

    limits.let_through(copies[1], 1000, (fourth,))
    assert shares() == [100, UNLIMITED]
    limits.let_through(copies[0], 150, (fourth,))
    assert [shares()[0] for _ in range(3)] == [0, 50, 100]
    limits.let_through(copies[0], 1000, (fourth,))
    assert shares(60.0)[0] == 100, "of a long time only a part is made use of, but all is paid"


def test_many_small_logs_are_limited_together_though_each_is_nearly_there_at_once() -> None:
    cluster = Many(after=(NodeId(1), NodeId(2), FOURTH))
    for key in cluster.keys:
        records = batch_of("x" * 5000)
        cluster[1].replica(key).append(check_batch(records), records, 0)
    cluster.settle()
    leader = cluster.parts[NodeId(1)]
    leader.throttles = (Throttle(RATE, {*cluster.keys}, FOURTH),)
    begun, done = cluster.now, set[PartitionKey]()
    while len(done) < len(cluster.keys):
        cluster.look()
        done |= {key for key, _ in leader.done()}
        assert cluster.now < begun + 30
    size = 5000 * len(cluster.keys)
    # The last ones need not wait for what they let through themselves.
    assert cluster.now - begun > 0.7 * size / RATE
