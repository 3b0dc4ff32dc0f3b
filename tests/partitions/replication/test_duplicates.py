"""Batches that come again, to whoever leads by then."""

import pytest

from tests.partitions.replication.cluster import three
from tidemark.partitions.replication.group_replica import Appended
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.protocol.types import (
    Offset,
    ProducerId,
)


@pytest.mark.parametrize("has_lane", [True, False])
def test_a_duplicate_after_a_failover_gets_the_offset_of_the_original(has_lane: bool) -> None:
    cluster = three(has_lane=has_lane)
    first = cluster[2].append("a", producer=5)
    cluster[2].append("b", producer=5, sequence=1)
    cluster.run(0.3)
    cluster.kill(2)
    cluster.run(1)
    again = cluster.leader().append("a", producer=5)
    assert isinstance(again, Duplicate)
    assert again.base_offset == first.base_offset
    assert cluster.leader().append("c", producer=5, sequence=2) == Appended(
        Offset(2), Offset(3), cluster.leader().replica().epoch
    )


def test_a_duplicate_of_what_is_not_committed_says_where_to_wait() -> None:
    cluster = three()
    cluster[2].append("a", producer=5)
    again = cluster[2].append("a", producer=5)
    assert isinstance(again, Duplicate)
    assert again.next_offset == 1
    assert cluster[2].replica().high_watermark == 0


def test_what_was_cut_is_no_duplicate() -> None:
    cluster = three()
    cluster.cut = {(2, 1), (2, 3)}
    cluster[2].append("lost", producer=5)
    cluster.settle()
    cluster.run(2)
    cluster.cut = set()
    cluster.run(1)
    assert cluster[2].values() == []
    assert cluster[2].replica().producers.newest_epoch(ProducerId(5)) is None
