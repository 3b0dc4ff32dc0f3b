"""The one seam between storage and the operating system.

Everything that storage does to a disk goes through `Files` and `File`. The operating system's are
in `os_files`; a test can put a disk there that tears, loses and reorders what was not synced
(`tidemark.testing.memory_files`).

Two promises of POSIX shape the interface, and every caller has to argue with them:

* bytes written are there for every reader at once, and are on the disk only after `File.sync`;
* a name created, renamed or removed is on the disk only after `Files.sync_directory`.

A `File` has no `close`: it is closed when the last one who holds it lets go. A reader may thus
hold on to a file that has meanwhile been evicted from a cache, or removed.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import BytesLike

TEMPORARY_SUFFIX: Final = ".tmp"
"""Ends the name of a file that is being written and will be renamed; a leftover is removed."""
_PIECE_BYTES: Final = 1 << 20


class File(Protocol):
    """One open file. Safe to use from several threads."""

    def fileno(self) -> int:
        """For `sendfile`. Valid as long as this object is held."""
        ...

    def pread(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
        ...

    def is_in_memory(self, position: int) -> bool:
        """Whether the byte there can be read without the disk. `False` where nobody can tell."""
        ...

    def pwrite(self, data: BytesLike, position: int) -> None:
        """Write all of `data`. When it raises `OSError`, any part of it may have been written."""
        ...

    def pwritev(self, parts: Sequence[BytesLike], position: int) -> None:
        """Write all of `parts`, one behind the other, without joining them; else like `pwrite`."""
        ...

    def pwritev_synced(self, parts: Sequence[BytesLike], position: int) -> None:
        """Like `pwritev`, and then like `sync`, as far as these bytes are concerned. In one call,
        where there is one: a thread that makes two has to come by the interpreter between them."""
        ...

    def truncate(self, size_bytes: int) -> None: ...

    def allocate(self, size_bytes: int) -> None:
        """Take so much of the disk for it, whatever it holds: a write there finds room. Raises
        `OSError` if there is none."""
        ...

    def size(self) -> int: ...

    def write_back(self, end: int) -> None:
        """Have most of what a `sync` would have to write before this position written, a little at
        a time, so that who appends meanwhile is not held up. Blocks, and promises nothing. Raises
        `SyncFailed`."""
        ...

    def begin_writing(self) -> None:
        """Have what a `sync` would have to write begin to be written. Does not wait for it, and
        promises nothing. Raises `SyncFailed`."""
        ...

    def sync(self) -> None:
        """Block until all that was written is on the disk (`fdatasync`: the size too). Raises
        `SyncFailed`."""
        ...


class Space(NamedTuple):
    """Of a disk."""

    total_bytes: int
    free_bytes: int
    """For who is not root."""


class Lock(Protocol):
    """A lock on a file that this process holds until it lets go of it."""

    @property
    def holder(self) -> str:
        """The number of the process, for people to read. Where nothing but a seed may decide what
        is written, it is the same for all: as many digits, as many bytes."""
        ...

    def release(self) -> None: ...


class Files(Protocol):
    """A file system, as far as storage needs one. Paths are absolute or relative to the process."""

    @property
    def sector_bytes(self) -> int:
        """So many bytes, from a multiple of that on, are written by a disk as a whole or not at
        all, whenever the power fails."""
        ...

    @property
    def sends_pages(self) -> bool:
        """Whether what `sendfile` sends is no copy: until the other side has read it, it is what
        the file holds then, though the file be closed and the process gone."""
        ...

    def create(self, path: str) -> File:
        """A new, empty file for reading and writing, in place of any that is there."""
        ...

    def open(self, path: str) -> File:
        """A file that exists, for reading and writing."""
        ...

    def open_alone(self, path: str) -> File | None:
        """As `open`, if nobody else has the file open, by whatever name; `None` if somebody has,
        or nobody can tell."""
        ...

    def open_reader(self, path: str) -> File: ...

    def sizes(self, directory: str) -> dict[str, int]:
        """The plain files of a directory by name, with their sizes in bytes."""
        ...

    def subdirectories(self, directory: str) -> list[str]: ...

    def exists(self, path: str) -> bool: ...

    def modified_ms(self, path: str) -> int:
        """When the file's content last changed, in ms since 1970 by the clock of this machine."""
        ...

    def rename(self, old: str, new: str) -> None:
        """Give a file or directory another name, in place of any file that has it. Atomic."""
        ...

    def remove(self, path: str) -> None: ...

    def make_directory(self, path: str) -> None:
        """Raises `FileExistsError` where `exists` says no, if a link leads to what is not there."""
        ...

    def remove_directory(self, path: str) -> None:
        """Remove a directory that is empty; of a link to one, the link."""
        ...

    def sync_directory(self, path: str) -> None:
        """Block until the names in this directory are on the disk as they are now. Raises
        `SyncFailed`; any other `OSError` before it has begun."""
        ...

    def sync_directories(self, paths: Sequence[str]) -> None:
        """The same for many, in less time than one after the other."""
        ...

    def space(self, directory: str) -> Space:
        """How much room there is on the disk of a directory."""
        ...

    def lock(self, path: str) -> Lock | None:
        """Lock a file, creating it; `None` if another process holds it."""
        ...


def read_file(files: Files, path: str) -> bytes:
    """All of a small file. Raises `FileNotFoundError`."""
    file = files.open_reader(path)
    return file.pread(file.size(), 0)


def pieces_of(file: File, size_bytes: int) -> Iterator[bytes]:
    """The first `size_bytes` of a file, a megabyte at a time."""
    for position in range(0, size_bytes, _PIECE_BYTES):
        yield file.pread(min(_PIECE_BYTES, size_bytes - position), position)


def replace_file(files: Files, path: str, data: BytesLike) -> None:
    """As `replace_file_by`, with what is in memory."""
    replace_file_by(files, path, (data,))


def replace_file_by(files: Files, path: str, content: Iterable[BytesLike]) -> None:
    """Put `content`, piece behind piece, at `path`: after a crash the old is there, or the new, or
    none.

    The name is durable once the caller has synced the directory. The content is synced before
    the rename: else a crash could leave the new name with an empty file.
    """
    temporary = path + TEMPORARY_SUFFIX
    file, position = files.create(temporary), 0
    for piece in content:
        file.pwrite(piece, position)
        position += len(piece)
    file.sync()
    files.rename(temporary, path)


def remove_if_there(files: Files, path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        files.remove(path)


def corrupt(path: str, position: int, what: str) -> StorageError:
    """The refusal to serve a file whose durable part is broken."""
    return StorageError(
        f"{path} is corrupt at byte {position}: {what}. Nothing was changed. "
        "Restore the file from a copy, or see what it holds with `tidemark log verify` "
        "and move it away to give its records up"
    )
