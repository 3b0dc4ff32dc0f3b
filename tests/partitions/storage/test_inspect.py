"""Looking at files from outside: what is there, and everything that is wrong."""

import errno
from collections.abc import Sequence

import pytest

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.inspect import (
    Problem,
    StoredBatch,
    dump,
    partition_directories,
)
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
BATCH_BYTES = len(batch(0, 2, size=20))


def path(base_offset: int, suffix: str = ".log") -> str:
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


@pytest.fixture
def files() -> MemoryFiles:
    """Six batches of two records, in segments of three, each with an index entry but the first."""
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    settings = LogSettings(segment_bytes=3 * BATCH_BYTES, index_interval_bytes=0)
    log = Log.open(files, DIRECTORY, settings, take_snapshot=lambda: b"state")
    for number in range(6):
        log.append(batch(number * 2, 2, size=20))
    log.close()
    return files


def flip(files: MemoryFiles, path: str, position: int) -> None:
    file = files.open(path)
    file.pwrite(bytes([file.pread(1, position)[0] ^ 0x10]), position)


def remove(files: MemoryFiles, base_offset: int) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        files.remove(path(base_offset, suffix))


def base_offsets(found: Sequence[StoredBatch | Problem]) -> list[Offset]:
    return [each.header.base_offset for each in found if isinstance(each, StoredBatch)]


def problems(files: MemoryFiles) -> list[tuple[str, int, bool]]:
    found = verify(files, DIRECTORY).problems
    return [(p.path, p.position, p.is_harmless) for p in found]


def test_a_dump_gives_every_batch_with_its_place(files: MemoryFiles) -> None:
    found = list(dump(files, DIRECTORY, with_records=True))
    assert all(isinstance(item, StoredBatch) and item.damage is None for item in found)
    places = [
        (b.path, b.position, b.header.base_offset) for b in found if isinstance(b, StoredBatch)
    ]
    assert places == [
        (path(base), number * BATCH_BYTES, base + 2 * number)
        for base in (0, 6)
        for number in range(3)
    ]
    first = found[0]
    assert isinstance(first, StoredBatch)
    assert first.records is not None
    assert [record.offset for record in first.records] == [0, 1]


def test_a_dump_of_one_file_leaves_out_the_others(files: MemoryFiles) -> None:
    assert len(list(dump(files, path(6)))) == 3


def test_a_dump_goes_on_behind_a_batch_with_a_wrong_crc(files: MemoryFiles) -> None:
    flip(files, path(0), BATCH_BYTES + 70)
    found = list(dump(files, path(0)))
    assert [isinstance(b, StoredBatch) and b.damage is not None for b in found] == [
        False,
        True,
        False,
    ]


def test_a_dump_ends_where_no_batch_is(files: MemoryFiles) -> None:
    files.open(path(0)).pwrite(bytes(BATCH_BYTES), BATCH_BYTES)
    found = list(dump(files, path(0)))
    assert len(found) == 2
    assert isinstance(found[1], Problem)
    assert found[1].position == BATCH_BYTES


