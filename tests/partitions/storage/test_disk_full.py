"""A disk that is full refuses appends; nothing else, and not for ever."""

import errno
from random import Random

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.directories import files_with
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.syncing import NotTaken
from tidemark.protocol.records.header import iter_headers, read_header
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing.memory_files import MemoryFile, MemoryFiles

DIRECTORY = "/p-0"
WHOLE = batch(0, size=20) + batch(1, size=20)


@pytest.fixture
def files() -> MemoryFiles:
    return files_with(DIRECTORY)


def open_log(files: MemoryFiles, **settings: int) -> Log:
    return Log.open(files, DIRECTORY, LogSettings(**settings))


def fill_up(files: MemoryFiles, log: Log, free_bytes: int) -> None:
    """Append a batch of which only `free_bytes` fit."""
    files.capacity_bytes = sum(files.sizes(DIRECTORY).values()) + free_bytes
    with pytest.raises(OSError, match="No space left"):
        log.append(batch(log.end_offset, size=500))


def log_of_two(files: MemoryFiles, **settings: int) -> Log:
    log = open_log(files, **settings)
    log.append(batch(0, size=20))
    log.append(batch(1, size=20))
    return log


@pytest.mark.parametrize("free_bytes", [0, 1, 61, 100, 499])
def test_an_append_that_does_not_fit_leaves_nothing_behind(
    files: MemoryFiles, free_bytes: int
) -> None:
    log = log_of_two(files)
    fill_up(files, log, free_bytes)
    assert files.sizes(DIRECTORY) == {f"{0:020d}.log": len(WHOLE)}
    assert (log.end_offset, log.size_bytes) == (2, len(WHOLE))


def test_reading_goes_on(files: MemoryFiles) -> None:
    log = log_of_two(files)
    fill_up(files, log, 100)
    assert log.read(Offset(0), bytes_max=1000, end_offset=Offset(2)).read() == WHOLE


def test_appending_goes_on_when_there_is_space_again(files: MemoryFiles) -> None:
    log = log_of_two(files)
    fill_up(files, log, 100)
    files.capacity_bytes = None
    log.append(batch(2, size=5))
    assert log.sync() == 3
    again = open_log(files.after_crash(Random(0)))
    assert again.recovery.cut is None
    assert again.read(Offset(0), bytes_max=1000, end_offset=Offset(3)).read() == WHOLE + batch(
        2, size=5
    )


@pytest.mark.parametrize("free_bytes", [0, 1, 88, 89, 100, 175])
def test_of_a_run_that_does_not_fit_nothing_is_left_and_the_next_is_as_if_it_had_not_been(
    files: MemoryFiles, free_bytes: int
) -> None:
    log = log_of_two(files)
    run = [bytearray(batch(0, size=20)), bytearray(batch(0, size=20))]
    headers = [read_header(data) for data in run]
    files.capacity_bytes = sum(files.sizes(DIRECTORY).values()) + free_bytes
    with pytest.raises(OSError, match="No space left"):
        log.append_run(run, headers, Epoch(1))
    assert files.sizes(DIRECTORY) == {f"{0:020d}.log": len(WHOLE)}
    assert (log.end_offset, log.size_bytes) == (2, len(WHOLE))
    files.capacity_bytes = None
    assert log.append_run(run, headers, Epoch(1)) == 4
    stored = log.read(Offset(0), bytes_max=1000, end_offset=Offset(4)).read()
    assert stored == WHOLE + b"".join(run)
    assert [header.base_offset for _, header in iter_headers(stored)] == [0, 1, 2, 3]


def test_a_batch_that_fits_may_follow_one_that_did_not(files: MemoryFiles) -> None:
    log = log_of_two(files)
    fill_up(files, log, 100)
    log.append(batch(2, size=5))
    assert log.end_offset == 3


