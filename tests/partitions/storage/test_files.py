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
