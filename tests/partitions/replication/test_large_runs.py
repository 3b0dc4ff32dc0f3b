"""A large run is synced where it lies, and the journal says only that it was: nothing is lost."""

from random import Random

import pytest

from tests.partitions.replication.cluster import Broker, Cluster
from tidemark.partitions.replication.outbox import Output
from tidemark.partitions.storage.journal.records import RecordKind
from tidemark.partitions.storage.settings import LogSettings

LARGE = 200
SETTINGS = LogSettings(segment_bytes=700)
SEEDS = [None, *range(12)]


def opened(count: int) -> Cluster:
    cluster = Cluster(count)
    voters = list(range(1, count + 1))
    open_all(cluster, voters)
    cluster.run(1)
    return cluster


def open_all(cluster: Cluster, voters: list[int]) -> None:
    cluster.open(voters, settings=SETTINGS, journaled_bytes_max=LARGE, preference=voters)


def value(letter: str, *, is_large: bool) -> str:
    return letter * (300 if is_large else 5)


def kinds(output: Output) -> list[RecordKind]:
    return [record.kind for record in output.records]


def restarted(cluster: Cluster, node_id: int, seed: int | None) -> Broker:
    voters = sorted(cluster.brokers)
    files, state = cluster.kill(node_id, None if seed is None else Random(seed))
    broker = cluster.start(node_id, files, state)
    assert broker.redone.damage == ()
    broker.open(voters, settings=SETTINGS, journaled_bytes_max=LARGE)
    return broker


def test_a_large_run_is_not_in_the_journal() -> None:
    cluster = opened(1)
    cluster[1].append(value("a", is_large=True))
    output = cluster[1].take()
    assert kinds(output) == [RecordKind.SYNCED]
    assert len(output.syncs) == 1
    cluster[1].append(value("b", is_large=False))
    output = cluster[1].take()
    assert kinds(output) == [RecordKind.BATCHES]
    assert not output.syncs


def test_runs_of_one_turn_are_synced_once() -> None:
    cluster = opened(1)
    for letter in "abc":
        cluster[1].append(value(letter, is_large=True))
    output = cluster[1].take()
    assert kinds(output) == [RecordKind.SYNCED] * 3
    assert len(output.syncs) == 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "larges", ["x", "-x", "x-", "-x-x--xx-", "--xx--x--", "xxxxxxx", "------x"]
)
def test_what_was_committed_is_there_after_a_crash(larges: str, seed: int | None) -> None:
    cluster = opened(1)
    expected = [value(chr(97 + at), is_large=kind == "x") for at, kind in enumerate(larges)]
    for each in expected:
        cluster[1].append(each)
        cluster.settle()
    assert cluster[1].replica().high_watermark == len(expected)
    assert restarted(cluster, 1, seed).values() == expected


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("steps", range(3))
def test_what_is_cut_off_at_any_step_is_a_torn_tail(seed: int | None, steps: int) -> None:
    cluster = opened(1)
    first = [value("a", is_large=True), value("b", is_large=False)]
    for each in first:
        cluster[1].append(each)
    cluster.settle()
    second = [value(letter, is_large=True) for letter in "cde"]
    for each in second:
        cluster[1].append(each)
    output = cluster[1].take()
    if steps > 0:
        for sync in output.syncs:
            sync.run()
    if steps > 1:
        cluster[1].journal.write(output.records)
    found = restarted(cluster, 1, seed).values()
    assert found[:2] == first
    assert found == [*first, *second][: len(found)]
    assert steps == 0 or len(found) == 5


@pytest.mark.parametrize("seed", SEEDS)
def test_a_segment_that_a_start_begins_with_keeps_its_name(seed: int | None) -> None:
    cluster = opened(1)
    expected = [value(letter, is_large=True) for letter in "abc"]
    for each in expected[:2]:
        cluster[1].append(each)
    cluster.settle()
    restarted(cluster, 1, None)
    cluster.run(1)
    cluster[1].append(expected[2])  # a segment of its own
    cluster.settle()
    assert restarted(cluster, 1, seed).values() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_a_checkpoint_that_has_captured_a_roll_does_not_count_as_its_sync(seed: int | None) -> None:
    cluster = opened(1)
    broker = cluster[1]
    expected = [value(chr(97 + at), is_large=True) for at in range(4)]
    for each in expected[:3]:  # the third one begins a segment
        broker.append(each)
    capture = broker.replica().log.begin_sync()
    broker.append(expected[3])
    cluster.settle()
    assert broker.replica().high_watermark == 4
    del capture  # it never came to be synced
    assert restarted(cluster, 1, seed).values() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_followers_hold_what_they_say_they_hold(seed: int | None) -> None:
    cluster = opened(3)
    expected = [value(chr(97 + at), is_large=at % 2 == 0) for at in range(5)]
    for each in expected:
        cluster.leader().append(each)
    cluster.run(0.5)
    restarted(cluster, 2, seed)
    restarted(cluster, 3, seed)
    cluster.kill(1)
    cluster.run(3)
    assert cluster.leader().committed_values() == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_cut_later_stays_away(seed: int | None) -> None:
    cluster = opened(3)
    cluster.leader().append(value("a", is_large=True))
    cluster.run(0.5)
    cluster.cut = {(1, 2), (1, 3)}
    for letter in "bcd":
        cluster[1].append(value(letter, is_large=True))
    cluster.run(3)
    assert cluster[2].replica().is_serving
    cluster[2].append(value("e", is_large=False))
    cluster.cut = set()
    cluster.run(3)
    expected = [value("a", is_large=True), value("e", is_large=False)]
    assert cluster[1].committed_values() == expected
    assert restarted(cluster, 1, seed).values() == expected
