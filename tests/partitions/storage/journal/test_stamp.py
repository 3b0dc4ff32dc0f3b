"""A journal whose only block a crash tore is not taken for one that was lost."""

from random import Random

from tests.partitions.storage.journal.interrupted import Interrupted, InterruptedFiles
from tests.partitions.storage.journal.node import new_node
from tests.partitions.storage.journal.records import (
    FILE_PAGES,
    KEY,
    OWNER,
    PATH,
    note,
    opened,
    read,
)
from tidemark.partitions.storage.journal.blocks import FIRST_LSN, PAGE_BYTES, Lsn, encode
from tidemark.partitions.storage.journal.names import journal_name
from tidemark.testing.memory_files import MemoryFiles

FILE = f"{PATH}/{journal_name(0)}"


GROUP = [note(number) for number in range(40)]
"""A block whose table reaches over sectors, so that it may be torn, and is then no block."""


def test_the_first_block_of_a_process_may_be_torn() -> None:
    is_torn = False
    for seed in range(40):
        files = MemoryFiles()
        opened(files)
        opened(files, Lsn(2)).write(GROUP)
        journal = read(files.after_crash(Random(seed)), Lsn(2))
        assert not journal.is_missing
        is_torn |= not list(journal.records())
    assert is_torn


def test_what_a_torn_first_block_leaves_is_no_damage() -> None:
    """The same with all that a start does."""
    for seed in range(40):
        node = new_node()
        node.append(KEY)
        node.sync()
        held = node.held()[KEY]
        after = node.killed().killed()
        after.append(KEY)
        after.write()
        found = after.power_failed(Random(seed))
        assert found.report.damage == ()
        assert found.held()[KEY].batches[: len(held.batches)] == held.batches


def without_stamp() -> MemoryFiles:
    """What earlier releases left: one file, and at its beginning its only block."""
    files = MemoryFiles()
    files.make_directory(PATH)
    file = files.create(FILE)
    file.pwrite(bytes(FILE_PAGES * PAGE_BYTES), 0)
    file.pwritev(encode(OWNER, FIRST_LSN, FIRST_LSN, GROUP), 0)
    file.sync()
    files.sync_directory(PATH)
    files.sync_directory("/")
    return files


def test_a_file_is_stamped_without_a_moment_in_which_it_holds_no_block() -> None:
    disk = without_stamp()
    interruptions = 0
    for syncs in range(6):
        files = InterruptedFiles(disk.after_kill(), syncs)
        try:
            opened(files, Lsn(2))
        except Interrupted:
            interruptions += 1
        for seed in range(200):
            assert not read(files.after_crash(Random(seed)), Lsn(2)).is_missing
    assert interruptions >= 3


def test_a_stamp_stays_and_takes_no_more_room() -> None:
    files = MemoryFiles()
    start = FIRST_LSN
    for life in range(5):
        journal = opened(files, start)
        stamped = files.open(FILE).pread(PAGE_BYTES, 0)
        for number in range(5 * FILE_PAGES):
            journal.write([note(number)])
            journal.sync()
            journal.checkpointed(journal.begin_checkpoint())
        assert files.open(FILE).pread(PAGE_BYTES, 0) == stamped, life
        assert files.open(FILE).size() == FILE_PAGES * PAGE_BYTES
        start = read(files).next_lsn


def test_on_a_full_disk_a_stamped_journal_is_opened() -> None:
    files = MemoryFiles()
    opened(files)
    files.capacity_bytes = 0
    opened(files)


def test_a_flipped_bit_in_the_stamp_is_nothing() -> None:
    files = MemoryFiles()
    journal = opened(files)
    journal.write([note(0)])
    journal.sync()
    file = files.open(FILE)
    file.pwrite(bytes([file.pread(1, 20)[0] ^ 1]), 20)
    journal_read = read(files)
    assert [bytes(record.payload) for record in journal_read.records()] == [note(0).payload]
    assert not journal_read.damage
    opened(files, journal_read.next_lsn)
    assert file.pread(4, 0) == b"TMJ1"
