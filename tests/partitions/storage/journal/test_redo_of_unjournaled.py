"""After a crash, what the journal left to the segments, and to the page cache."""

from random import Random

from tests.partitions.storage.journal.node import (
    DATA,
    ME,
    UNJOURNALED,
    VOTERS,
    check_every_crash,
    copy_of,
    new_node,
    position,
)
from tests.partitions.storage.journal.records import KEY, OTHER
from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.state_db import (
    Condition,
)
from tidemark.protocol.types import Epoch, Offset


def test_batches_that_the_journal_left_to_the_segments_are_there() -> None:
    node = new_node()
    for _ in range(4):
        node.append(KEY, size=50)
        node.append_large(KEY, 700)
        node.append(KEY, size=50)
        node.sync()
        check_every_crash(node)
    node.truncate(KEY, position(1, 7))
    node.begin_epoch(KEY, 4)
    node.sync()
    check_every_crash(node)
    node.append_large(KEY, 200)
    node.append(KEY, size=50)
    node.sync()
    check_every_crash(node)


def test_what_the_journal_left_to_the_segments_is_missed_if_it_is_not_there() -> None:
    node = new_node()
    node.append(OTHER)
    node.append_large(KEY, 700)
    node.sync()
    path = f"{DATA}/t7-0/{0:020d}.log"
    size = node.files.open(path).size()
    for length in (0, 300, size - 1):
        files = node.files.after_kill()
        files.open(path).truncate(length)
        report = redo(files, DataDirectory.open(files, DATA), copy_of(node.state))
        assert report.damaged == {KEY}


def test_what_is_not_journaled_survives_the_process() -> None:
    node = new_node()
    for _ in range(5):
        node.append(UNJOURNALED, size=50)
    node.begin_epoch(UNJOURNALED, 2)
    node.append(UNJOURNALED, size=50)
    node.sync()
    node.append(UNJOURNALED, size=50)
    after = node.killed()
    assert after.held() == node.held()
    assert after.replicas[UNJOURNALED].condition is Condition.CLEAN


def test_what_is_not_journaled_survives_a_redo_of_its_truncation() -> None:
    node = new_node()
    for _ in range(5):
        node.append(UNJOURNALED, 2, size=50)
    node.truncate(UNJOURNALED, position(1, 4))
    node.begin_epoch(UNJOURNALED, 2)
    node.sync()
    for _ in range(5):
        node.append(UNJOURNALED, size=70)
    assert node.killed().held() == node.held()


def test_what_is_not_journaled_survives_a_redo_of_its_reset() -> None:
    node = new_node()
    node.append(UNJOURNALED, 2, size=50)
    node.reset(UNJOURNALED, position(1, 50), (EpochStart(Epoch(1), Offset(9), ME, VOTERS),))
    for _ in range(5):
        node.append(UNJOURNALED, size=300)
    node.sync()
    assert node.killed().held() == node.held()
    node.move_start(UNJOURNALED, Offset(53))
    assert node.killed().held() == node.held()


def test_epochs_beyond_what_the_page_cache_left_are_dropped_and_the_replica_unclean() -> None:
    node = new_node()
    node.append(UNJOURNALED, 4, size=50)
    node.replicas[UNJOURNALED].log.sync()
    node.begin_epoch(UNJOURNALED, 2)
    node.append(UNJOURNALED, 4, size=50)
    node.begin_epoch(UNJOURNALED, 3)
    node.sync()
    lengths = set()
    for seed in range(30):
        after = node.power_failed(Random(seed)).replicas[UNJOURNALED]
        assert after.condition is Condition.UNCLEAN
        assert after.last in (position(2, 4), position(3, 8))
        lengths.add(after.last.offset)
    assert lengths == {4, 8}
