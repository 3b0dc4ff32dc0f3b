"""Bytes of the disk that are taken beforehand, to be given up when it is full.

A broker that cannot write its metadata cannot delete a topic either, and so cannot free itself. The
file `reserve` is allocated, and nothing is ever written to it.
"""

from threading import Lock
from typing import Final

from tidemark.partitions.storage.files import File, Files

RESERVE_NAME: Final = "reserve"


class Reserve:
    """The file. Any thread may use it."""

    def __init__(self, files: Files, directory: str) -> None:
        """As the last run has left it. Raises `OSError` if it cannot be looked at."""
        self._files = files
        self._path = f"{directory}/{RESERVE_NAME}"
        self._lock = Lock()
        self._file: File | None = files.open(self._path) if files.exists(self._path) else None
        self.held_bytes = 0 if self._file is None else self._file.size()

    def take(self, size_bytes: int) -> None:
        """Hold so much. Blocking. Raises `OSError` if there is no room for it; nothing is held
        then."""
        with self._lock:
            if self._file is None:
                self._file = self._files.create(self._path)
            try:
                self._file.truncate(min(self._file.size(), size_bytes))
                # Also what seems to be there: a copy of the directory may have holes.
                self._file.allocate(size_bytes)
            except OSError:
                self._file.truncate(0)
                self.held_bytes = 0
                raise
            self.held_bytes = size_bytes

    def give_up(self, size_bytes: int) -> bool:
        """Give so much of it back to the disk; whether any was left. Blocking. Raises `OSError`."""
        with self._lock:
            if self._file is None or not self.held_bytes:
                return False
            left_bytes = max(0, self.held_bytes - size_bytes)
            self._file.truncate(left_bytes)
            self.held_bytes = left_bytes
            return True
