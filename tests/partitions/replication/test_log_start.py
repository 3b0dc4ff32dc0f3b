"""What a log gives up at its start, it does not forget of its producers: whoever dies, and how."""

from random import Random

import pytest

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.partitions.replication.group_replica import Appended
from tidemark.partitions.state_machines.producers import Duplicate
from tidemark.partitions.storage.journal.records import RecordKind
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import Offset

SETTINGS = LogSettings(segment_bytes=200)  # two batches a segment
PRODUCER = 5


def alone(*, flush_commit: bool = True) -> Cluster:
    cluster = Cluster(1)
    cluster.open([1], flush_commit=flush_commit, settings=SETTINGS)
    cluster.run(0.01)
    return cluster


def three(*, flush_commit: bool = True) -> Cluster:
    cluster = Cluster(3)
    cluster.open([1, 2, 3], flush_commit=flush_commit, settings=SETTINGS, preference=(2, 1, 3))
    cluster.run(1)
    assert cluster.leader() is cluster[2]
    return cluster


def produce(broker: Broker, first: int, end: int) -> None:
    """One batch for each sequence."""
    for sequence in range(first, end):
        broker.append(f"v{sequence}", producer=PRODUCER, sequence=sequence)


def again(
    cluster: Cluster, node_id: int, rng: Random | None, *, flush_commit: bool = True
) -> Broker:
    """The broker after its process was killed, or its power was cut."""
    voters = sorted(cluster.brokers)
    files, state = cluster.kill(node_id, rng)
    broker = cluster.start(node_id, files, state)
    broker.open(voters, settings=SETTINGS, flush_commit=flush_commit)
    return broker


def check_knows(broker: Broker, newest: int) -> None:
    """The broker takes the producer's last batch for a retry, a gap for one, and the next one."""
    retried = broker.append(f"v{newest}", producer=PRODUCER, sequence=newest)
    assert isinstance(retried, Duplicate)
    assert retried.base_offset == newest
    with pytest.raises(RequestError) as refusal:
        broker.append("gap", producer=PRODUCER, sequence=newest + 2)
    assert refusal.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    following = broker.append("next", producer=PRODUCER, sequence=newest + 1)
    assert isinstance(following, Appended)


@pytest.mark.parametrize("flush_commit", [True, False])
@pytest.mark.parametrize("seed", [None, *range(20)])
def test_a_lone_broker_knows_its_producers_after_a_crash(
    seed: int | None, flush_commit: bool
) -> None:
    cluster = alone(flush_commit=flush_commit)
    produce(cluster[1], 0, 7)
    cluster.run(0.1)
    cluster[1].replica().move_log_start(Offset(7))
    cluster.run(0.1)
    rng = None if seed is None else Random(seed)
    broker = again(cluster, 1, rng, flush_commit=flush_commit)
    cluster.run(1)
    assert broker.replica().log_start == 7
    check_knows(broker, 6)


@pytest.mark.parametrize("seed", range(10))
def test_and_when_the_journal_has_forgotten_it(seed: int) -> None:
    cluster = alone()
    produce(cluster[1], 0, 5)
    cluster.run(0.1)
    cluster[1].replica().move_log_start(Offset(5))
    cluster.run(0.1)
    cluster[1].checkpoint()
    produce(cluster[1], 5, 9)
    cluster.run(0.1)
    broker = again(cluster, 1, Random(seed))
    cluster.run(1)
    check_knows(broker, 8)


def test_the_start_moves_once_what_is_known_of_producers_is_committed() -> None:
    cluster = three()
    produce(cluster[2], 0, 3)
    cluster.run(0.3)
    cluster.cut = {(2, 1), (2, 3)}
    produce(cluster[2], 3, 4)
    cluster[2].replica().move_log_start(Offset(3))
    cluster.settle()
    assert cluster[2].replica().log_start == 0
    cluster.cut = set()
    cluster.run(2)
    assert cluster.leader().replica().log_start == 3
    check_knows(cluster.leader(), 3)


