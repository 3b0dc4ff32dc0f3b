"""What a read gives back: not bytes but where they lie, for `sendfile` from the page cache."""

from typing import Protocol

from tidemark.partitions.storage.files import File
from tidemark.protocol.types import Offset


class Lender(Protocol):
    """Whose file it is, who remembers that it was lent to the kernel."""

    is_lent: bool


class LogSlice:
    """Whole batches, back to back, in one file. Holding it keeps the file open.

    The segment may be rolled, or removed by retention, while the slice is on its way to a
    socket: the bytes stay until the slice is released or dropped.
    """

    __slots__ = ("_file", "_lender", "_length", "end_offset", "position")

    def __init__(
        self,
        file: File | None,
        position: int,
        length: int,
        end_offset: Offset,
        lender: Lender | None = None,
    ) -> None:
        self._file = file
        self._lender = lender
        self.position = position
        self._length = length
        self.end_offset = end_offset
        """The offset after its last record."""

    def __len__(self) -> int:
        return self._length

    def fileno(self) -> int:
        """The descriptor, to read from. Not of an empty or a released slice."""
        assert self._file is not None
        return self._file.fileno()

    def lend(self) -> int:
        """The descriptor, for the kernel to send from. Not of an empty or a released slice.

        What is sent so is no copy: until the other side has read it, it is what the file holds by
        then. So the file counts as lent from now on.
        """
        assert self._file is not None
        if self._lender is not None:
            self._lender.is_lent = True
        return self._file.fileno()

    def read(self) -> bytes:
        """The bytes themselves."""
        if not self._length:
            return b""
        assert self._file is not None
        return self._file.pread(self._length, self.position)

    def peek(self, length: int) -> bytes:
        """What it begins with."""
        assert self._file is not None
        return self._file.pread(min(length, self._length), self.position)

    def share(self) -> "LogSlice":
        """The same bytes for somebody else, who releases them by himself."""
        return LogSlice(self._file, self.position, self._length, self.end_offset, self._lender)

    def release(self) -> None:
        """Let go of the file. Doing it twice is allowed."""
        self._file = None


EMPTY_SLICE = LogSlice(None, 0, 0, Offset(0))
"""Shared: there is nothing in it to release."""
