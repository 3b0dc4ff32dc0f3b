"""A disk in memory that does what POSIX allows: for tests of storage, and for the simulator.

Writes and names are seen at once by everyone. What a crash leaves of them is decided by
`after_crash`: all that was synced, and of the rest anything: nothing, all, the first few, some out
of order, torn anywhere. Where a write was lost, there is what was there before, or zeros where the
file has grown.
"""

import errno
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Final, TypeVar

from tidemark.partitions.storage.files import File, Lock, Space
from tidemark.protocol.types import BytesLike

_SECTOR_BYTES: Final = 512
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Write:
    position: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        if len(content) < self.position:
            content.extend(bytes(self.position - len(content)))
        content[self.position : self.position + len(self.data)] = self.data


@dataclass(frozen=True, slots=True)
class _Truncate:
    size_bytes: int

    def apply(self, content: bytearray) -> None:
        del content[self.size_bytes :]
        content.extend(bytes(self.size_bytes - len(content)))


_Change = _Write | _Truncate


@dataclass(slots=True, eq=False)
class _Inode:
    """A file's content: as it is seen, as it was synced, and the changes in between."""

    content: bytearray = field(default_factory=bytearray)
    synced: bytearray = field(default_factory=bytearray)
    unsynced: list[_Change] = field(default_factory=list)
    modified_ms: int = 0

    def change(self, change: _Change) -> None:
        change.apply(self.content)
        self.unsynced.append(change)

    def sync(self) -> None:
        # Not simply what is seen: changes that a failed sync dropped are not written by the next.
        for change in self.unsynced:
            change.apply(self.synced)
        self.unsynced.clear()

    def crash(self, rng: Random) -> None:
        for change in _survivors(rng, self.unsynced):
            for part in _torn(rng, change):
                part.apply(self.synced)
        self.unsynced.clear()
        self.content = bytearray(self.synced)

    def copy(self, known: "dict[_Node, _Node]") -> "_Inode":
        # By hand: `deepcopy` takes a hundred times as long, and a simulated broker dies often.
        copied = known.get(self)
        if copied is None:
            content, synced = bytearray(self.content), bytearray(self.synced)
            copied = known[self] = _Inode(content, synced, list(self.unsynced), self.modified_ms)
        assert isinstance(copied, _Inode)
        return copied


@dataclass(frozen=True, slots=True)
class _NameChange:
    """`new` is given to a node, or `old` taken from one; a rename is both, and atomic."""

    old: str | None
    new: str | None
    node: "_Node"

    def apply(self, names: "dict[str, _Node]") -> None:
        if self.old is not None:
            names.pop(self.old, None)
        if self.new is not None:
            names[self.new] = self.node


@dataclass(slots=True, eq=False)
class _Directory:
    names: "dict[str, _Node]" = field(default_factory=dict)
    synced: "dict[str, _Node]" = field(default_factory=dict)
    unsynced: list[_NameChange] = field(default_factory=list)

    def change(self, change: _NameChange) -> None:
        change.apply(self.names)
        self.unsynced.append(change)

    def sync(self) -> None:
        for change in self.unsynced:
            change.apply(self.synced)
        self.unsynced.clear()

    def crash(self, rng: Random) -> None:
        for change in _survivors(rng, self.unsynced):
            change.apply(self.synced)
        self.unsynced.clear()
        self.names = dict(self.synced)
        for name in sorted(self.names):
            self.names[name].crash(rng)

    def copy(self, known: "dict[_Node, _Node]") -> "_Directory":
        """`known`: what of the same tree was copied already, by what it is a copy of."""
        copied = known.get(self)
        if copied is None:
            copied = known[self] = _Directory()
            copied.names = {name: node.copy(known) for name, node in self.names.items()}
            copied.synced = {name: node.copy(known) for name, node in self.synced.items()}
            copied.unsynced = [
                _NameChange(change.old, change.new, change.node.copy(known))
                for change in self.unsynced
            ]
        assert isinstance(copied, _Directory)
        return copied


_Node = _Inode | _Directory


def _survivors(rng: Random, changes: Sequence[_T]) -> Sequence[_T]:
    """What of a number of unsynced changes has reached the disk."""
    match rng.randrange(4):
        case 0:
            return ()
        case 1:
            return changes
        case 2:
            return changes[: rng.randint(0, len(changes))]
        case _:
            return [change for change in changes if rng.random() < 0.5]


def _torn(rng: Random, change: _Change) -> Sequence[_Change]:
    """The change, or what became of it: half of a write, some sectors, or its length alone."""
    if isinstance(change, _Truncate) or rng.random() < 0.5:
        return [change]
    position, data = change.position, change.data
    grown = _Write(position + len(data), b"")
    match rng.randrange(3):
        case 0:
            return [_Write(position, data[: rng.randint(0, len(data))])]
        case 1:
            return [grown]
        case _:
            first = -position % _SECTOR_BYTES
            cuts = [0, *range(first or _SECTOR_BYTES, len(data), _SECTOR_BYTES), len(data)]
            sectors = [_Write(position + at, data[at:end]) for at, end in pairwise(cuts)]
            return [grown, *(sector for sector in sectors if rng.random() < 0.5)]


