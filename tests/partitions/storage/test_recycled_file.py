"""The file of a segment that is gone is written over by the next one, and never taken for it."""

import errno
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from random import Random
from subprocess import run

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.directories import files_with
from tests.partitions.storage.recycling import (
    DIRECTORY,
    SETTINGS,
    SIZE,
    fill,
    is_kept,
    trimmed,
    trimmed_again,
)
from tests.recycling import need_disk, need_leases, need_recycling, put_out_of_memory
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.names import LOG_SUFFIX
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.recycled_file import RECYCLED_NAME, RecycledFile
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.room import Room
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.slices import LogSlice
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import check_crc, iter_headers
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

_OPENED_MEANWHILE = """
import fcntl, subprocess, sys, time
from tidemark.partitions.storage.os_files import OsFiles

call = fcntl.fcntl

def call_and_wait(descriptor, command, argument):
    answer = call(descriptor, command, argument)
    if (command, argument) == (fcntl.F_SETLEASE, fcntl.F_WRLCK):
        others.append(subprocess.Popen(["cat", sys.argv[1]]))
        time.sleep(0.5)
    return answer

others, fcntl.fcntl = [], call_and_wait
alone = OsFiles().open_alone(sys.argv[1])
assert alone is not None
assert others[0].wait(30) == 0
"""


@pytest.fixture
def files() -> MemoryFiles:
    return files_with(DIRECTORY)


def trimmed_os(folder: Path) -> tuple[Log, Removal]:
    """As `trimmed`, on the system's files."""
    log = Log.open(OsFiles(), str(folder), SETTINGS)
    fill(log, 3)
    log.sync()
    return log, log.delete_before(Offset(7))


def last_file_bytes(files: MemoryFiles) -> int:
    sizes = files.sizes(DIRECTORY)
    return sizes[max(name for name in sizes if name.endswith(LOG_SUFFIX))]


def values(log: Log) -> Sequence[int]:
    """The offsets that can be read."""
    offset, found = log.start_offset, list[int]()
    while offset < log.end_offset:
        part = log.read(offset, bytes_max=1, end_offset=log.end_offset)
        assert part.read() == batch(offset, size=SIZE)
        found.append(offset)
        offset = part.end_offset
    return found


def test_the_next_segment_is_written_over_the_file_of_one_that_is_gone(files: MemoryFiles) -> None:
    log, removal = trimmed(files)
    assert not is_kept(files)
    removal.run()
    assert is_kept(files)
    start = log.start_offset
    fill(log, 3)
    assert not is_kept(files)
    assert last_file_bytes(files) > 4 * len(batch(0, size=SIZE))
    assert values(log) == list(range(start, log.end_offset))
    complete = max(name for name in files.sizes(DIRECTORY) if name.endswith(LOG_SUFFIX))
    log.append(batch(log.end_offset, size=900))
    size_bytes = len(batch(0, size=SIZE))
    assert files.sizes(DIRECTORY)[complete] == size_bytes, "it is cut when it is complete"


def test_what_is_behind_a_segment_in_its_file_is_not_the_log(files: MemoryFiles) -> None:
    log, removal = trimmed(files)
    removal.run()
    start = log.start_offset
    fill(log, 3)
    assert last_file_bytes(files) > 2 * len(batch(0, size=SIZE))
    for count in range(3):
        end = log.sync()
        for after in (files.after_kill(), *(files.after_crash(Random(n)) for n in range(20))):
            again = Log.open(after, DIRECTORY, SETTINGS, start_offset=start, recovery_point=end)
            assert again.end_offset == log.end_offset, count
            assert values(again) == list(range(start, log.end_offset))
        log.append(batch(log.end_offset, size=SIZE))


def test_no_crash_brings_records_back_that_were_there_before(files: MemoryFiles) -> None:
    log, removal = trimmed(files)
    removal.run()
    start, synced = log.start_offset, log.end_offset
    fill(log, 3)
    for _ in range(3):
        log.append(batch(log.end_offset, size=SIZE))
    for number in range(200):
        after = files.after_crash(Random(number))
        again = Log.open(after, DIRECTORY, SETTINGS, start_offset=start, recovery_point=synced)
        assert synced <= again.end_offset <= log.end_offset
        assert values(again) == list(range(start, again.end_offset))


def test_a_log_that_was_closed_has_nothing_behind_its_end(files: MemoryFiles) -> None:
    log, removal = trimmed(files)
    removal.run()
    fill(log, 3)
    start, end = log.start_offset, log.close()
    again = Log.open(files, DIRECTORY, SETTINGS, start_offset=start, recovery_point=end)
    assert again.recovery.clean
    assert again.end_offset == end


