"""A broker's data directory: who may use it, and where in it each partition is.

| path | what |
|------|------|
| `lock` | locked by the broker that uses the directory; holds its process id, and more if a sync |
|        | has failed |
| `state.db` | see `state_db` |
| `journal/` | see `journal.blocks` |
| `reserve` | see `reserve` |
| `<topic>-<partition>/` | one partition's log |
| `<topic>-<partition>.<32 hex digits>-delete/` | one that is being deleted; a long topic is cut, |
|        | and the last 16 digits are its digest |
"""

import errno
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import Final
from uuid import UUID

from tidemark.partitions.storage.files import File, Files, Lock, read_file
from tidemark.partitions.storage.refusals import NO_ROOM, was_not_asked
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import TopicPartition

LOCK_NAME: Final = "lock"
STATE_DB_NAME: Final = "state.db"
JOURNAL_NAME: Final = "journal"
_SYNC_FAILED: Final = b"a sync has failed\n"
_DELETE_SUFFIX: Final = "-delete"
_MARK_DIGITS: Final = 32
_TOPIC_KEPT: Final = 200
_PARTITION_NAME: Final = re.compile(r"(.+)-(\d+)")


class DataDirectory:
    """A data directory that this process holds the lock of."""

    def __init__(self, files: Files, path: str, lock: Lock) -> None:
        """For `open`. Raises `OSError`."""
        self.path = path
        self._files = files
        self._lock = lock
        self._has_unsynced_names = False
        lock_path = f"{path}/{LOCK_NAME}"
        self.has_sync_failed = _SYNC_FAILED in read_file(files, lock_path)
        """Whether a sync has failed since the last `forget_failed_sync`, in this process or in one
        before: what the page cache showed then may have gone, though the machine has not booted."""
        self._holder: File | None
        self._holder = files.open(lock_path) if self.has_sync_failed else files.create(lock_path)
        if not self.has_sync_failed:
            self._write_holder(self._holder)

    @classmethod
    def open(cls, files: Files, path: str) -> "DataDirectory":
        """Make the directory if it is not there, and lock it.

        Raises `StorageError` when it cannot be used, or another broker does.
        """
        try:
            _make_with_parents(files, path)
            directory = cls(files, path, _lock(files, f"{path}/{LOCK_NAME}"))
            files.sync_directory(path)
        except OSError as error:
            # What a link leads to is in the advice, with its path.
            is_in_the_way = error.errno == errno.EEXIST
            what = os.strerror(errno.EEXIST) if is_in_the_way else error.strerror or error
            raise StorageError(
                f"the data directory {path} cannot be used: {what}. {_advice(error, path)}"
            ) from error
        return directory

    def close(self) -> None:
        """Let another broker have it."""
        self._holder = None
        self._lock.release()

    def note_failed_sync(self) -> None:
        """Have the next start know. It does not block, and does not raise.

        It is not synced: the disk that has failed may not take it. In the page cache it is as safe
        as the batches that it is about, and after another boot they count as lost anyway.
        """
        self.has_sync_failed = True
        with suppress(OSError):
            # What was begun before `close` may fail after it.
            holder = self._holder or self._files.open(f"{self.path}/{LOCK_NAME}")
            holder.pwrite(_SYNC_FAILED, holder.size())

    def forget_failed_sync(self) -> None:
        """What follows from it is recorded."""
        if self.has_sync_failed:
            assert self._holder is not None
            self.has_sync_failed = False
            with suppress(OSError):  # it is noted still, and follows once more
                self._holder.truncate(0)
                self._write_holder(self._holder)

    def _write_holder(self, file: File) -> None:
        with suppress(OSError):  # of a full disk: it is for people to read
            file.pwrite(f"{self._lock.holder}\n".encode(), 0)

    @property
    def state_db_path(self) -> str:
        return f"{self.path}/{STATE_DB_NAME}"

    @property
    def journal_path(self) -> str:
        return f"{self.path}/{JOURNAL_NAME}"

    def partition_path(self, partition: TopicPartition) -> str:
        return f"{self.path}/{partition}"

    def partitions(self) -> list[TopicPartition]:
        """Those there are directories for."""
        names = map(partition_of, self._files.subdirectories(self.path))
        return sorted(partition for partition in names if partition is not None)

    def has_partition(self, partition: TopicPartition) -> bool:
        return self._files.exists(self.partition_path(partition))

    def create_partition(self, partition: TopicPartition) -> str:
        """An empty directory for a partition's log; its path. Durable with `sync`."""
        path = self.partition_path(partition)
        self._files.make_directory(path)
        return path

    def sync(self) -> None:
        """Block until the directories are on the disk as they are now."""
        self._files.sync_directory(self.path)

    def mark_deleted(self, partitions: Iterable[TopicPartition], unique: UUID) -> list[str]:
        """Rename partitions' directories, at once and durably, so that their names are free.

        Returns the paths to give to `remove`, which may take its time. After a crash between the
        two, `deleted` finds them. What is not there is passed over: so a second attempt goes on
        where the first one failed.
        """
        there = set(self._files.subdirectories(self.path))
        renamed = []
        for partition in partitions:
            if str(partition) in there:
                self._has_unsynced_names = True
                renamed.append(self._marked_path(partition, unique))
                self._files.rename(self.partition_path(partition), renamed[-1])
        if self._has_unsynced_names:  # also of an attempt before this one
            self.sync()
            self._has_unsynced_names = False
        return renamed

    def _marked_path(self, partition: TopicPartition, unique: UUID) -> str:
        digest = _digest(partition.topic)
        mark = unique.hex[: _MARK_DIGITS - len(digest)] + digest
        return f"{self.path}/{_kept_name(partition)}.{mark}{_DELETE_SUFFIX}"

    def is_marked_deleted(self, name: str) -> bool:
        """Whether the directory of this name is not there because its partition was deleted."""
        partition, there = partition_of(name), self._files.subdirectories(self.path)
        if partition is None or name in there:
            return False
        digest = _digest(partition.topic)
        unique = rf"[0-9a-f]{{{_MARK_DIGITS - len(digest)}}}"
        kept = re.escape(_kept_name(partition))
        marked = re.compile(rf"{kept}\.{unique}{digest}{_DELETE_SUFFIX}")
        return any(marked.fullmatch(other) for other in there)

    def deleted(self) -> list[str]:
        """Directories that are to be removed."""
        return [
            f"{self.path}/{name}"
            for name in sorted(self._files.subdirectories(self.path))
            if name.endswith(_DELETE_SUFFIX)
        ]

    def remove(self, path: str) -> None:
        """Remove a directory that was marked. Blocking: large files take their time."""
        assert path.endswith(_DELETE_SUFFIX)
        for name in self._files.sizes(path):
            self._files.remove(f"{path}/{name}")
        self._files.remove_directory(path)


