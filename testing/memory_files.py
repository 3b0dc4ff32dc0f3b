"""A disk in memory that does what POSIX allows: for tests of storage, and for the simulator.

Writes and names are seen at once by everyone. What a crash leaves of them is decided by
`after_crash`: all that was synced, and of the rest anything (`memory_nodes.py`).
"""

import errno
import io
import os
from collections.abc import Sequence
from random import Random
from typing import Final

from tidemark.partitions.storage.files import File, Lock, Space
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.protocol.types import BytesLike
from tidemark.testing.memory_nodes import (
    Directory,
    Inode,
    NameChange,
    Node,
    Truncate,
    Write,
    used_bytes,
)


class MemoryFile:
    """A file that is open. It stays readable when its name is gone, as on POSIX."""

    def __init__(self, files: "MemoryFiles", inode: Inode, path: str) -> None:
        self._files = files
        self._inode = inode
        self._path = path
        inode.opened += 1

    def __del__(self) -> None:
        self._inode.opened -= 1

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a file in memory has no descriptor")

    def pread(self, length: int, position: int) -> bytes:
        return bytes(self._inode.content[position : position + length])

    def is_in_memory(self, position: int) -> bool:
        return position < self.size()

    def pwrite(self, data: BytesLike, position: int) -> None:
        end = position + len(data)
        missing = end - len(self._inode.content) - self._files.free_bytes()
        fitting = len(data) - max(0, missing)
        if fitting > 0:
            self._inode.change(Write(position, bytes(data[:fitting])))
            self._inode.modified_ms = self._files.now_ms
        if fitting < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)

    def pwritev(self, parts: Sequence[BytesLike], position: int) -> None:
        self.pwrite(b"".join(parts), position)

    def pwritev_synced(self, parts: Sequence[BytesLike], position: int) -> None:
        self.pwritev(parts, position)
        self._files.before_sync(self._path, self._inode)
        self._inode.sync_written()

    def truncate(self, size_bytes: int) -> None:
        self._inode.change(Truncate(size_bytes))
        self._inode.modified_ms = self._files.now_ms

    def allocate(self, size_bytes: int) -> None:
        self.pwrite(bytes(max(0, size_bytes - self.size())), self.size())

    def size(self) -> int:
        return len(self._inode.content)

    def write_back(self, end: int) -> None:
        """It may have been, after a crash, and that is all."""

    def begin_writing(self) -> None:
        """Nor is that more."""

    def sync(self) -> None:
        self._files.before_sync(self._path, self._inode)
        self._inode.sync()


