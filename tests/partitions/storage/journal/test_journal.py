"""What was written and synced is read back, in order, from files that are used again and again."""

import errno
from random import Random
from uuid import UUID

import pytest

from tests.partitions.storage.journal.records import (
    FILE_PAGES,
    OTHER,
    PATH,
    note,
    opened,
    payloads,
    read,
)
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.journal.blocks import FIRST_LSN, PAGE_BYTES
from tidemark.partitions.storage.journal.reader import ReadJournal
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import StorageError
from tidemark.testing.memory_files import MemoryFiles


def test_records_are_read_back_in_their_order() -> None:
    files = MemoryFiles()
    journal = opened(files)
    records = [note(0), note(1, key=OTHER), note(2, size=0), note(3, size=3 * PAGE_BYTES)]
    journal.write(records[:2])
    journal.write(records[2:])
    found = list(read(files).records())
    assert [(record.key, record.kind, record.payload) for record in found] == records


def test_what_was_synced_survives_a_crash() -> None:
    for seed in range(50):
        files = MemoryFiles()
        journal = opened(files)
        synced = [note(number) for number in range(12)]
        for record in synced:
            journal.write([record])
            journal.sync()
        journal.write([note(12)])
        journal.write([note(13)])
        found = payloads(files.after_crash(Random(seed)))
        assert found[:12] == [record.payload for record in synced]
        assert found[12:] == [note(12).payload, note(13).payload][: len(found) - 12]


def test_what_is_written_synced_survives_a_crash_without_more() -> None:
    for seed in range(20):
        files = MemoryFiles()
        journal = opened(files, file_pages=64)
        for number in range(12):
            journal.write([note(number)], synced=True)
        found = payloads(files.after_crash(Random(seed)))
        assert found == [note(number).payload for number in range(12)]
        before = len(files.synced_paths)
        journal.sync()
        assert len(files.synced_paths) == before, "nothing is left to sync"


def test_what_is_not_synced_is_synced_with_what_follows_or_by_sync() -> None:
    """In one call only these bytes would be."""
    for seed in range(20):
        files = MemoryFiles()
        journal = opened(files)
        journal.write([note(0)])
        journal.write([note(1)], synced=True)
        journal.sync()
        assert payloads(files.after_crash(Random(seed))) == [note(0).payload, note(1).payload]


def test_nothing_is_called_synced_that_follows_what_is_not() -> None:
    """A start would miss what the next block says was there."""
    for seed in range(20):
        files = MemoryFiles()
        journal = opened(files)
        for number in range(3):
            journal.write([note(number)], synced=number > 0)
        found = payloads(files.after_crash(Random(seed)))
        assert found == [note(number).payload for number in range(len(found))]


def test_a_file_that_is_new_has_its_name_synced_by_sync() -> None:
    for seed in range(20):
        files = MemoryFiles()
        journal = opened(files, file_pages=4)
        written = [note(number, size=PAGE_BYTES) for number in range(12)]
        for record in written:
            journal.write([record], synced=True)
            journal.sync()
        assert len(files.sizes(PATH)) > 1
        found = payloads(files.after_crash(Random(seed)))
        assert found == [record.payload for record in written]


def test_a_group_of_two_hundred_partitions_is_one_write_and_one_sync() -> None:
    files = MemoryFiles()
    journal = opened(files, file_pages=512)
    group = [note(n, size=4096, key=PartitionKey(UUID(int=n), n)) for n in range(200)]
    before = len(files.synced_paths)
    journal.write(group)
    journal.sync()
    assert files.synced_paths[before:] == [f"{PATH}/0000.journal"]
    found = list(read(files).records())
    assert [(record.key, record.kind, record.payload) for record in found] == group
    assert read(files).next_lsn == journal.next_lsn + 1, "one block, and the note behind it"


def test_nothing_to_write_is_nothing_written() -> None:
    files = MemoryFiles()
    journal = opened(files)
    before = len(files.synced_paths)
    assert journal.write([]) == FIRST_LSN
    journal.sync()
    assert len(files.synced_paths) == before


def test_a_record_larger_than_a_file_has_a_file_of_its_own() -> None:
    files = MemoryFiles()
    journal = opened(files)
    records = [note(0), note(1, size=3 * FILE_PAGES * PAGE_BYTES), note(2)]
    for record in records:
        journal.write([record])
    journal.sync()
    assert payloads(files) == [record.payload for record in records]
    journal.checkpointed(journal.begin_checkpoint())
    assert max(files.sizes(PATH).values()) <= FILE_PAGES * PAGE_BYTES