class MemoryFile:
    """A file that is open. It stays readable when its name is gone, as on POSIX."""

    def __init__(self, files: "MemoryFiles", inode: _Inode, path: str) -> None:
        self._files = files
        self._inode = inode
        self._path = path

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a file in memory has no descriptor")

    def pread(self, length: int, position: int) -> bytes:
        return bytes(self._inode.content[position : position + length])

    def pwrite(self, data: BytesLike, position: int) -> None:
        end = position + len(data)
        missing = end - len(self._inode.content) - self._files.free_bytes()
        fitting = len(data) - max(0, missing)
        if fitting > 0:
            self._inode.change(_Write(position, bytes(data[:fitting])))
            self._inode.modified_ms = self._files.now_ms
        if fitting < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)

    def pwritev(self, parts: Sequence[BytesLike], position: int) -> None:
        self.pwrite(b"".join(parts), position)

    def truncate(self, size_bytes: int) -> None:
        self._inode.change(_Truncate(size_bytes))
        self._inode.modified_ms = self._files.now_ms

    def allocate(self, size_bytes: int) -> None:
        self.pwrite(bytes(max(0, size_bytes - self.size())), self.size())

    def size(self) -> int:
        return len(self._inode.content)

    def sync(self) -> None:
        self._files.before_sync(self._path, self._inode)
        self._inode.sync()


class _MemoryLock:
    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        self._held.discard(self._path)


class MemoryFiles:
    """A file system. Paths are absolute; `/` is there and durable."""

    def __init__(self) -> None:
        self.capacity_bytes: int | None = None
        """How much content fits; a write beyond it writes what fits and fails with ENOSPC."""
        self.failing_syncs = 0
        """So many syncs from now on fail with EIO. What they were to sync of a file is then never
        written, but later syncs succeed, as on Linux."""
        self.failed_syncs = 0
        """How many have failed so."""
        self.spared_syncs = 0
        """So many syncs before these still succeed."""
        self.now_ms = 0
        """The time that changes to files get."""
        self.synced_paths: list[str] = []
        """Each sync that succeeded, of files and directories, in order."""
        self._root = _Directory()
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
        return self.capacity_bytes - _used_bytes(self._root)

    def space(self, directory: str) -> Space:
        return Space(self.capacity_bytes or self.free_bytes(), max(0, self.free_bytes()))

    def before_sync(self, path: str, node: _Node) -> None:
        """Fail if failures are due: the changes count as written from then on, and are lost."""
        if self.failing_syncs and self.spared_syncs:
            self.spared_syncs -= 1
        elif self.failing_syncs:
            self.failing_syncs -= 1
            self.failed_syncs += 1
            if isinstance(node, _Inode):  # names are in a journal, which is not dropped in parts
                node.unsynced.clear()
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
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
        if isinstance(node, _Inode):
            node.change(_Truncate(0))
        else:
            node = _Inode()
            directory.change(_NameChange(None, name, node))
        node.modified_ms = self.now_ms
        return MemoryFile(self, node, path)

    def open(self, path: str) -> File:
        return MemoryFile(self, self._inode(path), path)

    def open_reader(self, path: str) -> File:
        return MemoryFile(self, self._inode(path), path)

    def sizes(self, directory: str) -> dict[str, int]:
        names = self._directory(directory).names
        return {name: len(n.content) for name, n in names.items() if isinstance(n, _Inode)}

    def subdirectories(self, directory: str) -> list[str]:
        names = self._directory(directory).names
        return [name for name, node in names.items() if isinstance(node, _Directory)]

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
        directory.change(_NameChange(old_name, new_name, self._node(old)))

    def remove(self, path: str) -> None:
        directory, name = self._parent(path)
        directory.change(_NameChange(name, None, self._inode(path)))

    def make_directory(self, path: str) -> None:
        directory, name = self._parent(path)
        if name in directory.names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        directory.change(_NameChange(None, name, _Directory()))

    def remove_directory(self, path: str) -> None:
        directory, name = self._parent(path)
        if self._directory(path).names:
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        directory.change(_NameChange(name, None, self._directory(path)))

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

    def _node(self, path: str) -> _Node:
        node: _Node = self._root
        for name in filter(None, path.split("/")):
            if not isinstance(node, _Directory):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            found = node.names.get(name)
            if found is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            node = found
        return node

    def _inode(self, path: str) -> _Inode:
        node = self._node(path)
        if isinstance(node, _Directory):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def _directory(self, path: str) -> _Directory:
        node = self._node(path)
        if isinstance(node, _Inode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _parent(self, path: str) -> tuple[_Directory, str]:
        directory, _, name = path.rpartition("/")
        return self._directory(directory), name


def _used_bytes(node: _Node) -> int:
    if isinstance(node, _Inode):
        return len(node.content)
    return sum(map(_used_bytes, node.names.values()))
