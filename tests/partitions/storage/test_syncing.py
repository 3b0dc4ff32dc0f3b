"""What counts as durable, on a disk that makes use of all it may do."""

import errno
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from random import Random
from threading import Thread
from typing import Any

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.directories import files_with
from tests.partitions.storage.searches import find_timestamp
from tidemark.partitions.storage import log_state
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.syncing import Capture, TailSync
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFile, MemoryFiles

SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=100)
DIRECTORY = "/p-0"
SEEDS = range(60)


def open_log(files: MemoryFiles, recovery_point: int = 0, start_offset: int = 0) -> Log:
    return Log.open(
        files,
        DIRECTORY,
        SETTINGS,
        recovery_point=Offset(recovery_point),
        start_offset=Offset(start_offset),
    )


@pytest.fixture
def files() -> MemoryFiles:
    return files_with(DIRECTORY)


def append(log: Log, count: int) -> None:
    for _ in range(count):
        log.append(batch(log.end_offset, size=20))


def assert_survives(files: MemoryFiles, end_offset: int) -> None:
    """After any crash the log opens and has at least all below `end_offset`."""
    for seed in SEEDS:
        log = open_log(files.after_crash(Random(seed)), end_offset)
        for offset in range(end_offset):
            got = log.read(Offset(offset), bytes_max=1, end_offset=Offset(end_offset)).read()
            assert got == batch(offset, size=20)


def test_what_a_sync_returned_survives(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 3)
    durable = log.sync()
    append(log, 3)
    assert durable == 3
    assert_survives(files, 3)


def test_a_capture_speaks_of_what_was_appended_before_it(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 2)
    capture = log.begin_sync()
    append(log, 2)
    assert capture.sync() == 2
    assert_survives(files, 2)
    assert log.sync() == 4
    assert_survives(files, 4)


def test_a_roll_while_a_sync_is_under_way_is_covered_by_the_next(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 3)
    capture = log.begin_sync()
    append(log, 10)
    assert log.segment_count == 4
    assert capture.sync() == 3
    assert_survives(files, 3)
    before, durable, after = log.needs_sync, log.sync(), log.needs_sync
    assert (before, durable, after) == (True, 13, False)
    assert_survives(files, 13)


