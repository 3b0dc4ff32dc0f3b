"""A journal file is there, with all its blocks, before the one before it is full."""

import errno
from random import Random

import pytest

from tests.partitions.storage.journal.records import FILE_PAGES, PATH, note, opened, payloads
from tidemark.partitions.storage.journal.blocks import PAGE_BYTES
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.journal.making import STAMP_PAGES, prepare
from tidemark.testing.memory_files import MemoryFiles

HALF = FILE_PAGES // 2
SECOND = f"{PATH}/0001.journal"


def fill(journal: Journal, first: int, count: int) -> list[bytes]:
    """Write and sync records that take a page each; what is in them."""
    written = [note(number) for number in range(first, first + count)]
    for record in written:
        journal.write([record])
        journal.sync()
    return [bytes(record.payload) for record in written]


def test_the_next_file_is_wanted_once_one_is_half_full() -> None:
    journal = opened(MemoryFiles())
    wanted = list[bool]()
    for number in range(HALF - STAMP_PAGES):
        fill(journal, number, 1)
        wanted.append(journal.wants_file)
    assert wanted == [False] * (len(wanted) - 1) + [True]
    journal.prepare_file()
    assert not journal.wants_file


def test_each_that_is_prepared_has_a_name_of_its_own() -> None:
    files = MemoryFiles()
    journal = opened(files)
    written = fill(journal, 0, HALF)
    for _ in range(2):
        journal.prepare_file()
    assert len(files.sizes(PATH)) == 3
    written += fill(journal, HALF, 2 * FILE_PAGES)
    assert payloads(files) == written


def test_what_was_prepared_is_written_over_and_grows_no_more() -> None:
    files = MemoryFiles()
    journal = opened(files)
    written = fill(journal, 0, HALF)
    journal.prepare_file()
    assert files.sizes(PATH)["0001.journal"] == FILE_PAGES * PAGE_BYTES
    before = len(files.synced_paths)
    written += fill(journal, HALF, FILE_PAGES)
    assert files.sizes(PATH) == dict.fromkeys(
        ("0000.journal", "0001.journal"), FILE_PAGES * PAGE_BYTES
    )
    assert PATH not in files.synced_paths[before:], "its name is on the disk already"
    assert payloads(files) == written


@pytest.mark.parametrize("seed", range(30))
def test_what_was_synced_to_a_prepared_file_survives_a_crash(seed: int) -> None:
    files = MemoryFiles()
    journal = opened(files)
    written = fill(journal, 0, HALF)
    journal.prepare_file()
    written += fill(journal, HALF, FILE_PAGES)
    assert payloads(files.after_crash(Random(seed))) == written


@pytest.mark.parametrize("seed", range(30))
def test_a_crash_before_it_is_used_costs_nothing(seed: int) -> None:
    files = MemoryFiles()
    journal = opened(files)
    written = fill(journal, 0, HALF)
    journal.prepare_file()
    assert payloads(files.after_crash(Random(seed))) == written


def test_no_more_files_are_prepared_than_are_kept() -> None:
    files = MemoryFiles()
    journal = opened(files, files_max=2)
    fill(journal, 0, HALF)
    journal.prepare_file()
    fill(journal, HALF, FILE_PAGES)
    assert not journal.wants_file, "a checkpoint is due, and gives the first one back"


def test_of_a_file_for_which_there_is_no_room_nothing_is_left() -> None:
    files = MemoryFiles()
    journal = opened(files)
    written = fill(journal, 0, HALF)
    files.capacity_bytes = (FILE_PAGES + HALF) * PAGE_BYTES
    with pytest.raises(OSError, match="No space") as caught:
        prepare(files, SECOND, FILE_PAGES * PAGE_BYTES)
    assert caught.value.errno == errno.ENOSPC
    assert not files.exists(SECOND)
    files.capacity_bytes = 4 * FILE_PAGES * PAGE_BYTES
    journal.prepare_file()
    assert not files.exists(SECOND), "where little is free, none is taken before it is needed"
    assert not journal.wants_file, "it is not tried again for each record"
    written += fill(journal, HALF, FILE_PAGES - 1)
    assert payloads(files) == written, "the writer makes its own"


def test_the_writer_comes_to_the_end_of_its_file_before_the_next_one_is_there() -> None:
    """Both make one then, and neither takes the other's."""
    written = list[bytes]()

    class SlowFiles(MemoryFiles):
        def before_sync(self, path: str, node: object) -> None:
            super().before_sync(path, node)  # type: ignore[arg-type]  # what it is told is its own
            if path == SECOND and len(written) == HALF:
                written.extend(fill(journal, HALF, FILE_PAGES))

    files = SlowFiles()
    journal = opened(files)
    written += fill(journal, 0, HALF)
    journal.prepare_file()
    assert sorted(files.sizes(PATH)) == ["0000.journal", "0001.journal", "0002.journal"]
    assert payloads(files) == written
    written += fill(journal, len(written), FILE_PAGES)
    assert payloads(files) == written
