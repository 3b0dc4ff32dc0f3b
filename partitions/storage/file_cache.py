"""A bounded number of files kept open for reading, so that a thousand partitions fit in a process.

Only files that nobody is writing belong here: a file with bytes that are not synced stays open
with its writer, because the kernel reports a failed write-back only to descriptors that were
open when it failed.
"""

from collections import OrderedDict
from threading import Lock
from typing import Final

from tidemark.partitions.storage.files import File, Files

OPEN_MAX: Final = 512


class FileCache:
    """The files read last. Any thread may use it, and what it hands out."""

    __slots__ = ("_files", "_lock", "_open", "_open_max")

    def __init__(self, files: Files, *, open_max: int = OPEN_MAX) -> None:
        assert open_max >= 1
        self._files = files
        self._open_max = open_max
        self._lock = Lock()
        self._open: OrderedDict[str, File] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, path: str) -> File:
        """The file at `path`. It stays usable for as long as the caller holds it."""
        with self._lock:
            file = self._open.get(path)
            if file is not None:
                self._open.move_to_end(path)
                return file
            file = self._open[path] = self._files.open_reader(path)
            if len(self._open) > self._open_max:
                self._open.popitem(last=False)
            return file

    def forget(self, path: str) -> None:
        """Another file may be at `path` from now on, or none."""
        with self._lock:
            self._open.pop(path, None)