def test_much_that_was_appended_is_worth_a_sync_though_nobody_waits_for_one(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a log with `flush=os`: a start would check and write all of it again."""
    log = Log.open(files, DIRECTORY, LogSettings())
    one = batch(0, size=100)
    monkeypatch.setattr(log_state, "UNSYNCED_BYTES_MAX", 2 * len(one))
    needs = []
    for offset in range(5):
        log.append(batch(offset, size=100))
        needs.append(log.needs_sync)
        if log.needs_sync:
            log.sync()
    assert needs == [False, True, False, True, False]
    log.truncate(Offset(1))
    log.append(batch(1, size=100))
    assert not log.needs_sync


def test_a_new_segments_name_is_synced_before_it_counts(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 5)
    files.synced_paths.clear()
    assert log.sync() == 5
    assert files.synced_paths[-1] == DIRECTORY
    assert f"{DIRECTORY}/{4:020d}.log" in files.synced_paths


def test_indexes_are_written_by_the_sync_that_follows_a_roll_and_never_before(
    files: MemoryFiles,
) -> None:
    log = open_log(files)
    append(log, 9)
    assert not [name for name in files.sizes(DIRECTORY) if "index" in name]
    log.sync()
    assert sorted(name for name in files.sizes(DIRECTORY) if "index" in name) == [
        f"{base:020d}{suffix}" for base in (0, 4) for suffix in (".index", ".timeindex")
    ]


def test_an_index_file_is_all_there_or_not_at_all(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 9)
    log.sync()
    whole = {name: size for name, size in files.sizes(DIRECTORY).items() if "index" in name}
    append(log, 4)
    log.begin_sync()
    for seed in SEEDS:
        sizes = files.after_crash(Random(seed)).sizes(DIRECTORY)
        assert {name: size for name, size in sizes.items() if "index" in name} == whole


def test_a_log_without_changes_is_not_synced_again(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 5)
    log.sync()
    files.synced_paths.clear()
    assert log.sync() == 5
    assert files.synced_paths == []


def test_a_failed_sync_is_reported_and_never_followed_by_another(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 2)
    files.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output error") as caught:
        log.sync()
    assert caught.value.errno == errno.EIO
    with pytest.raises(StorageError, match="a sync failed"):
        log.sync()
    with pytest.raises(StorageError, match="a sync failed"):
        append(log, 4)  # as soon as it matters: here at the roll


def test_nor_by_one_that_was_captured_before(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 2)
    capture, tail = log.begin_sync(), log.begin_tail_sync()
    files.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output error"):
        capture.sync()
    with pytest.raises(OSError, match="Input/output error"):
        tail.run()


@pytest.mark.parametrize("failing", [1, 2, 3, 4, 5, 6])
def test_every_sync_of_a_roll_may_fail(files: MemoryFiles, failing: int) -> None:
    log = open_log(files)
    append(log, 5)
    capture = log.begin_sync()
    succeeding = iter(range(failing - 1))
    before_sync = files.before_sync

    def count(path: str, node: object) -> None:
        if next(succeeding, None) is None:
            files.failing_syncs = 1
        before_sync(path, node)  # type: ignore[arg-type] # a node, handed through

    files.before_sync = count  # type: ignore[method-assign] # fails the nth sync
    if failing <= 5:
        with pytest.raises(OSError, match="Input/output error"):
            capture.sync()
    else:
        assert capture.sync() == 5


def test_a_truncation_is_durable_before_anything_is_appended(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 11)
    log.sync()
    log.truncate(Offset(6))
    for seed in SEEDS:
        assert open_log(files.after_crash(Random(seed)), 6).end_offset == 6
    append(log, 1)
    for seed in SEEDS:
        assert open_log(files.after_crash(Random(seed)), 6).end_offset in (6, 7)


def test_a_crash_during_a_truncation_leaves_no_gap(files: MemoryFiles) -> None:
    """Each step of it, as far as a crash can tell them apart: after each sync."""
    log = open_log(files)
    append(log, 15)
    log.sync()
    images: list[MemoryFiles] = []
    before_sync = files.before_sync

    def crash_here(path: str, node: object) -> None:
        images.extend(files.after_crash(Random(seed)) for seed in range(20))
        before_sync(path, node)  # type: ignore[arg-type] # a node, handed through

    files.before_sync = crash_here  # type: ignore[method-assign] # a crash before each sync
    log.truncate(Offset(2))
    assert len(images) >= 40
    for image in images:
        assert 2 <= open_log(image, 2).end_offset <= 15


def test_a_crash_during_a_removal_leaves_no_gap(files: MemoryFiles) -> None:
    log = open_log(files)
    append(log, 15)
    log.sync()
    removal = log.delete_before(Offset(13))
    images: list[MemoryFiles] = []
    before_sync = files.before_sync

    def crash_here(path: str, node: object) -> None:
        images.extend(files.after_crash(Random(seed)) for seed in range(20))
        before_sync(path, node)  # type: ignore[arg-type] # a node, handed through

    files.before_sync = crash_here  # type: ignore[method-assign] # a crash before each sync
    removal.run()
    assert len(images) == 60
    for image in images:
        # The broker has recorded the start before.
        assert open_log(image, 15, start_offset=13).end_offset == 15


def test_a_sync_after_the_files_went_away_writes_nothing(files: MemoryFiles) -> None:
    """A topic is deleted while the writer thread has its log."""
    log = open_log(files)
    append(log, 9)
    capture = log.begin_sync()
    log.abandon()
    files.rename(DIRECTORY, "/p-0.gone-delete")
    assert capture.sync() == 9
    assert [name for name in files.sizes("/p-0.gone-delete") if "index" in name] == []


def test_a_tail_whose_files_went_away_asks_nothing_of_their_directory(files: MemoryFiles) -> None:
    """A topic is deleted while a large run waits for the writer thread: that is no failed disk."""
    log = open_log(files)
    append(log, 9)
    tail = log.begin_tail_sync()
    assert tail.unnamed
    log.abandon()
    files.rename(DIRECTORY, "/p-0.gone-delete")
    tail.run()


def test_appends_and_reads_go_on_beside_the_writer_thread(tmp_path: Path) -> None:
    """On real files and a real thread, with a roll every few appends."""
    log = Log.open(OsFiles(), str(tmp_path), SETTINGS)
    captures: SimpleQueue[Capture | None] = SimpleQueue()
    durable: list[int] = []

    def write() -> None:
        while (capture := captures.get()) is not None:
            durable.append(capture.sync())

    writer = Thread(target=write)
    writer.start()
    for offset in range(400):
        log.append(batch(offset, size=20))
        if offset % 3 == 0:
            captures.put(log.begin_sync())
        looked_for = Offset(offset // 2)
        read = log.read(looked_for, bytes_max=1, end_offset=log.end_offset).read()
        assert read == batch(looked_for, size=20)
    captures.put(log.begin_sync())
    captures.put(None)
    writer.join(timeout=60)
    assert durable == [*range(1, 401, 3), 400]
    assert log.close() == 400
    again = Log.open(OsFiles(), str(tmp_path), SETTINGS, recovery_point=Offset(400))
    assert again.recovery.clean
    assert find_timestamp(again, 1123, end_offset=Offset(400)) == (1123, 123)


@pytest.mark.parametrize("begin", [Log.begin_sync, Log.begin_early_sync, Log.begin_tail_sync])
def test_what_nobody_waits_for_is_written_back_before_it_is_synced(
    files: MemoryFiles,
    monkeypatch: pytest.MonkeyPatch,
    begin: Callable[[Log], Capture | TailSync],
) -> None:
    done = list[str]()
    monkeypatch.setattr(MemoryFile, "write_back", lambda file, end: done.append("written back"))
    monkeypatch.setattr(MemoryFile, "sync", lambda file: done.append("synced"))
    log = open_log(files)
    append(log, 3)
    done.clear()
    match begin(log):
        case TailSync() as tail:
            tail.run()
        case capture:
            capture.sync()
    is_waited_for = begin is Log.begin_tail_sync
    assert done[:2] == (["synced"] if is_waited_for else ["written back", "synced"])


def log_with_a_roll(files: MemoryFiles) -> Log:
    """Of two segments, of which nothing is synced."""
    log = open_log(files)
    grow_a_roll(log)
    return log


def grow_a_roll(log: Log) -> None:
    while len(log._segments) < 2:
        append(log, 1)


def cut_into_the_first(log: Log) -> None:
    log.truncate(Offset(log._segments[1].base_offset - 1))


def logs_synced_by(files: MemoryFiles, sync: TailSync) -> list[str]:
    before = len(files.synced_paths)
    sync.run()
    return [path for path in files.synced_paths[before:] if path.endswith(".log")]


def test_a_complete_segment_is_synced_once_and_the_newest_each_time(files: MemoryFiles) -> None:
    log = log_with_a_roll(files)
    first, second = (segment.path for segment in log._segments)
    assert logs_synced_by(files, log.begin_tail_sync()) == [first, second]
    append(log, 1)
    assert logs_synced_by(files, log.begin_tail_sync()) == [second]
    assert_survives(files, log.end_offset)


def test_one_that_was_cut_and_has_grown_is_synced_again(files: MemoryFiles) -> None:
    log = log_with_a_roll(files)
    log.begin_tail_sync().run()
    cut_into_the_first(log)
    grow_a_roll(log)
    both = [segment.path for segment in log._segments]
    assert logs_synced_by(files, log.begin_tail_sync()) == both
    assert_survives(files, log.end_offset)


def test_so_it_is_where_the_sync_from_before_the_cut_says_so_late(files: MemoryFiles) -> None:
    class Late:
        """A file whose log goes on before anybody hears that it is synced."""

        def __init__(self, file: File) -> None:
            self._file = file

        def sync(self) -> None:
            self._file.sync()
            cut_into_the_first(log)
            grow_a_roll(log)

    log = log_with_a_roll(files)
    sync = log.begin_tail_sync()
    late: Any = Late(sync.files[0])
    replace(sync, files=(late,), ends=sync.ends[:1]).run()
    both = [segment.path for segment in log._segments]
    assert logs_synced_by(files, log.begin_tail_sync()) == both
    assert_survives(files, log.end_offset)