class _MemoryLock:
    holder: Final = "1"

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class MemoryFiles:
    """A file system. Paths are absolute; `/` is there and durable."""

    sector_bytes: Final = 1
    """Writes are torn anywhere."""
    sends_pages: Final = False
    """Nothing is sent from it."""

    def __init__(self) -> None:
        self.capacity_bytes: int | None = None
        """How much content fits; a write beyond it writes what fits and fails with ENOSPC."""
        self.failing_syncs = 0
        """So many syncs from now on fail. What they were to sync of a file is then never
        written, but later syncs succeed, as on Linux."""
        self.sync_error = errno.EIO
        """What they fail with."""
        self.failed_syncs = 0
        """How many have failed so."""
        self.spared_syncs = 0
        """So many syncs before these still succeed."""
        self.strikes_in: int | None = None
        """After so many syncs the power fails, which whoever writes here finds out later."""
        self.struck: MemoryFiles | None = None
        """The disk as it was when that happened, with all that was not synced."""
        self.now_ms = 0
        """The time that changes to files get."""
        self.synced_paths: list[str] = []
        """Each sync that succeeded, of files and directories, in order."""
        self._root = Directory()
        self._locks: set[str] = set()

    def after_crash(self, rng: Random) -> "MemoryFiles":
        """The disk as the next process finds it. This one stays as it is."""
        crashed = MemoryFiles()
        crashed._root = self._root.copy({})
        crashed._root.crash(rng)
        crashed.capacity_bytes, crashed.now_ms = self.capacity_bytes, self.now_ms
        return crashed

    def after_kill(self) -> "MemoryFiles":
        """The disk when only the process has died: the page cache is the kernel's."""
        killed = MemoryFiles()
        killed._root = self._root.copy({})
        killed.capacity_bytes, killed.now_ms = self.capacity_bytes, self.now_ms
        return killed

    def free_bytes(self) -> int:
        if self.capacity_bytes is None:
            return 1 << 62
        return self.capacity_bytes - used_bytes(self._root)

    def space(self, directory: str) -> Space:
        return Space(self.capacity_bytes or self.free_bytes(), max(0, self.free_bytes()))

    def before_sync(self, path: str, node: Node) -> None:
        """Fail if failures are due: the changes count as written from then on, and are lost."""
        if self.strikes_in is not None:
            if not self.strikes_in:
                self.struck = self.after_kill()
            self.strikes_in = self.strikes_in - 1 if self.strikes_in else None
        if self.failing_syncs and self.spared_syncs:
            self.spared_syncs -= 1
        elif self.failing_syncs:
            self.failing_syncs -= 1
            self.failed_syncs += 1
            if isinstance(node, Inode):  # names are in a journal, which is not dropped in parts
                node.unsynced.clear()
            raise SyncFailed(self.sync_error, os.strerror(self.sync_error), path)
        self.synced_paths.append(path)

    def flip_bit(self, path: str, position: int, bit: int) -> None:
        """What is there, and was synced, is another from now on, and nobody has written it."""
        inode = self._inode(path)
        for content in (inode.content, inode.synced):
            if position < len(content):
                content[position] ^= 1 << bit

    # The interface `Files`

    def create(self, path: str) -> File:
        directory, name = self._parent(path)
        node = directory.names.get(name)
        if isinstance(node, Inode):
            node.change(Truncate(0))
        else:
            node = Inode()
            directory.change(NameChange(None, name, node))
        node.modified_ms = self.now_ms
        return MemoryFile(self, node, path)

    def open(self, path: str) -> File:
        return MemoryFile(self, self._inode(path), path)

    def open_alone(self, path: str) -> File | None:
        inode = self._inode(path)
        return None if inode.opened else MemoryFile(self, inode, path)

    def open_reader(self, path: str) -> File:
        return MemoryFile(self, self._inode(path), path)

    def sizes(self, directory: str) -> dict[str, int]:
        names = self._directory(directory).names
        return {name: len(n.content) for name, n in names.items() if isinstance(n, Inode)}

    def subdirectories(self, directory: str) -> list[str]:
        names = self._directory(directory).names
        return [name for name, node in names.items() if isinstance(node, Directory)]

    def exists(self, path: str) -> bool:
        try:
            self._node(path)
        except OSError:
            return False
        return True

    def modified_ms(self, path: str) -> int:
        return self._inode(path).modified_ms

    def rename(self, old: str, new: str) -> None:
        directory, old_name = self._parent(old)
        same, new_name = self._parent(new)
        assert directory is same, "only renames within a directory are modelled"
        directory.change(NameChange(old_name, new_name, self._node(old)))

    def remove(self, path: str) -> None:
        directory, name = self._parent(path)
        directory.change(NameChange(name, None, self._inode(path)))

    def make_directory(self, path: str) -> None:
        directory, name = self._parent(path)
        if name in directory.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        directory.change(NameChange(None, name, Directory()))

    def remove_directory(self, path: str) -> None:
        directory, name = self._parent(path)
        if self._directory(path).names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        directory.change(NameChange(name, None, self._directory(path)))

    def sync_directory(self, path: str) -> None:
        directory = self._directory(path)
        self.before_sync(path, directory)
        directory.sync()

    def sync_directories(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.sync_directory(path)

    def lock(self, path: str) -> Lock | None:
        if path in self._locks:
            return None
        if not self.exists(path):
            self.create(path)
        self._locks.add(path)
        return _MemoryLock(self._locks, path)

    def _node(self, path: str) -> Node:
        node: Node = self._root
        for name in filter(None, path.split("/")):
            if not isinstance(node, Directory):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            found = node.names.get(name)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            node = found
        return node

    def _inode(self, path: str) -> Inode:
        node = self._node(path)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def _directory(self, path: str) -> Directory:
        node = self._node(path)
        if isinstance(node, Inode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name
