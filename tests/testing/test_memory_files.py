"""The double of the file system is itself tested: a disk that is too kind finds no bug."""

from collections.abc import Callable
from random import Random

import pytest

from tidemark.partitions.storage.files import replace_file
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.testing.memory_files import MemoryFiles

SEEDS = 300


def contents(files: MemoryFiles, path: str) -> bytes | None:
    if not files.exists(path):
        return None
    return files.open_reader(path).pread(1 << 20, 0)


def outcomes(files: MemoryFiles, look: Callable[[MemoryFiles], object]) -> set[object]:
    return {look(files.after_crash(Random(seed))) for seed in range(SEEDS)}


def file_with(files: MemoryFiles, path: str, data: bytes) -> None:
    files.create(path).pwrite(data, 0)
    files.open(path).sync()
    files.sync_directory("/")


def test_what_was_synced_survives_every_crash() -> None:
    files = MemoryFiles()
    file_with(files, "/a", b"synced")
    assert outcomes(files, lambda f: contents(f, "/a")) == {b"synced"}


def test_unsynced_bytes_may_stay_go_be_torn_or_be_zero() -> None:
    files = MemoryFiles()
    file_with(files, "/a", b"ab")
    files.open(path="/a").pwrite(b"cd", 2)
    found = outcomes(files, lambda f: contents(f, "/a"))
    assert found == {b"ab", b"abcd", b"abc", b"ab\0\0"}


def test_unsynced_writes_may_be_reordered() -> None:
    files = MemoryFiles()
    file_with(files, "/a", b"")
    files.open("/a").pwrite(b"1", 0)
    files.open("/a").pwrite(b"2", 1)
    assert b"\x002" in outcomes(files, lambda f: contents(f, "/a"))


def test_a_synced_file_without_its_synced_name_may_be_gone() -> None:
    files = MemoryFiles()
    files.create("/a").pwrite(b"data", 0)
    files.open("/a").sync()
    assert outcomes(files, lambda f: contents(f, "/a")) == {None, b"data"}


def test_a_removal_that_was_not_synced_may_come_undone() -> None:
    files = MemoryFiles()
    file_with(files, "/a", b"data")
    files.remove("/a")
    assert outcomes(files, lambda f: contents(f, "/a")) == {None, b"data"}


def test_a_replaced_file_is_the_old_or_the_new_one() -> None:
    files = MemoryFiles()
    file_with(files, "/a", b"old")
    replace_file(files, "/a", b"new")
    assert outcomes(files, lambda f: contents(f, "/a")) == {b"old", b"new"}


def test_a_kill_loses_nothing() -> None:
    files = MemoryFiles()
    files.create("/a").pwrite(b"data", 0)
    assert contents(files.after_kill(), "/a") == b"data"


def test_a_failed_sync_is_followed_by_one_that_succeeds_and_syncs_nothing() -> None:
    files = MemoryFiles()
    file_with(files, "/a", b"")
    file = files.open("/a")
    file.pwrite(b"lost", 0)
    files.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output error"):
        file.sync()
    file.sync()
    assert file.pread(10, 0) == b"lost"
    assert outcomes(files, lambda f: contents(f, "/a")) == {b""}


def test_a_full_disk_takes_what_fits() -> None:
    files = MemoryFiles()
    files.capacity_bytes = 6
    file = files.create("/a")
    file.pwrite(b"1234", 0)
    with pytest.raises(OSError, match="No space left"):
        file.pwrite(b"5678", 4)
    assert file.pread(10, 0) == b"123456"
    file.pwrite(b"over", 0)


def test_a_removed_file_stays_readable_to_who_holds_it() -> None:
    files = MemoryFiles()
    file_with(files, "/a", b"data")
    held = files.open_reader("/a")
    files.remove("/a")
    assert held.pread(10, 0) == b"data"
    with pytest.raises(FileNotFoundError):
        files.open("/a")


@pytest.mark.parametrize("make", [MemoryFiles, OsFiles])
def test_it_answers_as_the_operating_system_does(
    make: Callable[[], MemoryFiles | OsFiles], tmp_path_factory: pytest.TempPathFactory
) -> None:
    files = make()
    root = str(tmp_path_factory.mktemp("root")) if isinstance(files, OsFiles) else ""
    files.make_directory(f"{root}/d")
    file = files.create(f"{root}/d/a")
    file.pwrite(b"0123456789", 5)
    file.truncate(12)
    assert file.pread(100, 3) == b"\0\x000123456"
    assert file.pread(5, 100) == b""
    files.rename(f"{root}/d/a", f"{root}/d/b")
    assert files.sizes(f"{root}/d") == {"b": 12}
    assert files.subdirectories(f"{root}/") == ["d"]
    with pytest.raises(OSError, match="not empty"):
        files.remove_directory(f"{root}/d")
    with pytest.raises(FileExistsError):
        files.make_directory(f"{root}/d")
    with pytest.raises(FileNotFoundError):
        files.remove(f"{root}/d/a")
    files.remove(f"{root}/d/b")
    files.remove_directory(f"{root}/d")
    assert not files.exists(f"{root}/d")
    held = files.lock(f"{root}/lock")
    assert held is not None
    assert files.lock(f"{root}/lock") is None
    held.release()
    assert files.lock(f"{root}/lock") is not None


def test_a_power_failure_in_the_midst_keeps_what_was_there_at_that_sync() -> None:
    files = MemoryFiles()
    file_with(files, "/a", b"old")
    files.strikes_in = 1
    files.open("/a").pwrite(b"one", 0)
    files.open("/a").sync()
    files.open("/a").pwrite(b"two", 0)
    files.open("/a").sync()
    assert contents(files, "/a") == b"two"
    assert files.struck is not None
    found = outcomes(files.struck, lambda f: contents(f, "/a"))
    assert found >= {b"one", b"two"}
    assert b"old" not in found
