"""The operating system's files, with a disk that can be made slow."""

from __future__ import annotations

import time
from threading import Condition

from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.testing.wrapped_file import WrappedFile


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


class _SlowFile(WrappedFile):
    __slots__ = ("_files",)

    def __init__(self, file: File, files: SlowFiles) -> None:
        super().__init__(file)
        self._files = files

    def sync(self) -> None:
        self._files.wait_delay()
        super().sync()
