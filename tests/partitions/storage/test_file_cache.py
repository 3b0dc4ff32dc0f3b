"""A bounded number of descriptors, and readers that hold on to theirs."""

import os
from pathlib import Path

import pytest

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.types import Offset


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    found = [tmp_path / str(number) for number in range(10)]
    for path in found:
        path.write_text(path.name)
    return list(map(str, found))


def test_the_files_read_last_stay_open(paths: list[str]) -> None:
    cache, before = FileCache(OsFiles(), open_max=3), descriptors()
    opened = [cache.get(path).fileno() for path in paths]
    assert (len(cache), descriptors() - before) == (3, 3)
    assert [cache.get(path).fileno() for path in paths[-3:]] == opened[-3:]


def test_a_file_in_use_outlives_its_place_in_the_cache(paths: list[str]) -> None:
    cache, before = FileCache(OsFiles(), open_max=1), descriptors()
    held = [cache.get(path) for path in paths]
    assert [file.pread(10, 0) for file in held] == [str(n).encode() for n in range(10)]
    held.clear()
    assert descriptors() - before == 1


def test_a_forgotten_path_is_opened_anew(paths: list[str]) -> None:
    cache = FileCache(OsFiles(), open_max=3)
    assert cache.get(paths[0]).pread(10, 0) == b"0"
    os.replace(paths[1], paths[0])
    assert cache.get(paths[0]).pread(10, 0) == b"0"
    cache.forget(paths[0])
    assert cache.get(paths[0]).pread(10, 0) == b"1"


def test_many_segments_of_many_logs_share_a_few_descriptors(tmp_path: Path) -> None:
    readers = FileCache(OsFiles(), open_max=5)
    settings = LogSettings(segment_bytes=100)
    logs = []
    for number in range(10):
        (tmp_path / str(number)).mkdir()
        log = Log.open(OsFiles(), str(tmp_path / str(number)), settings, readers=readers)
        for base_offset in range(10):
            log.append(batch(base_offset, size=30))
        log.close()
        logs.append(log)
    before = descriptors()
    again = [
        Log.open(OsFiles(), log.directory, settings, readers=readers, recovery_point=log.end_offset)
        for log in logs
    ]
    for log in again:
        for base_offset in range(10):
            read = log.read(Offset(base_offset), bytes_max=1000, end_offset=Offset(10))
            assert read.read() == batch(base_offset, size=30)
    assert descriptors() - before <= 5