def test_a_partition_that_is_removed_while_they_are_looked_for_is_none(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = ["gone-0", DIRECTORY[1:]]
    monkeypatch.setattr(files, "subdirectories", lambda path: there)
    assert partition_directories(files, "") == [DIRECTORY]


def remove_at_next_open(files: MemoryFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first segment goes, as retention takes it, when somebody is about to read it."""

    def remove_and_open(name: str) -> File:
        remove(files, 0)
        monkeypatch.undo()
        return files.open_reader(name)

    monkeypatch.setattr(files, "open_reader", remove_and_open)


def test_a_dump_goes_on_with_what_is_there_where_retention_is_faster(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_at_next_open(files, monkeypatch)
    told, *batches = dump(files, DIRECTORY)
    assert isinstance(told, Problem)
    assert (told.path, told.is_harmless) == (path(0), True)
    assert "removed" in told.what
    assert base_offsets(batches) == [6, 8, 10]


def test_a_dump_tells_a_file_that_is_used_again_from_what_it_was(files: MemoryFiles) -> None:
    found = dump(files, DIRECTORY)
    assert base_offsets([next(found)]) == [0]
    flip(files, path(0), BATCH_BYTES)
    remove(files, 0)
    told, *batches = found
    assert isinstance(told, Problem)
    assert (told.path, told.is_harmless) == (path(0), True)
    assert base_offsets(batches) == [6, 8, 10]


def test_a_dump_gives_no_batch_twice_and_none_less_where_segments_become_one(
    files: MemoryFiles,
) -> None:
    found = dump(files, DIRECTORY)
    before = [next(found) for _ in range(3)]
    whole = [files.open(path(base)).pread(3 * BATCH_BYTES, 0) for base in (0, 6)]
    files.create(path(99)).pwrite(b"".join(whole), 0)
    files.rename(path(99), path(0))
    remove(files, 6)
    told, *after = found
    assert isinstance(told, Problem)
    assert base_offsets([*before, *after]) == [0, 2, 4, 6, 8, 10]


def test_a_dump_of_one_file_that_is_removed_meanwhile_ends(files: MemoryFiles) -> None:
    found = dump(files, path(0))
    next(found)
    remove(files, 0)
    with pytest.raises(StorageError, match=r"0\.log was removed"):
        next(found)


def test_a_dump_looks_for_a_segment_that_cannot_be_opened_a_few_times_only(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> File:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)

    monkeypatch.setattr(files, "open_reader", refuse)
    with pytest.raises(StorageError, match=r"0\.log cannot be read: No such file"):
        list(dump(files, DIRECTORY))


def test_a_sound_log_has_no_problems(files: MemoryFiles) -> None:
    checked: list[int] = []
    found = verify(files, DIRECTORY, progress=checked.append)
    assert (found.segments, found.batches, found.records) == (2, 6, 12)
    assert (found.start_offset, found.end_offset) == (0, 12)
    assert found.size_bytes == sum(checked) == 6 * BATCH_BYTES
    assert found.problems == []
    assert found.is_sound


@pytest.mark.parametrize("position", [0, 5, 17, 22, 30, 60, 61, BATCH_BYTES - 1])
def test_a_flipped_bit_is_found_where_it_is(files: MemoryFiles, position: int) -> None:
    flip(files, path(6), BATCH_BYTES + position)
    found = verify(files, DIRECTORY)
    assert not found.is_sound
    assert (path(6), BATCH_BYTES) in [(p.path, p.position) for p in found.problems]


def test_a_leader_epoch_that_goes_back_is_a_problem(files: MemoryFiles) -> None:
    files.open(path(6)).pwrite(b"\0\0\0\0", BATCH_BYTES + 12)
    assert problems(files) == [(path(6), BATCH_BYTES, False)]


def test_a_missing_segment_is_a_problem(files: MemoryFiles) -> None:
    files.rename(path(6), path(8))
    assert (path(8), 0, False) in problems(files)


def test_a_segment_that_is_removed_meanwhile_is_none(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_at_next_open(files, monkeypatch)
    found = verify(files, DIRECTORY)
    assert (found.is_sound, found.segments, found.start_offset) == (True, 1, 6)


def test_what_is_wrong_where_segments_have_gone_meanwhile_is_looked_at_again(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty_remove_and_open(name: str) -> File:
        monkeypatch.undo()
        emptied = files.create(name)
        remove(files, 0)
        return emptied

    monkeypatch.setattr(files, "open_reader", empty_remove_and_open)
    found = verify(files, DIRECTORY)
    assert (found.problems, found.segments, found.start_offset) == ([], 1, 6)


def test_a_segment_that_cannot_be_opened_is_looked_for_a_few_times_only(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> File:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory", name)

    monkeypatch.setattr(files, "open_reader", refuse)
    with pytest.raises(StorageError, match=r"0\.log cannot be read: No such file"):
        verify(files, DIRECTORY)


@pytest.mark.parametrize("position", [3, 7, 11])
def test_a_wrong_index_entry_is_a_problem_that_harms_nobody(
    files: MemoryFiles, position: int
) -> None:
    flip(files, path(0, ".index"), position)
    found = verify(files, DIRECTORY)
    assert (path(0, ".index"), position // 8 * 8) in [(p.path, p.position) for p in found.problems]
    assert found.is_sound


@pytest.mark.parametrize("position", [7, 11, 19])
def test_a_wrong_time_index_entry_is_a_problem_that_harms_nobody(
    files: MemoryFiles, position: int
) -> None:
    flip(files, path(0, ".timeindex"), position)
    assert problems(files) == [(path(0, ".timeindex"), position // 12 * 12, True)]


def test_an_index_that_ends_within_an_entry_is_a_problem(files: MemoryFiles) -> None:
    files.open(path(0, ".index")).truncate(11)
    assert problems(files) == [(path(0, ".index"), 8, True)]


def test_a_damaged_snapshot_is_a_problem_that_harms_nobody(files: MemoryFiles) -> None:
    flip(files, path(12, ".snapshot"), 5)
    assert problems(files) == [(path(12, ".snapshot"), 0, True)]


def test_a_log_that_was_not_closed_has_fewer_indexes_and_no_problem(files: MemoryFiles) -> None:
    for suffix in (".index", ".timeindex"):
        files.remove(path(6, suffix))
    assert problems(files) == []


def test_a_data_directory_has_its_partitions_in_it(files: MemoryFiles) -> None:
    files.make_directory("/empty-0")
    assert partition_directories(files, "/") == ["//p-0"]
    assert partition_directories(files, DIRECTORY) == [DIRECTORY]


@pytest.mark.parametrize("where", ["/missing", "/empty-0"])
def test_where_no_log_is_it_is_said(files: MemoryFiles, where: str) -> None:
    files.make_directory("/empty-0")
    with pytest.raises(StorageError, match=where):
        partition_directories(files, where)
    with pytest.raises(StorageError, match=where):
        list(dump(files, where))
