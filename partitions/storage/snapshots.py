"""Snapshots of state that follows from a log's batches (who produced what), beside its segments.

What is in them is the caller's. They are written when a segment is rolled and when the log is
closed, so that after a crash only the headers behind the last one have to be read again; and when
the log's start moves, for what follows from the batches that go is nowhere else then.

`<offset>.snapshot`: state after all batches below that offset:

| at | field   | type   | |
|---:|---------|--------|-|
|  0 | crc     | uint32 | CRC32C of what follows |
|  4 | payload | bytes  | the caller's |
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from tidemark.partitions.storage.files import Files, read_file, remove_if_there, replace_file
from tidemark.partitions.storage.names import SNAPSHOT_SUFFIX, file_name, offset_in
from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.types import Offset

KEPT: Final = 2
"""The newest ones; an older one is of use only when these are damaged, or speak of what is cut."""
_CRC: Final = Struct(">I")


def offsets_in(names: Iterable[str]) -> list[Offset]:
    """Where there are snapshots, ascending, by the names of a log's files."""
    found = (offset_in(name, SNAPSHOT_SUFFIX) for name in names)
    return sorted(offset for offset in found if offset is not None)


class Snapshots:
    """The snapshot files of one log."""

    __slots__ = ("_directory", "_files")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory

    def save(self, offset: Offset, payload: bytes, *, log_start: Offset) -> None:
        """Blocking. The name is durable once the directory is synced.

        Older ones go, but for the one at the log's start: a truncation may take all the others
        with it, and what that one holds is nowhere else.
        """
        replace_file(self._files, self._path(offset), _CRC.pack(crc32c(payload)) + payload)
        for old in self.offsets()[:-KEPT]:
            if old != log_start:
                remove_if_there(self._files, self._path(old))

    def load(self, offset: Offset) -> bytes | None:
        """The payload; `None` if the file is gone or damaged, which costs time and no data."""
        try:
            data = read_file(self._files, self._path(offset))
        except FileNotFoundError:
            return None
        payload = data[_CRC.size :]
        if len(data) < _CRC.size or _CRC.unpack_from(data)[0] != crc32c(payload):
            return None
        return payload

    def offsets(self) -> list[Offset]:
        """Where there are snapshots, ascending."""
        return offsets_in(self._files.sizes(self._directory))

    def remove_above(self, end_offset: Offset) -> None:
        """Remove those of a future that did not come; durable once the directory is synced.

        One that stayed would be believed when the log has grown past its offset again, with other
        batches.
        """
        for offset in self.offsets():
            if offset > end_offset:
                remove_if_there(self._files, self._path(offset))

    def _path(self, offset: Offset) -> str:
        return f"{self._directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"
