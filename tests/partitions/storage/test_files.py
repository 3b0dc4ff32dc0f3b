"""The operating system's files keep the seam's promises where the system's calls do less."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tidemark.partitions.storage.files import OsFiles
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
