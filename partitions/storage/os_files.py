"""The operating system's files: what storage asks of them is said in `files`."""

import errno
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final

from tidemark.partitions.storage.files import File, Lock, Space
from tidemark.partitions.storage.refusals import NO_ROOM, NOT_ASKED, SyncFailed
from tidemark.partitions.storage.writing_back import begin_writing, write_back
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.types import BytesLike

try:
    import fcntl
except ImportError as error:  # Windows
    raise ConfigError(
        "brokers run on Linux only, and what is in their files is looked at there, or on macOS: "
        "run this where they are, perhaps in a container or a virtual machine"
    ) from error

_PARTS_MAX: Final = 1024
"""As many as one call takes (`IOV_MAX`)."""
_SYNCED: Final[int | None] = getattr(os, "RWF_DSYNC", None)
_AT_ONCE: Final[int | None] = getattr(os, "RWF_NOWAIT", None)
"""Linux has both."""
_WRITTEN_BACK_RATE_MAX: Final = 400 * 1024 * 1024
"""A second, of one file. What comes faster is left to its sync, which would have to write all that
came meanwhile, too: who writes as fast as a disk can waits for it anyway."""
_IN_TWO_CALLS: Final = NO_ROOM | NOT_ASKED | {errno.EOPNOTSUPP, errno.ENOSYS}
_TOGETHER_MIN: Final = 4
_TOGETHER_MAX: Final = 16


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

    def is_in_memory(self, position: int) -> bool:
        if _AT_ONCE is None:
            return False
        try:
            return os.preadv(self._descriptor, (bytearray(1),), position, _AT_ONCE) == 1
        except OSError:
            return False  # EAGAIN, or the file system does not tell.

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
        try:
            os.mkdir(path)
        except FileExistsError as error:
            if os.path.exists(path) or not os.path.islink(path):
                raise
            # To whoever follows it nothing exists there: so they came to make it.
            said = f"it is a symbolic link to {os.readlink(path)}, which is not there"
            raise FileExistsError(errno.EEXIST, said, path) from error

    def remove_directory(self, path: str) -> None:
        if os.path.islink(path):
            # Who has made the link has the directory that it leads to, now empty.
            os.unlink(path)
        else:
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
        left, failures = deque(paths), list[BaseException]()

        def work() -> None:
            try:
                while left and not failures:
                    self.sync_directory(left.popleft())
            except IndexError:
                pass  # another thread has taken the last one
            except BaseException as error:  # raised below, where somebody waits for it
                failures.append(error)

        # The first one commits them all; what the others wait for, the disk's cache, it flushes
        # once for as many as wait. With 1,000 directories that takes a tenth of the time.
        threads = [threading.Thread(target=work, name="directories") for _ in range(_TOGETHER_MAX)]
        started = list[threading.Thread]()
        for thread in threads:
            try:
                thread.start()
            except RuntimeError:
                break  # there are no more now, and this one is enough
            started.append(thread)
        work()
        for thread in started:
            thread.join()
        if failures:
            raise failures[0]

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
