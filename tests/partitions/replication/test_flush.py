"""With `flush=os` an append is durable; what changes with the setting."""

from random import Random

import pytest

from tests.partitions.replication.cluster import alone, three
from tidemark.partitions.storage.journal.records import RecordKind


def test_with_flush_os_an_append_is_the_commit() -> None:
    cluster = alone(flush_commit=False)
    cluster[1].append("a", "b")
    assert cluster[1].replica().high_watermark == 2
    assert not cluster[1].take().records


def test_with_flush_os_batches_are_in_no_journal_but_epochs_are() -> None:
    cluster = three(flush_commit=False)
    cluster[2].append("a")
    kinds = [record.kind for record in cluster[2].take().records]
    assert RecordKind.BATCHES not in kinds
    cluster.run(0.3)
    files, state = cluster.kill(2)
    back = cluster.start(2, files, state)
    back.open([1, 2, 3], flush_commit=False)
    assert back.values() == ["a"]


@pytest.mark.parametrize("seed", range(6))
def test_a_change_to_flush_commit_syncs_what_was_not(seed: int) -> None:
    cluster = alone(flush_commit=False)
    broker = cluster[1]
    broker.append("a")
    broker.replica().syncs_before_ack = True
    broker.append("b")
    broker.take()
    assert broker.replica().high_watermark == 1
    broker.sync()
    cluster.run(0.1)
    assert broker.replica().high_watermark == 2
    files, state = cluster.kill(1, Random(seed))
    back = cluster.start(1, files, state)
    back.open([1])
    assert back.values() == ["a", "b"]


def test_a_change_to_flush_os_makes_an_append_the_commit() -> None:
    cluster = alone()
    broker = cluster[1]
    broker.replica().syncs_before_ack = False
    broker.append("a")
    assert broker.replica().high_watermark == 1


def test_with_flush_os_a_majority_has_to_hold_it_too() -> None:
    cluster = three(flush_commit=False)
    cluster[2].append("a")
    assert cluster[2].replica().high_watermark == 0
    cluster.run(0.3)
    assert cluster[2].replica().high_watermark == 1
