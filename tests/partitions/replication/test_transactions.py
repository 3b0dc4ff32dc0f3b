"""What replicas know of transactions, whoever leads, and whatever becomes of a marker."""

from random import Random

import pytest

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.protocol.records.control import Marker
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset, ProducerId

PRODUCER = ProducerId(5)
ABORT = Marker(is_commit=False, coordinator_epoch=1)
COMMIT = Marker(is_commit=True, coordinator_epoch=1)


def three(*, flush_commit: bool = True, has_lane: bool = True) -> Cluster:
    cluster = Cluster(3, has_lane=has_lane)
    cluster.open([1, 2, 3], flush_commit=flush_commit, preference=(2, 1, 3))
    cluster.run(1)
    assert cluster.leader() is cluster[2]
    return cluster


def write(broker: Broker, value: str = "v") -> None:
    """A record in the producer's transaction."""
    broker.replica().append_own(
        encode_batch(
            [Record(value=value.encode(), timestamp_ms=1)],
            producer_id=PRODUCER,
            producer_epoch=0,
            is_transactional=True,
        )
    )


def end(broker: Broker, marker: Marker) -> None:
    broker.replica().append_marker(PRODUCER, 0, marker, raises_epoch=False)


def stable(broker: Broker) -> int:
    replica = broker.replica()
    return replica.producers.transactions.last_stable_offset(replica.high_watermark)


def aborted(broker: Broker) -> list[tuple[int, int]]:
    """First offsets and markers' offsets."""
    found = broker.replica().producers.transactions.aborted(Offset(0), Offset(1_000))
    return [(over.first_offset, over.marker_offset) for over in found]


@pytest.mark.parametrize("has_lane", [True, False])
@pytest.mark.parametrize("flush_commit", [True, False])
def test_every_replica_knows_what_is_open_and_what_was_aborted(
    flush_commit: bool, has_lane: bool
) -> None:
    cluster = three(flush_commit=flush_commit, has_lane=has_lane)
    write(cluster[2])
    cluster.run(0.3)
    assert [stable(cluster[node]) for node in (1, 2, 3)] == [0, 0, 0]
    end(cluster[2], ABORT)
    write(cluster[2])
    cluster.run(2)
    for node in (1, 2, 3):
        assert aborted(cluster[node]) == [(0, 1)]
        assert stable(cluster[node]) == 2


def test_a_marker_that_comes_in_one_run_with_batches_is_read_as_well() -> None:
    cluster = three()
    write(cluster[2])
    end(cluster[2], ABORT)
    write(cluster[2])
    end(cluster[2], COMMIT)
    cluster.run(2)
    for node in (1, 2, 3):
        assert aborted(cluster[node]) == [(0, 1)]
        assert stable(cluster[node]) == 4


def test_a_marker_that_is_not_committed_makes_nothing_stable() -> None:
    cluster = three()
    write(cluster[2])
    cluster.run(0.3)
    cluster.cut = {(2, 1), (2, 3)}
    end(cluster[2], COMMIT)
    cluster.settle()
    assert stable(cluster[2]) == 0


def test_a_marker_that_was_cut_with_the_logs_end_did_not_end_anything() -> None:
    cluster = three()
    write(cluster[2])
    cluster.run(0.3)
    cluster.cut = {(2, 1), (2, 3), (1, 2), (3, 2)}
    end(cluster[2], ABORT)
    cluster.run(3)
    leader = cluster[1] if cluster[1].replica().is_serving else cluster[3]
    assert leader.replica().is_serving
    write(leader, "more")
    end(leader, COMMIT)
    cluster.cut = set()
    cluster.run(3)
    for node in (1, 2, 3):
        assert aborted(cluster[node]) == []
        assert stable(cluster[node]) == cluster.leader().replica().high_watermark


@pytest.mark.parametrize("seed", range(8))
def test_who_leads_after_a_loss_of_power_knows_what_was_aborted(seed: int) -> None:
    cluster = three()
    write(cluster[2])
    end(cluster[2], ABORT)
    write(cluster[2])
    cluster.run(0.5)
    files, state = cluster.kill(2, Random(seed))
    cluster.run(3)
    leader = cluster.leader()
    assert aborted(leader) == [(0, 1)]
    assert stable(leader) == 2
    again = cluster.start(2, files, state)
    again.open([1, 2, 3], flush_commit=True)
    cluster.run(3)
    assert aborted(again) == [(0, 1)]
    assert stable(again) == 2


def test_a_replica_that_begins_where_the_log_does_knows_what_is_open_below() -> None:
    cluster = three()
    cluster.cut = {(2, 3), (3, 2), (1, 3), (3, 1)}
    write(cluster[2])
    for _ in range(3):
        cluster[2].append("plain")
    cluster.run(0.5)
    cluster[2].replica().move_log_start(Offset(2))
    cluster.run(0.5)
    cluster.cut = set()
    cluster.run(3)
    behind = cluster[3].replica()
    assert behind.log_start == 2
    assert PRODUCER in behind.producers.transactions.opened
    end(cluster.leader(), ABORT)
    cluster.run(2)
    assert aborted(cluster[3]) == [(0, 4)]


def test_what_was_aborted_below_the_start_is_forgotten() -> None:
    cluster = three()
    write(cluster[2])
    end(cluster[2], ABORT)
    write(cluster[2])
    end(cluster[2], ABORT)
    cluster.run(0.5)
    cluster[2].replica().move_log_start(Offset(2))
    cluster.run(2)
    for node in (1, 2, 3):
        assert aborted(cluster[node]) == [(2, 3)]


def test_a_log_whose_end_was_cut_tells_its_markers_again() -> None:
    cluster = three()
    write(cluster[2])
    end(cluster[2], ABORT)
    cluster.run(0.5)
    cluster.cut = {(2, 1), (2, 3), (1, 2), (3, 2)}
    cluster[2].append("never")
    cluster.run(3)
    leader = cluster[1] if cluster[1].replica().is_serving else cluster[3]
    leader.append("instead")
    cluster.cut = set()
    cluster.run(3)
    assert cluster[2].values()[-1] == "instead"
    assert aborted(cluster[2]) == [(0, 1)]
