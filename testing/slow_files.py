"""The operating system's files, with a disk that can be made slow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Condition

from tidemark.partitions.storage.files import File, OsFiles
from tidemark.protocol.types import BytesLike


class SlowFiles(OsFiles):
    """As `OsFiles`, but a sync takes so much longer as `delay` says. Nothing else does: what is
    written goes to the page cache."""

    def __init__(self) -> None:
        self._delay_seconds = 0.0
        self._changed = Condition()

    def delay(self, seconds: float) -> None:
        """From now on, also for a sync that is under way."""
        with self._changed:
            self._delay_seconds = seconds
            self._changed.notify_all()

    def wait_delay(self) -> None:
        """Block for as long as the delay is by then. On any thread."""
        started = time.monotonic()
        with self._changed:
            while (left := started + self._delay_seconds - time.monotonic()) > 0:
                self._changed.wait(left)

    def create(self, path: str) -> File:
        return _SlowFile(super().create(path), self)

    def open(self, path: str) -> File:
        return _SlowFile(super().open(path), self)

    def sync_directory(self, path: str) -> None:
        self.wait_delay()
        super().sync_directory(path)


class _SlowFile:
    __slots__ = ("_file", "_files")

    def __init__(self, file: File, files: SlowFiles) -> None:
        self._file = file
        self._files = files

    def fileno(self) -> int:
        return self._file.fileno()

    def pread(self, length: int, position: int) -> bytes:
        return self._file.pread(length, position)

    def pwrite(self, data: BytesLike, position: int) -> None:
        self._file.pwrite(data, position)

    def pwritev(self, parts: Sequence[BytesLike], position: int) -> None:
        self._file.pwritev(parts, position)

    def truncate(self, size_bytes: int) -> None:
        self._file.truncate(size_bytes)

    def allocate(self, size_bytes: int) -> None:
        self._file.allocate(size_bytes)

    def size(self) -> int:
        return self._file.size()

    def sync(self) -> None:
        self._files.wait_delay()
        self._file.sync()