def test_a_group_larger_than_a_file_is_parted_between_records() -> None:
    files = MemoryFiles()
    journal = opened(files)
    group = [note(n, size=PAGE_BYTES) for n in range(3 * FILE_PAGES)]
    journal.write(group)
    journal.sync()
    assert payloads(files) == [record.payload for record in group]
    assert max(files.sizes(PATH).values()) <= FILE_PAGES * PAGE_BYTES


# Files that are used again


def test_files_are_used_again_once_they_are_checkpointed() -> None:
    files = MemoryFiles()
    journal = opened(files)
    mark = FIRST_LSN
    for number in range(20 * FILE_PAGES):
        journal.write([note(number)])
        journal.sync()
        if journal.needs_checkpoint:
            mark = journal.begin_checkpoint()
            journal.checkpointed(mark)
    assert len(files.sizes(PATH)) <= 4
    expected = [note(n).payload for n in range(mark - FIRST_LSN, 20 * FILE_PAGES)]
    assert payloads(files, mark) == expected


def test_a_file_that_is_not_checkpointed_is_never_written_over() -> None:
    files = MemoryFiles()
    journal = opened(files)
    written = [note(number) for number in range(10 * FILE_PAGES)]
    for record in written:
        journal.write([record])
    journal.sync()
    assert journal.needs_checkpoint
    assert payloads(files) == [record.payload for record in written]
    assert len(files.sizes(PATH)) > 4, "it does not wait for a checkpoint"


def test_a_file_with_one_record_behind_the_mark_is_kept() -> None:
    files = MemoryFiles()
    journal = opened(files)
    for number in range(FILE_PAGES - 1):
        journal.write([note(number)])
    mark = journal.begin_checkpoint()
    behind = [note(number) for number in range(100, 100 + 5 * FILE_PAGES)]
    for record in behind:
        journal.write([record])
        journal.checkpointed(mark)
    journal.sync()
    assert payloads(files, mark) == [record.payload for record in behind]


def test_more_files_than_are_kept_go_after_the_checkpoint() -> None:
    files = MemoryFiles()
    journal = opened(files)
    for number in range(10 * FILE_PAGES):
        journal.write([note(number)])
    journal.checkpointed(journal.begin_checkpoint())
    assert len(files.sizes(PATH)) == 4
    assert not journal.needs_checkpoint


def test_a_journal_that_goes_on_finds_nothing_of_the_one_before() -> None:
    files = MemoryFiles()
    first = opened(files)
    for number in range(2 * FILE_PAGES):
        first.write([note(number)])
    first.sync()
    start = read(files).next_lsn
    second = opened(files, start)
    assert payloads(files, start) == []
    second.write([note(1000)])
    second.sync()
    assert payloads(files, start) == [note(1000).payload]


def test_files_of_another_directory_are_not_believed() -> None:
    files = MemoryFiles()
    opened(files).write([note(0)])
    stranger = ReadJournal(files, PATH, UUID(int=1), FIRST_LSN)
    assert stranger.is_missing
    assert list(stranger.records()) == []


# Syncing


def test_a_new_files_name_is_synced_with_its_first_block() -> None:
    files = MemoryFiles()
    journal = opened(files)
    for number in range(FILE_PAGES + 1):
        journal.write([note(number)])
    journal.sync()
    for seed in range(20):
        assert len(payloads(files.after_crash(Random(seed)))) == FILE_PAGES + 1


def test_a_name_that_a_dead_process_did_not_sync_is_synced_at_the_opening() -> None:
    files = MemoryFiles()
    journal = opened(files)
    for number in range(2 * FILE_PAGES):
        journal.write([note(number)])
    files = files.after_kill()
    start = read(files).next_lsn
    journal = opened(files, start)
    for number in range(2 * FILE_PAGES):
        journal.write([note(number)])
        journal.sync()
    for seed in range(20):
        assert len(payloads(files.after_crash(Random(seed)), start)) == 2 * FILE_PAGES


def test_both_files_are_synced_when_a_group_reaches_into_the_next() -> None:
    files = MemoryFiles()
    journal = opened(files)
    for number in range(FILE_PAGES + 2):
        journal.write([note(number)])
    before = len(files.synced_paths)
    journal.sync()
    expected = [f"{PATH}/0000.journal", f"{PATH}/0001.journal", PATH]
    assert files.synced_paths[before:] == expected