def test_a_roll_that_fails_leaves_the_log_as_it_was(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of_two(files, segment_bytes=200)

    def refuse(path: str) -> File:
        raise OSError(28, "No space left on device", path)

    monkeypatch.setattr(files, "create", refuse)
    with pytest.raises(OSError, match="No space left"):
        log.append(batch(2, size=100))
    monkeypatch.undo()
    assert (log.segment_count, log.end_offset) == (1, 2)
    log.append(batch(2, size=100))
    assert (log.segment_count, log.end_offset) == (2, 3)


def leave_half_a_batch(files: MemoryFiles, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail an append, and fail to cut it back."""

    def refuse(self: MemoryFile, size_bytes: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(MemoryFile, "truncate", refuse)
    files.capacity_bytes = len(WHOLE) + len(batch(2, size=20)) - 1
    with pytest.raises(OSError, match="Input/output error"):
        log.append(batch(2, size=20))
    monkeypatch.undo()
    files.capacity_bytes = None


def test_a_tail_that_could_not_be_cut_back_is_cut_before_the_next_append(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of_two(files)
    leave_half_a_batch(files, log, monkeypatch)
    log.append(batch(2, size=5))
    assert files.sizes(DIRECTORY)[f"{0:020d}.log"] == len(WHOLE + batch(2, size=5))


def test_a_tail_that_could_not_be_cut_back_is_cut_before_a_roll(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of_two(files, segment_bytes=300)
    leave_half_a_batch(files, log, monkeypatch)
    log.append(batch(2, size=200))
    assert log.segment_count == 2
    assert files.sizes(DIRECTORY)[f"{0:020d}.log"] == len(WHOLE)


def test_a_roll_whose_snapshot_fails_leaves_no_segment_behind(files: MemoryFiles) -> None:
    def refuse() -> bytes:
        raise MemoryError

    log = Log.open(files, DIRECTORY, LogSettings(segment_bytes=200), take_snapshot=refuse)
    log.append(batch(0, size=20))
    log.append(batch(1, size=20))
    with pytest.raises(MemoryError):
        log.append(batch(2, size=20))
    assert list(files.sizes(DIRECTORY)) == [f"{0:020d}.log"]


def test_a_short_write_of_the_operating_system_is_completed(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    whole_write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: whole_write(fd, data[:7], at))
    file = OsFiles().create(str(tmp_path_factory.mktemp("files") / "a"))
    file.pwrite(bytes(range(100)), 3)
    assert file.pread(1000, 0) == bytes(3) + bytes(range(100))


def test_what_could_not_be_written_beside_a_log_is_in_the_next_capture(files: MemoryFiles) -> None:
    log = open_log(files, segment_bytes=200)
    for offset in range(4):
        log.append(batch(offset, size=60))
    log.delete_before(Offset(1), b"of what was below").run()
    files.capacity_bytes = 0
    with pytest.raises(NotTaken):
        log.sync()
    assert log.needs_sync
    files.capacity_bytes = None
    assert log.sync() == 4
    names = [name for name in files.sizes(DIRECTORY) if not name.endswith(".log")]
    assert sorted(names) == [
        f"{offset:020d}.{suffix}"
        for offset, suffix in (
            (1, "index"),
            (1, "snapshot"),
            (1, "timeindex"),
            (2, "index"),
            (2, "timeindex"),
        )
    ]
    assert not log.needs_sync


@pytest.mark.parametrize("seed", range(8))
def test_the_batches_are_on_the_disk_all_the_same(files: MemoryFiles, seed: int) -> None:
    log = open_log(files, segment_bytes=200)
    for offset in range(4):
        log.append(batch(offset, size=60))
    files.capacity_bytes = 0
    with pytest.raises(NotTaken):
        log.sync()
    files.capacity_bytes = None
    assert log.sync() == 4
    assert open_log(files.after_crash(Random(seed))).end_offset == 4


# Without a descriptor


def refuse_once(files: MemoryFiles, monkeypatch: pytest.MonkeyPatch, name: str, at: int) -> None:
    """What `name` opens cannot be opened, once, after so many that were."""
    left, step = at, getattr(files, name)

    def short(path: str) -> object:
        nonlocal left
        left -= 1
        if left == -1:
            raise OSError(errno.EMFILE, "Too many open files")
        return step(path)

    monkeypatch.setattr(files, name, short)


@pytest.mark.parametrize(("name", "at"), [("create", 0), ("create", 3), ("sync_directory", 0)])
def test_what_could_not_be_opened_beside_a_log_is_in_the_next_capture(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch, name: str, at: int
) -> None:
    log = open_log(files, segment_bytes=200)
    for offset in range(4):
        log.append(batch(offset, size=60))
    log.delete_before(Offset(1), b"of what was below").run()
    refuse_once(files, monkeypatch, name, at)
    with pytest.raises(NotTaken):
        log.sync()
    needed_sync = log.needs_sync
    assert log.sync() == 4
    assert (needed_sync, log.needs_sync) == (True, False)
    assert len(files.sizes(DIRECTORY)) == 8
    for seed in range(20):
        crashed = files.after_crash(Random(seed))
        assert len(crashed.sizes(DIRECTORY)) == 8
        assert open_log(crashed).end_offset == 4


def test_a_large_run_whose_name_could_not_be_synced_is_synced_when_it_is_tried_again(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(files, segment_bytes=200)
    for offset in range(4):
        log.append(batch(offset, size=60))
    refuse_once(files, monkeypatch, "sync_directory", 0)
    sync = log.begin_tail_sync()
    with pytest.raises(NotTaken):
        sync.run()
    sync.run()
    for seed in range(20):
        assert open_log(files.after_crash(Random(seed))).end_offset == 4


def test_a_sync_of_names_that_fails_is_the_end_whatever_it_says(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was begun: what it was for may be lost."""
    log = open_log(files, segment_bytes=200)
    for offset in range(4):
        log.append(batch(offset, size=60))
    sync = log.begin_tail_sync()
    files.failing_syncs, files.sync_error = 1, errno.ENOMEM
    files.spared_syncs = len(sync.files)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        sync.run()
    assert log.has_failed