def test_what_is_kept_goes_with_a_close_and_with_a_start(files: MemoryFiles) -> None:
    log, removal = trimmed(files)
    removal.run()
    end = log.sync()
    killed = files.after_kill()
    assert is_kept(killed)
    Log.open(killed, DIRECTORY, SETTINGS, start_offset=log.start_offset, recovery_point=end)
    assert not is_kept(killed)
    log.close()
    assert not is_kept(files)


def test_who_reads_the_old_segment_goes_on_reading_it(files: MemoryFiles) -> None:
    log = Log.open(files, DIRECTORY, SETTINGS)
    fill(log, 2)
    log.sync()
    held = log.read(Offset(0), bytes_max=400, end_offset=log.end_offset)
    before = held.read()
    fill(log, 3)
    log.sync()
    removal = log.delete_before(Offset(7))
    removal.run()
    fill(log, 4)
    assert held.read() == before
    removal.offer()
    assert (is_kept(files), removal.state.recycled.is_offered) == (True, False)
    del held
    removal.offer()
    assert removal.state.recycled.is_offered, "once nobody reads it"


def send(part: LogSlice) -> None:
    with suppress(UnsupportedOperation):  # a file in memory has no descriptor
        part.lend()


@pytest.mark.parametrize("is_late", [False, True])
def test_a_file_that_something_was_sent_from_is_not_written_over(
    files: MemoryFiles, is_late: bool
) -> None:
    log = Log.open(files, DIRECTORY, SETTINGS)
    fill(log, 3)
    log.sync()
    held = log.read(Offset(0), bytes_max=400, end_offset=log.end_offset)
    if not is_late:
        send(held.share())
    removal = log.delete_before(Offset(7))
    removal.run()
    if is_late:
        assert is_kept(files), "as long as it is to be sent"
        send(held)
    del held
    removal.offer()
    assert (is_kept(files), removal.state.recycled.is_offered) == (False, False)
    fill(log, 4)
    assert values(log) == list(range(7, log.end_offset))


@pytest.mark.parametrize("is_found", [False, True])
def test_nor_is_one_that_a_process_before_may_have_sent(tmp_path: Path, is_found: bool) -> None:
    need_recycling(tmp_path)
    files, directory = OsFiles(), str(tmp_path)
    log = Log.open(files, directory, SETTINGS)
    fill(log, 3)
    if is_found:
        log = Log.open(files, directory, SETTINGS, recovery_point=log.close())
    log.delete_before(Offset(7)).run()
    assert files.exists(f"{directory}/{RECYCLED_NAME}") is not is_found


def test_a_file_that_is_not_in_memory_any_more_is_not_written_over(tmp_path: Path) -> None:
    """To ask has the kernel read it, so now and then it is there by the time of the answer."""
    need_recycling(tmp_path)
    need_disk(tmp_path)

    def is_kept(folder: Path) -> bool:
        folder.mkdir()
        log, removal = trimmed_os(folder)
        put_out_of_memory(folder / f"{0:020}{LOG_SUFFIX}")
        removal.run()
        kept = (folder / RECYCLED_NAME).exists()
        fill(log, 4)
        assert values(log) == list(range(7, log.end_offset))
        return kept

    assert not all(is_kept(tmp_path / str(number)) for number in range(8))


