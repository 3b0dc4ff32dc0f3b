"""That large batches are synced in the segments is said later, and nothing is lost without it."""

from random import Random

import pytest

from tests.partitions.storage.journal.node import (
    all_but_the_unjournaled,
    crashed_in_every_way,
    new_node,
    position,
)
from tests.partitions.storage.journal.records import (
    KEY,
    OTHER,
    note,
    opened,
    payloads,
)
from tidemark.partitions.storage.journal.blocks import PAGE_BYTES
from tidemark.partitions.storage.journal.put_off import GROUPS_MAX
from tidemark.partitions.storage.journal.records import JournalRecord, synced
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles


def said(end: int, key: PartitionKey = KEY) -> JournalRecord:
    return synced(key, Offset(end))


def test_it_is_written_in_front_of_what_follows_the_newest_of_each_partition() -> None:
    files = MemoryFiles()
    journal = opened(files)
    for records in ([said(1)], [said(2), said(5, OTHER)], [said(3)]):
        assert journal.put_off(records)
    assert payloads(files) == []
    journal.write([note(1)])
    expected = [said(3), said(5, OTHER), note(1)]
    assert payloads(files) == [record.payload for record in expected]
    journal.write([note(2)])
    assert payloads(files)[3:] == [note(2).payload], "once"


def test_by_itself_it_is_written_where_nothing_follows() -> None:
    files = MemoryFiles()
    journal = opened(files)
    assert journal.put_off([said(1)])
    journal.write(())
    assert payloads(files) == [said(1).payload]


@pytest.mark.parametrize("records", [[], [note(1)], [said(1), note(1)], [note(1), said(1)]])
def test_all_else_is_written_at_once(records: list[JournalRecord]) -> None:
    """Of nothing, too: what was written before may want its sync."""
    assert not opened(MemoryFiles()).put_off(records)


def test_it_is_not_put_off_for_long() -> None:
    journal = opened(MemoryFiles())
    for _ in range(3):
        for end in range(GROUPS_MAX):
            assert journal.put_off([said(end)])
        assert not journal.put_off([said(GROUPS_MAX)])
        journal.write([said(GROUPS_MAX)])


def test_what_could_not_be_written_is_written_later() -> None:
    files = MemoryFiles()
    journal = opened(files)
    assert journal.put_off([said(1)])
    files.capacity_bytes = 0
    size_bytes = 40 * PAGE_BYTES  # a file of its own
    with pytest.raises(OSError, match="No space left"):
        journal.write([note(1, size=size_bytes)])
    files.capacity_bytes = None
    journal.write([note(1)])
    assert payloads(files) == [said(1).payload, note(1).payload]


@pytest.mark.parametrize("is_followed", [False, True])
def test_a_start_finds_the_batches_without_it(*, is_followed: bool) -> None:
    node = new_node()
    for _ in range(4):
        node.append_large(KEY, 700)
        node.append_large(OTHER, 300)
        node.write()
    if is_followed:
        node.append(KEY)
        node.sync()
    for after in crashed_in_every_way(node):
        assert all_but_the_unjournaled(after) == all_but_the_unjournaled(node)
        assert after.report.damage == ()


def test_what_was_cut_and_written_anew_is_found_as_it_is() -> None:
    node = new_node()
    for _ in range(3):
        node.append_large(KEY, 300)
        node.write()
    node.truncate(KEY, position(1, 1))
    node.begin_epoch(KEY, 2)
    node.sync()
    node.append_large(KEY, 400)
    node.write()
    for seed in range(20):
        after = node.power_failed(Random(seed))
        assert all_but_the_unjournaled(after) == all_but_the_unjournaled(node)