def _kept_name(partition: TopicPartition) -> str:
    # Cut, because a name may have 255 bytes and the longest topic's directory has nearly all.
    return f"{partition.topic[:_TOPIC_KEPT]}-{partition.partition}"


def _digest(topic: str) -> str:
    """What tells topics apart that are cut to the same name; none where one is whole and alone."""
    if len(topic) < _TOPIC_KEPT:
        return ""
    return blake2b(topic.encode(), digest_size=8).hexdigest()


def partition_of(directory_name: str) -> TopicPartition | None:
    """The partition whose log is in a directory of this name; `None` if that is none."""
    match = _PARTITION_NAME.fullmatch(directory_name)
    if match is None:
        return None
    return TopicPartition(match[1], int(match[2]))


def _make_with_parents(files: Files, path: str) -> None:
    """Like `mkdir -p`, each new name synced: a data directory must not be lost with its data."""
    if files.exists(path):
        # An earlier process may have been killed between making it and syncing its name.
        with suppress(PermissionError):
            files.sync_directory(os.path.dirname(os.path.abspath(path)))
    missing = []
    current = os.path.abspath(path)
    while not files.exists(current):
        missing.append(current)
        current = os.path.dirname(current)
    for directory in reversed(missing):
        files.make_directory(directory)
        files.sync_directory(os.path.dirname(directory))


def _advice(error: OSError, path: str) -> str:
    if was_not_asked(error):
        return "Another would not do: let the process have more (`ulimit -n`)"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return f"{_why_no_directory(path)}Give another one"
    if error.errno in NO_ROOM:
        return "Remove something from that disk, or give another one"
    if error.errno == errno.EACCES:
        what = error.filename or path
        return f"Give another one, or let the broker's user read and write {what}"
    return "Give another one, or make this one writable"


def _why_no_directory(path: str) -> str:
    """What is in the way: a sentence, or nothing."""
    current = os.path.abspath(path)
    while not os.path.lexists(current):
        current = os.path.dirname(current)
    if os.path.islink(current) and not os.path.exists(current):
        # Where a disk is mounted, say, that is not there now: it is not made in its place.
        return f"{current} is a link to {os.readlink(current)}, and nothing is there. "
    return "" if os.path.isdir(current) else f"{current} is no directory. "


def _lock(files: Files, path: str) -> Lock:
    lock = files.lock(path)
    if lock is None:
        holder = read_file(files, path).decode(errors="replace").partition("\n")[0] or "unknown"
        raise StorageError(
            f"the data directory {os.path.dirname(path)} is used by another broker "
            f"(process {holder}). Stop that one, or give this one a directory of its own"
        )
    return lock
