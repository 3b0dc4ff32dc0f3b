"""A broker's disk, whose power may fail: real files, and beside them what would be left of them.

Brokers send from files, and SQLite has its own, so the files are the kernel's. Each change is also
made in memory (`memory_files.py`), where it is known what was synced: a loss of power keeps that,
and any part of the rest. `state.db` is kept as it is: each of its transactions is synced.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from tidemark.partitions.storage.files import File, Space
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.protocol.types import BytesLike
from tidemark.testing.memory_files import MemoryFiles
from tidemark.testing.wrapped_file import WrappedFile

_STATE: Final = ("state.db", "state.db-wal")
_STATE_INDEX: Final = "state.db-shm"
_ROOM: Final = Space(1 << 40, 1 << 39)


class Disk(OsFiles):
    """Below `path`, which is there. What the broker has is below `data`."""

    def __init__(self, path: Path, rng: Random) -> None:
        self.data = path / "data"
        self._path = str(path)
        self._rng = rng
        self._memory = MemoryFiles()
        self._left: MemoryFiles | None = None
        self._state: dict[str, bytes] = {}

    def lose_power(self) -> None:
        """What is done to it from now on is in vain: `restore` brings back what is left now."""
        self._left = self._memory.after_crash(self._rng)
        paths = (self.data / name for name in _STATE)
        self._state = {str(path): path.read_bytes() for path in paths if path.exists()}

    def restore(self) -> None:
        """As the next process finds it. Nobody may have a file of it open."""
        assert self._left is not None
        for name in (*_STATE, _STATE_INDEX):
            (self.data / name).unlink(missing_ok=True)
        self._remove("")
        self._memory, self._left = self._left, None
        self._write("")
        for path, content in self._state.items():
            Path(path).write_bytes(content)

    def _remove(self, directory: str) -> None:
        """All that was made in this way; what else is there stays."""
        for name in self._memory.sizes(directory):
            os.unlink(f"{self._path}{directory}/{name}")
        for name in self._memory.subdirectories(directory):
            self._remove(f"{directory}/{name}")
            with suppress(OSError):
                os.rmdir(f"{self._path}{directory}/{name}")

    def _write(self, directory: str) -> None:
        for name, size in self._memory.sizes(directory).items():
            path = f"{directory}/{name}"
            Path(self._path + path).write_bytes(self._memory.open(path).pread(size, 0))
        for name in self._memory.subdirectories(directory):
            os.makedirs(f"{self._path}{directory}/{name}", exist_ok=True)
            self._write(f"{directory}/{name}")

    def _changing(self, path: str) -> tuple[MemoryFiles, str]:
        """Where a change is made once more, and under which path."""
        assert path.startswith(self._path), path
        self.note_time()
        return self._memory, path.removeprefix(self._path)

    def note_time(self) -> None:
        """For what is changed now."""
        self._memory.now_ms = time.time_ns() // 1_000_000

    # The interface `Files`

    def create(self, path: str) -> File:
        file = super().create(path)
        memory, own = self._changing(path)
        return _DiskFile(file, memory.create(own), self)

    def open(self, path: str) -> File:
        file = super().open(path)
        memory, own = self._changing(path)
        return _DiskFile(file, memory.open(own), self)

    def modified_ms(self, path: str) -> int:
        memory, own = self._changing(path)
        return memory.modified_ms(own)

    def rename(self, old: str, new: str) -> None:
        super().rename(old, new)
        memory, own = self._changing(old)
        memory.rename(own, new.removeprefix(self._path))

    def remove(self, path: str) -> None:
        super().remove(path)
        memory, own = self._changing(path)
        memory.remove(own)

    def make_directory(self, path: str) -> None:
        super().make_directory(path)
        memory, own = self._changing(path)
        memory.make_directory(own)

    def remove_directory(self, path: str) -> None:
        super().remove_directory(path)
        memory, own = self._changing(path)
        memory.remove_directory(own)

    def sync_directory(self, path: str) -> None:
        memory, own = self._changing(path)
        memory.sync_directory(own)

    def sync_directories(self, paths: Sequence[str]) -> None:
        """One after the other: there are no threads here."""
        for path in paths:
            self.sync_directory(path)

    def space(self, directory: str) -> Space:
        """Always the same: what else is on the machine is not the seed's."""
        return _ROOM


class _DiskFile(WrappedFile):
    """A file, and the same in memory."""

    __slots__ = ("_disk", "_memory")

    def __init__(self, file: File, memory: File, disk: Disk) -> None:
        super().__init__(file)
        self._memory = memory
        self._disk = disk

    def is_in_memory(self, position: int) -> bool:
        """What the kernel has there is not the seed's."""
        return self._memory.is_in_memory(position)

    def pwrite(self, data: BytesLike, position: int) -> None:
        super().pwrite(data, position)
        self._disk.note_time()
        self._memory.pwrite(data, position)

    def pwritev(self, parts: Sequence[BytesLike], position: int) -> None:
        super().pwritev(parts, position)
        self._disk.note_time()
        self._memory.pwritev(parts, position)

    def pwritev_synced(self, parts: Sequence[BytesLike], position: int) -> None:
        super().pwritev(parts, position)
        self._disk.note_time()
        self._memory.pwritev_synced(parts, position)

    def truncate(self, size_bytes: int) -> None:
        super().truncate(size_bytes)
        self._memory.truncate(size_bytes)

    def allocate(self, size_bytes: int) -> None:
        super().allocate(size_bytes)
        self._memory.allocate(size_bytes)

    def write_back(self, end: int) -> None:
        self._memory.write_back(end)

    def begin_writing(self) -> None:
        self._memory.begin_writing()

    def sync(self) -> None:
        self._memory.sync()