def test_after_a_failed_sync_nothing_is_written_any_more() -> None:
    files = MemoryFiles()
    journal = opened(files)
    journal.write([note(0)])
    files.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output"):
        journal.sync()
    with pytest.raises(StorageError, match="could not be written"):
        journal.sync()
    with pytest.raises(StorageError, match="could not be written"):
        journal.write([note(1)])


def test_a_directory_that_cannot_be_opened_for_its_sync_is_synced_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = MemoryFiles()
    journal = opened(files)
    sync_directory, refused = files.sync_directory, list[str]()

    def refuse_once(path: str) -> None:
        if not refused:
            refused.append(path)
            raise OSError(errno.EMFILE, "Too many open files")
        sync_directory(path)

    for number in range(FILE_PAGES + 2):  # the second file's name is not on the disk
        journal.write([note(number)])
    monkeypatch.setattr(files, "sync_directory", refuse_once)
    with pytest.raises(OSError, match="Too many open files"):
        journal.sync()
    journal.sync()
    for seed in range(20):
        assert len(payloads(files.after_crash(Random(seed)))) == FILE_PAGES + 2


# A disk that is full


def test_a_write_that_finds_the_disk_full_can_be_tried_again() -> None:
    files = MemoryFiles()
    journal = opened(files)
    files.capacity_bytes = FILE_PAGES * PAGE_BYTES + 3 * PAGE_BYTES
    written = [note(number, size=6000).payload for number in range(4)]
    for number in range(4):
        journal.write([note(number, size=6000)])
    with pytest.raises(OSError, match="No space") as caught:
        journal.write([note(5, size=6000)])
    assert caught.value.errno == errno.ENOSPC
    journal.sync()
    assert payloads(files) == written
    files.capacity_bytes = None
    journal.write([note(1000)])
    journal.write([note(1001, size=6000)])
    journal.sync()
    assert payloads(files) == [*written, note(1000).payload, note(1001, size=6000).payload]


def test_a_write_that_finds_no_descriptor_for_the_next_file_can_be_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = MemoryFiles()
    journal = opened(files)
    journal.write([note(0, size=(FILE_PAGES - 2) * PAGE_BYTES)])

    def refuse(path: str) -> File:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(files, "create", refuse)
        with pytest.raises(OSError, match="Too many open files"):
            journal.write([note(1, size=3 * PAGE_BYTES)])
        journal.sync()
    journal.write([note(2, size=3 * PAGE_BYTES)])
    journal.sync()
    kept = note(0, size=(FILE_PAGES - 2) * PAGE_BYTES), note(2, size=3 * PAGE_BYTES)
    assert payloads(files) == [each.payload for each in kept]


def test_half_a_block_is_not_met_where_the_next_try_went_to_another_file() -> None:
    files = MemoryFiles()
    journal = opened(files)
    journal.write([note(0, size=(FILE_PAGES - 4) * PAGE_BYTES)])
    journal.write([note(1, size=(FILE_PAGES - 4) * PAGE_BYTES)])
    files.capacity_bytes = (2 * FILE_PAGES - 1) * PAGE_BYTES
    with pytest.raises(OSError, match="No space"):
        journal.write([note(2, size=2 * PAGE_BYTES - 100)])
    files.capacity_bytes = None
    journal.write([note(3, size=4 * PAGE_BYTES)])
    journal.sync()
    assert [payload[:9] for payload in payloads(files)] == [
        b"record 0 ",
        b"record 1 ",
        b"record 3 ",
    ]


def test_no_room_for_the_first_file_is_said_in_one_line() -> None:
    files = MemoryFiles()
    files.capacity_bytes = 3 * PAGE_BYTES
    with pytest.raises(StorageError, match=r"the journal needs 32768 bytes .*No space left"):
        opened(files)
    files.capacity_bytes = None
    journal = opened(files)
    journal.write([note(0)])
    assert payloads(files) == [note(0).payload]


def test_the_first_file_has_its_size_before_anything_is_written() -> None:
    files = MemoryFiles()
    opened(files)
    assert files.after_crash(Random(0)).sizes(PATH) == {"0000.journal": FILE_PAGES * PAGE_BYTES}
