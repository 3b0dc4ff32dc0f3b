"""Throttles limit what new replicas are sent, and nothing else, as long as they are set."""

import pytest

from tests.partitions.replication.cluster import KEY
from tests.partitions.replication.test_reassigning import Moving
from tidemark.partitions.replication.reassigning import NO_LIMIT, ReassignmentTiming, Stage
from tidemark.partitions.replication.throttles import UNLIMITED, Copy, Throttle, copy_rates
from tidemark.partitions.storage.state_db import PartitionKey
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
    assert copy_rates(copies, NO_LIMIT, ()) == [UNLIMITED] * 3
    assert copy_rates(copies, NO_LIMIT, (fourth,)) == [50, UNLIMITED, 50]
    assert copy_rates(copies, NO_LIMIT, (fourth, leader)) == [45, 45, 50]
    assert copy_rates(copies, 60, (fourth, leader)) == [20, 20, 20]
    assert copy_rates([], 60, (fourth,)) == []