def test_of_the_os_a_file_is_taken_only_if_nobody_has_it_open(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("alone")
    need_leases(folder)
    path = str(folder / "file")
    files = OsFiles()
    files.create(path).pwrite(b"x", 0)
    reader = files.open_reader(path)
    assert files.open_alone(path) is None
    del reader
    writer = files.open(path)
    assert files.open_alone(path) is None
    del writer
    alone = files.open_alone(path)
    assert alone is not None
    assert files.open_reader(path).pread(1, 0) == b"x", "it may be opened again"


def test_who_opens_a_file_while_it_is_taken_does_not_end_the_process(tmp_path: Path) -> None:
    need_leases(tmp_path)
    path = tmp_path / "file"
    path.write_bytes(b"x")
    ended = run([sys.executable, "-c", _OPENED_MEANWHILE, path], check=False, timeout=60)
    assert ended.returncode == 0


def test_only_a_large_file_of_a_log_that_may_grow_is_kept(files: MemoryFiles) -> None:
    log = Log.open(files, DIRECTORY, SETTINGS)
    kept = []
    for settings, is_out in (
        (LogSettings(segment_bytes=1000, recycled_batch_bytes=-1), False),  # compacted
        (LogSettings(segment_bytes=1000), False),  # small batches
        (SETTINGS, True),
        (LogSettings(segment_bytes=2000, recycled_batch_bytes=SIZE), False),  # grown
        (SETTINGS, False),
    ):
        log.settings, log.room = SETTINGS, Room()
        fill(log, log.segment_count + 1)
        log.settings, log.room = settings, Room(is_out=is_out)
        log.delete_before(log.end_offset).run()
        kept.append(is_kept(files))
    assert kept == [False, False, False, False, True]


@pytest.mark.parametrize("is_late", [True, False])
def test_a_log_that_begins_anew_takes_no_file_of_its_former_self(
    files: MemoryFiles, is_late: bool
) -> None:
    log, removal = trimmed(files)
    if not is_late:
        removal.run()
    log.reset(Offset(0))
    removal.run()
    assert (is_kept(files), last_file_bytes(files)) == (False, 0)
    fill(log, 2)
    assert values(log) == list(range(log.end_offset))


def test_a_partition_that_is_given_up_leaves_its_path_alone(files: MemoryFiles) -> None:
    log, removal = trimmed(files)
    removal.run()
    recycled = removal.state.recycled
    log.abandon()
    assert not recycled.is_offered
    recycled.drop()
    assert is_kept(files), "it may be another's by now"


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_what_was_synced_is_there_and_nothing_else(
    files: MemoryFiles, seed: int
) -> None:
    """Appends, trims and cuts by chance, and now and then a crash, or a process that ends."""
    rng = Random(seed)
    log, log_start, synced, taken = Log.open(files, DIRECTORY, SETTINGS), Offset(0), Offset(0), 0
    held: list[tuple[LogSlice, bytes]] = []
    for _ in range(150):
        step = rng.choice(["append"] * 8 + ["sync", "trim", "trim", "read", "cut", "kill", "crash"])
        if step == "append":
            was_kept = is_kept(files)
            log.append(batch(log.end_offset, size=SIZE))
            taken += was_kept and not is_kept(files)
        elif step == "sync":
            synced = log.sync()
        elif step == "trim":
            removal = log.delete_before(Offset(rng.randint(log_start, log.end_offset)))
            log_start = log.start_offset
            removal.run()
        elif step == "read":
            held.append(
                (part := log.read(log_start, bytes_max=300, end_offset=log.end_offset), part.read())
            )
        elif step == "cut":
            held.clear()
            log.sync()
            log.truncate(Offset(rng.randint(log_start, log.end_offset)))
            log_start, synced = log.start_offset, log.end_offset
        else:
            held.clear()
            end = log.end_offset
            files = files.after_kill() if step == "kill" else files.after_crash(rng)
            log = Log.open(
                files, DIRECTORY, SETTINGS, start_offset=log_start, recovery_point=synced
            )
            least = end if step == "kill" else synced
            assert max(least, log_start) <= log.end_offset <= max(end, log_start)
            synced = log.end_offset
        assert all(part.read() == data for part, data in held)
        assert values(log) == list(range(log_start, log.end_offset))
    assert taken or seed


def test_a_log_that_begins_anew_while_a_file_is_prepared_does_not_take_it(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, removal = trimmed(files)
    prepared = RecycledFile.prepared

    def reset_meanwhile(recycled: RecycledFile, batch_bytes: int) -> File | None:
        file = prepared(recycled, batch_bytes)
        log.reset(Offset(0))
        return file

    monkeypatch.setattr(RecycledFile, "prepared", reset_meanwhile)
    removal.run()
    assert not removal.state.recycled.is_offered
    fill(log, 2)
    assert values(log) == list(range(log.end_offset))


def test_a_file_whose_name_may_be_there_yet_is_not_offered(
    files: MemoryFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, first = trimmed(files)
    first.run()
    following = trimmed_again(files, log)

    def no_descriptor(path: str) -> None:
        raise OSError(errno.EMFILE, path)

    with monkeypatch.context() as patched:
        patched.setattr(files, "sync_directory", no_descriptor)
        with pytest.raises(OSError, match=DIRECTORY):
            following.run()
    first.offer()
    assert (is_kept(files), first.state.recycled.is_offered) == (True, False)
    following.run()
    assert first.state.recycled.is_offered


def test_old_batches_are_spoilt_on_the_disk_before_a_new_one_comes(files: MemoryFiles) -> None:
    _, removal = trimmed(files)
    removal.run()
    assert removal.state.recycled.is_offered
    for number in range(30):
        after = files.after_crash(Random(number))
        if RECYCLED_NAME in after.sizes(DIRECTORY):
            data = after.open(f"{DIRECTORY}/{RECYCLED_NAME}").pread(10_000, 0)
            headers = list(iter_headers(data))
            assert headers
            for at, header in headers:
                with pytest.raises(CorruptBatch):
                    check_crc(data[at : at + header.size_bytes], header)
