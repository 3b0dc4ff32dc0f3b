"""The one seam between storage and the operating system.

Everything that storage does to a disk goes through `Files` and `File`, so that a test can put
a disk there that tears, loses and reorders what was not synced (`tidemark.testing.memory_files`).

Two promises of POSIX shape the interface, and every caller has to argue with them:

* bytes written are there for every reader at once, and are on the disk only after `File.sync`;
* a name created, renamed or removed is on the disk only after `Files.sync_directory`.

A `File` has no `close`: it is closed when the last one who holds it lets go. A reader may thus
hold on to a file that has meanwhile been evicted from a cache, or removed.
"""

import contextlib
import errno
import fcntl
import os
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from tidemark.partitions.storage.refusals import NO_ROOM, NOT_ASKED, SyncFailed
from tidemark.partitions.storage.writing_back import begin_writing, write_back
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import BytesLike

TEMPORARY_SUFFIX: Final = ".tmp"
"""Ends the name of a file that is being written and will be renamed; a leftover is removed."""
_PARTS_MAX: Final = 1024
"""As many as one call takes (`IOV_MAX`)."""
_SYNCED: Final[int | None] = getattr(os, "RWF_DSYNC", None)
"""Linux has it."""
_WRITTEN_BACK_RATE_MAX: Final = 400 * 1024 * 1024
"""A second, of one file. What comes faster is left to its sync, which would have to write all that
came meanwhile, too: who writes as fast as a disk can waits for it anyway."""
_IN_TWO_CALLS: Final = NO_ROOM | NOT_ASKED | {errno.EOPNOTSUPP, errno.ENOSYS}
_PIECE_BYTES: Final = 1 << 20
_TOGETHER_MIN: Final = 4
_TOGETHER_MAX: Final = 16


class File(Protocol):
    """One open file. Safe to use from several threads."""

    def fileno(self) -> int:
        """For `sendfile`. Valid as long as this object is held."""
        ...

    def pread(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""
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

    def make_directory(self, path: str) -> None: ...

    def remove_directory(self, path: str) -> None:
        """Remove a directory that is empty."""
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


class OsFile:
    """A file descriptor that closes itself."""

    __slots__ = ("_descriptor", "_written_back", "_written_back_at")

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._written_back = 0
        """So far the file was, when it was last written back."""
        self._written_back_at = time.monotonic()

    def __del__(self) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def pread(self, length: int, position: int) -> bytes:
        data = os.pread(self._descriptor, length, position)
        if len(data) == length or not data:
            return data
        # Short: the end of the file, or more than one call can carry (2 GiB on Linux).
        return b"".join([data, *self._rest(length - len(data), position + len(data))])

    def _rest(self, length: int, position: int) -> Iterator[bytes]:
        while length and (data := os.pread(self._descriptor, length, position)):
            yield data
            length -= len(data)
            position += len(data)

    def pwrite(self, data: BytesLike, position: int) -> None:
        written = os.pwrite(self._descriptor, data, position)
        while written != len(data):
            # Short: the disk is about to be full, and the next call says so.
            rest = memoryview(data)[written:]
            written += os.pwrite(self._descriptor, rest, position + written)

    def pwritev(self, parts: Sequence[BytesLike], position: int) -> None:
        for first in range(0, len(parts), _PARTS_MAX):
            some = parts[first : first + _PARTS_MAX]
            length = sum(map(len, some))
            written = os.pwritev(self._descriptor, some, position)
            if written != length:
                self.pwrite(memoryview(b"".join(some))[written:], position + written)
            position += length

    def pwritev_synced(self, parts: Sequence[BytesLike], position: int) -> None:
        if _SYNCED is not None and len(parts) <= _PARTS_MAX:
            try:
                if os.pwritev(self._descriptor, parts, position, _SYNCED) == sum(map(len, parts)):
                    return
            except OSError as error:
                if error.errno not in _IN_TWO_CALLS:
                    raise SyncFailed(*error.args) from error
        # Which half of it was refused, nobody can tell. Written once more, and synced, it can.
        self.pwritev(parts, position)
        self.sync()

    def truncate(self, size_bytes: int) -> None:
        os.ftruncate(self._descriptor, size_bytes)

    def allocate(self, size_bytes: int) -> None:
        os.posix_fallocate(self._descriptor, 0, size_bytes)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def write_back(self, end: int) -> None:
        now = time.monotonic()
        start = min(self._written_back, end)
        fastest_bytes = (now - self._written_back_at) * _WRITTEN_BACK_RATE_MAX
        self._written_back, self._written_back_at = end, now
        if end - start > fastest_bytes:
            return
        try:
            write_back(self._descriptor, start, end)
        except OSError as error:
            # What has failed is not said again to who syncs.
            raise SyncFailed(*error.args) from error

    def begin_writing(self) -> None:
        try:
            begin_writing(self._descriptor)
        except OSError as error:
            raise SyncFailed(*error.args) from error

    def sync(self) -> None:
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise SyncFailed(*error.args) from error


class OsLock:
    """An advisory lock (`flock`), which the kernel drops with the process."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def holder(self) -> str:
        return str(os.getpid())

    def release(self) -> None:
        os.close(self._descriptor)


class OsFiles:
    """The operating system's files."""

    sector_bytes: Final = 512
    """Of all disks that are made; many have more."""
    sends_pages: Final = True

    def create(self, path: str) -> File:
        return OsFile(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644))

    def open(self, path: str) -> File:
        return OsFile(os.open(path, os.O_RDWR | os.O_CLOEXEC))

    def open_alone(self, path: str) -> File | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        file = OsFile(descriptor)
        try:
            # The kernel tells who has a lease of others that come, with SIGIO, which would end the
            # process; this one does nothing.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            # It lets nobody else in while the lease lasts, and so does not give it where somebody
            # is in.
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except (OSError, AttributeError):
            return None
        return file

    def open_reader(self, path: str) -> File:
        return OsFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def sizes(self, directory: str) -> dict[str, int]:
        found = {}
        with os.scandir(directory) as entries:
            for entry in entries:
                try:
                    if entry.is_file():
                        found[entry.name] = entry.stat().st_size
                except FileNotFoundError:
                    # Gone between the two looks: another process removes or renames files here.
                    continue
        return found

    def subdirectories(self, directory: str) -> list[str]:
        with os.scandir(directory) as entries:
            return [entry.name for entry in entries if entry.is_dir()]

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def make_directory(self, path: str) -> None:
        os.mkdir(path)

    def remove_directory(self, path: str) -> None:
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise SyncFailed(*error.args) from error
        finally:
            os.close(descriptor)

    def sync_directories(self, paths: Sequence[str]) -> None:
        if len(paths) < _TOGETHER_MIN:
            for path in paths:
                self.sync_directory(path)
            return
        # Here, for its import takes as long as a small broker takes to open its partitions.
        from concurrent.futures import ThreadPoolExecutor

        # The first one commits them all; what the others wait for, the disk's cache, it flushes
        # once for as many as wait. With 1,000 directories that takes a tenth of the time.
        with ThreadPoolExecutor(_TOGETHER_MAX, thread_name_prefix="directories") as threads:
            for _ in threads.map(self.sync_directory, paths):
                pass

    def space(self, directory: str) -> Space:
        found = os.statvfs(directory)
        return Space(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)

    def lock(self, path: str) -> Lock | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return OsLock(descriptor)


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