def test_what_was_cut_meanwhile_is_not_remembered_with_the_start() -> None:
    cluster = three()
    produce(cluster[2], 0, 3)
    cluster.run(0.3)
    cluster.cut = {(2, 1), (2, 3)}
    produce(cluster[2], 3, 6)
    cluster[2].replica().move_log_start(Offset(3))
    cluster.run(2)
    assert cluster[1].replica().is_serving
    cluster.cut = set()
    cluster.run(1)
    assert cluster[2].replica().log_start == 3
    cluster.kill(1)
    cluster.run(2)
    check_knows(cluster.leader(), 2)


def test_a_cut_back_to_the_start_does_not_forget_it() -> None:
    cluster = three()
    produce(cluster[2], 0, 4)
    cluster[2].append("of nobody")
    cluster.run(0.3)
    cluster[2].replica().move_log_start(Offset(5))
    cluster.run(0.3)
    cluster.cut = {(2, 1), (2, 3)}
    produce(cluster[2], 4, 11)  # the snapshots of these rolls take the place of older ones
    cluster.settle()
    cluster[2].checkpoint()
    cluster.run(2)
    cluster.cut = set()
    cluster.run(1)
    assert cluster[2].replica().log_end == 5
    cluster.kill(1)
    cluster.run(2)
    assert cluster.leader() is cluster[2]
    check_knows(cluster[2], 3)


@pytest.mark.parametrize("seed", range(10))
def test_a_follower_that_gives_up_as_its_leader_did_knows_the_producers(seed: int) -> None:
    cluster = three()
    produce(cluster[2], 0, 5)
    cluster.run(0.3)
    cluster[2].replica().move_log_start(Offset(5))
    cluster.run(0.5)
    assert cluster[1].replica().log_start == 5
    again(cluster, 1, Random(seed))
    cluster.run(1)
    cluster.kill(2)
    cluster.run(2)
    check_knows(cluster.leader(), 4)


@pytest.mark.parametrize("seed", [None, *range(5)])
def test_a_follower_that_is_reset_knows_the_producers_of_what_it_never_had(
    seed: int | None,
) -> None:
    cluster = three()
    files, state = cluster.kill(1)
    produce(cluster[2], 0, 6)
    cluster.run(0.3)
    cluster[2].replica().move_log_start(Offset(6))
    cluster.run(0.3)
    cluster.start(1, files, state).open([1, 2, 3], settings=SETTINGS)
    cluster.run(3)
    assert cluster[1].replica().log_start == 6
    if seed is not None:
        again(cluster, 1, Random(seed))
        cluster.run(1)
    cluster.kill(2)
    cluster.run(2)
    assert cluster.leader() is cluster[1]
    check_knows(cluster[1], 5)


@pytest.mark.parametrize("seed", [None, *range(5)])
def test_batches_that_are_known_already_change_nothing(seed: int | None) -> None:
    cluster = alone()
    produce(cluster[1], 0, 6)
    cluster.run(0.1)
    cluster[1].replica().move_log_start(Offset(4))
    cluster.run(0.1)
    before = cluster[1].replica().producers.encode()
    rng = None if seed is None else Random(seed)
    assert again(cluster, 1, rng).replica().producers.encode() == before


def test_a_retention_that_finds_nothing_to_remove_says_nothing() -> None:
    cluster = alone()
    produce(cluster[1], 0, 3)
    cluster.run(0.1)
    cluster[1].replica().apply_retention(0)
    assert RecordKind.LOG_START not in [record.kind for record in cluster[1].take().records]


def test_who_wrote_in_the_place_of_what_was_lost_is_known() -> None:
    """With `flush=os`, of a start that was moved when the log was longer."""
    lost = 0
    for seed in range(20):
        cluster = alone(flush_commit=False)
        produce(cluster[1], 0, 7)
        cluster.run(0.1)
        cluster[1].replica().move_log_start(Offset(2))
        cluster.run(0.1)
        broker = again(cluster, 1, Random(seed), flush_commit=False)
        cluster.run(1)
        end = broker.replica().log_end
        for sequence in range(7 - end):
            broker.append(f"w{sequence}", producer=PRODUCER + 1, sequence=sequence)
        cluster.run(0.1)
        broker = again(cluster, 1, None, flush_commit=False)
        cluster.run(1)
        lost += end < 7
        for sequence in range(7 - end):
            retried = broker.append(f"w{sequence}", producer=PRODUCER + 1, sequence=sequence)
            assert isinstance(retried, Duplicate)
            assert retried.base_offset == end + sequence
    assert lost > 5
