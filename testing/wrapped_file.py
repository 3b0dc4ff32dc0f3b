"""A file that does what another one does, for those that do some of it otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from tidemark.partitions.storage.files import File
from tidemark.protocol.types import BytesLike


class WrappedFile:
    """A `File`: all that is asked of it is asked of the one that it was given."""

    __slots__ = ("_file",)

    def __init__(self, file: File) -> None:
        self._file = file

    def fileno(self) -> int:
        return self._file.fileno()

    def pread(self, length: int, position: int) -> bytes:
        return self._file.pread(length, position)

    def is_in_memory(self, position: int) -> bool:
        return self._file.is_in_memory(position)

    def pwrite(self, data: BytesLike, position: int) -> None:
        self._file.pwrite(data, position)

    def pwritev(self, parts: Sequence[BytesLike], position: int) -> None:
        self._file.pwritev(parts, position)

    def pwritev_synced(self, parts: Sequence[BytesLike], position: int) -> None:
        self.pwritev(parts, position)
        self.sync()

    def truncate(self, size_bytes: int) -> None:
        self._file.truncate(size_bytes)

    def allocate(self, size_bytes: int) -> None:
        self._file.allocate(size_bytes)

    def size(self) -> int:
        return self._file.size()

    def write_back(self, end: int) -> None:
        self._file.write_back(end)

    def begin_writing(self) -> None:
        self._file.begin_writing()

    def sync(self) -> None:
        self._file.sync()
