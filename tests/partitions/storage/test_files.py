"""The operating system's files keep the seam's promises where the system's calls do less."""

import ctypes
import errno
import itertools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

from tidemark.partitions.storage import os_files, writing_back
from tidemark.partitions.storage.os_files import OsFile, OsFiles
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.writing_back import write_back
from tidemark.protocol.types import BytesLike

PARTS = [b"part %d," % number for number in range(3000)]


def test_more_parts_than_one_call_takes_are_all_written(tmp_path: Path) -> None:
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwritev(PARTS, 5)
    assert file.pread(file.size(), 0) == bytes(5) + b"".join(PARTS)


def test_a_call_that_writes_less_than_it_was_given_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_a_few_bytes(descriptor: int, parts: Sequence[BytesLike], position: int) -> int:
        return os.pwrite(descriptor, b"".join(parts)[:7], position)

    monkeypatch.setattr(os, "pwritev", write_a_few_bytes)
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwritev(PARTS, 0)
    assert file.pread(file.size(), 0) == b"".join(PARTS)


@pytest.mark.parametrize("count", [1, 100])
def test_all_directories_are_synced_or_it_is_said(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: set[str] = set()
    monkeypatch.setattr(os, "fsync", lambda fd: synced.add(os.readlink(f"/proc/self/fd/{fd}")))
    paths = [str(tmp_path / str(number)) for number in range(count)]
    for path in paths:
        Path(path).mkdir()
    OsFiles().sync_directories(paths)
    assert synced == set(paths)
    with pytest.raises(FileNotFoundError):
        OsFiles().sync_directories([*paths, str(tmp_path / "missing")])


WITHOUT_THREADS: Final = """
import os, sys, threading
from tidemark.partitions.storage.os_files import OsFiles

MORE_THAN_THERE_IS = 1 << 46
synced = set()
os.fsync = lambda descriptor: synced.add(os.readlink(f"/proc/self/fd/{descriptor}"))
threading.stack_size(MORE_THAN_THERE_IS)
OsFiles().sync_directories(sys.argv[1:])
print(synced == set(sys.argv[1:]))
OsFiles().sync_directories([*sys.argv[1:], "/missing/too"])
"""


def test_directories_are_synced_one_by_one_where_no_thread_can_be_started(tmp_path: Path) -> None:
    paths = [str(tmp_path / str(number)) for number in range(10)]
    for path in paths:
        Path(path).mkdir()
    command = [sys.executable, "-c", WITHOUT_THREADS, *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "True\n", done.stderr
    assert "FileNotFoundError: [Errno 2] No such file or directory: '/missing/too'" in done.stderr


def refuse(error_number: int, refused: list[int]) -> Callable[..., int]:
    """`os.pwritev` as it is, but for calls that are to sync, too."""
    real = os.pwritev

    def pwritev(descriptor: int, parts: Sequence[BytesLike], position: int, flags: int = 0) -> int:
        if flags:
            refused.append(flags)
            raise OSError(error_number, os.strerror(error_number))
        return real(descriptor, parts, position)

    return pwritev


@pytest.mark.parametrize("error_number", [errno.EOPNOTSUPP, errno.ENOSPC, errno.ENOMEM])
def test_what_cannot_be_written_and_synced_in_one_call_is_in_two(
    error_number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there was no room, say, nobody can tell which half was refused: both are done anew."""
    refused, synced = list[int](), list[int]()
    monkeypatch.setattr(os, "pwritev", refuse(error_number, refused))
    monkeypatch.setattr(os, "fdatasync", synced.append)
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwritev_synced([b"ab", b"c"], 2)
    assert file.pread(9, 0) == b"\0\0abc"
    assert (refused, synced) == ([os.RWF_DSYNC], [file.fileno()])


def test_more_parts_than_one_call_takes_are_written_and_synced_in_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[int]()
    monkeypatch.setattr(os, "fdatasync", synced.append)
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwritev_synced(PARTS, 0)
    assert file.pread(1 << 16, 0) == b"".join(PARTS)
    assert synced == [file.fileno()]


def test_what_is_written_and_synced_in_one_call_is_not_synced_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, flags = list[int](), list[int]()
    real = os.pwritev

    def pwritev(descriptor: int, parts: Sequence[BytesLike], position: int, how: int = 0) -> int:
        flags.append(how)
        return real(descriptor, parts, position, how)

    monkeypatch.setattr(os, "pwritev", pwritev)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwritev_synced([b"ab", b"c"], 2)
    assert file.pread(9, 0) == b"\0\0abc"
    assert (flags, synced) == ([os.RWF_DSYNC], [])


def test_a_write_that_is_to_sync_and_fails_is_a_failed_sync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pwritev", refuse(errno.EIO, []))
    with pytest.raises(SyncFailed):
        OsFiles().create(str(tmp_path / "file")).pwritev_synced([b"abc"], 0)


def test_less_than_all_that_was_to_be_synced_is_written_and_synced_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write_a_few_bytes(
        descriptor: int, parts: Sequence[BytesLike], position: int, flags: int = 0
    ) -> int:
        return os.pwrite(descriptor, b"".join(parts)[:2], position)

    synced = list[int]()
    monkeypatch.setattr(os, "pwritev", write_a_few_bytes)
    monkeypatch.setattr(os, "fdatasync", synced.append)
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwritev_synced([b"ab", b"cde"], 0)
    assert file.pread(9, 0) == b"abcde"
    assert synced == [file.fileno()]


def test_what_came_since_is_written_back_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges, now = list[tuple[int, int]](), itertools.count()
    monkeypatch.setattr(os_files, "write_back", lambda fd, start, end: ranges.append((start, end)))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(now)))
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwrite(bytes(100), 0)
    file.write_back(100)
    file.pwrite(bytes(50), 100)
    file.write_back(150)
    file.truncate(70)
    file.write_back(70)
    file.pwrite(bytes(20), 70)
    file.write_back(90)
    assert ranges == [(0, 100), (100, 150), (70, 70), (70, 90)]
    file.truncate(1 << 30)
    file.write_back(1 << 30)
    file.pwrite(bytes(10), 1 << 30)
    file.write_back((1 << 30) + 10)
    end = 1 << 30
    assert ranges[4:] == [(end, end + 10)], "what comes faster than that is left to its sync"


@pytest.mark.skipif(sys.platform != "linux", reason="there is no such call")
def test_what_cannot_be_written_back_is_a_failed_sync() -> None:
    """The kernel tells of it once: the `sync` that follows would succeed."""

    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(OSError, match="Illegal seek"):
        write_back(writing, 0, 10)
    with pytest.raises(SyncFailed):
        OsFile(writing).write_back(10)


def kernel(refused: int, *, at_all: bool) -> Callable[[int, int, int, int], int]:
    """A `sync_file_range` that refuses what it is asked; or only to write, where the disk does."""

    def sync_file_range(descriptor: int, start: int, length: int, flags: int) -> int:
        del descriptor, start, length
        ctypes.set_errno(refused)
        return -1 if flags or at_all else 0

    return sync_file_range


@pytest.mark.skipif(sys.platform != "linux", reason="there is no such call")
def test_what_cannot_begin_to_be_written_is_a_failed_sync(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(SyncFailed):
        OsFile(writing).begin_writing()
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwrite(b"abc", 0)
    file.begin_writing()
    assert file.pread(9, 0) == b"abc"


@pytest.mark.parametrize("refused", [errno.ENOSYS, errno.EPERM])
def test_where_a_kernel_or_a_sandbox_has_no_such_call_nothing_is_written_back(
    refused: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = OsFiles().create(str(tmp_path / "file"))
    file.pwrite(bytes(100), 0)
    monkeypatch.setattr(writing_back, "_sync_file_range", lambda: kernel(refused, at_all=True))
    file.write_back(100)
    file.begin_writing()
    monkeypatch.setattr(writing_back, "_sync_file_range", lambda: kernel(refused, at_all=False))
    file.pwrite(bytes(100), 100)
    with pytest.raises(SyncFailed):
        file.write_back(200)
    with pytest.raises(SyncFailed):
        file.begin_writing()
