"""The file of `state.db`: opened, its transactions, and what it says of the directory itself."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from threading import RLock
from typing import Final, Self
from uuid import UUID, uuid4, uuid5

from tidemark.partitions.storage.refusals import NotRecorded, SyncFailed, may_lose, may_pass
from tidemark.partitions.storage.state_schema import prepare
from tidemark.partitions.storage.state_values import BrokerRun, Condition
from tidemark.partitions.storage.state_wal import is_long, write_again
from tidemark.protocol.errors import StorageError

_DIRECTORY_ID: Final = "directory_id"
_INCARNATION: Final = "incarnation"
_BOOT_ID: Final = "boot_id"
_CLEAN_STOP: Final = "clean_stop"
JOURNAL_START: Final = "journal_start"
_REFUSED_WRITES: Final = frozenset({sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_TRUNCATE})
_FAILED_SYNCS: Final = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC})
_TRIED_BYTES: Final = 1024 * 1024
"""More than a transaction's next page takes, of any file system."""
_JOURNAL_OWNER: Final = "journal_owner"
_OPEN_ADVICE: Final = (
    "It, or what SQLite has beside it, cannot be opened: let the process have more descriptors "
    "(`ulimit -n`), and read and write there; or the file system has no inode left (`df -i`)"
)
_WRITE_ADVICE: Final = "Let the broker's user write to it, and to the directory it is in"
_DISK_ADVICE: Final = (
    "The disk, or a quota, has no room for it or for what SQLite has beside it, or the disk "
    "fails: the kernel's log says whether it does"
)


class StateFile:
    """The part of `StateDb` that other parts build on. Any thread may use it, one at a time; each
    method is a transaction.

    Methods called inside `with db.transaction()` are one transaction together. Methods raise
    `NotRecorded` when the file cannot be read or written; nothing was changed then. Where that was
    the disk's fault, and not for want of room, `on_disk_failed` is told of it besides.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, new_id: UUID | None) -> None:
        """For `open`."""
        self._connection = connection
        self._path = path
        self._lock = RLock()
        self.on_disk_failed: Callable[[OSError], None] = lambda error: None
        """Told of it, on whatever thread, by whoever uses the file then."""
        with self.transaction():
            if self.meta(_DIRECTORY_ID) is None:
                self.set_meta(_DIRECTORY_ID, str(new_id or uuid4()))
                self.set_meta(_JOURNAL_OWNER, str(_new_owner(new_id)))

    @classmethod
    def open(cls, path: str, *, new_id: UUID | None = None) -> Self:
        """Open the file, or make it. Raises `StorageError` for a file that is not a sound one.

        `new_id` is given to a directory that has none yet; a random one by default.
        """
        try:
            write_again(path)
        except OSError as error:
            advice = _DISK_ADVICE if may_lose(error) else _OPEN_ADVICE
            raise StorageError(f"{path}-wal: {error.strerror}. {advice}") from error
        try:
            # No implicit transactions: they are begun and ended in one place, below.
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StorageError(f"{path}: {error}. {_advice(error)}") from error
        try:
            prepare(connection, path)
            return cls(connection, path, new_id)
        except sqlite3.Error as error:
            connection.close()
            raise StorageError(f"{path}: {error}. {_advice(error)}") from error
        except StorageError:
            connection.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All within is done, durably, or nothing is."""
        connection = self._connection
        with self._lock:
            if connection.in_transaction:
                yield connection
                return
            try:
                connection.execute("BEGIN IMMEDIATE")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                failure = _failure(error, self._path)
                if failure is not None:
                    self.on_disk_failed(failure)
                raise NotRecorded(f"{self._path}: {error}{_hint(error)}") from error
            finally:
                # Does nothing after a commit.
                connection.rollback()

    def copy_long_log(self) -> None:
        """Have the disk be heard of where it takes nothing that SQLite copies into the file.

        To be called now and then, on a thread. It does nothing as long as SQLite's own copying
        keeps the write-ahead log short.
        """
        if not is_long(self._path):
            return
        with self._lock:
            try:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error as error:
                # Without room nothing is lost: the log has it, and the next commit tries again.
                failure = _failure(error, self._path)
                if failure is not None:
                    self.on_disk_failed(failure)

    def meta(self, name: str) -> str | None:
        with self.transaction() as connection:
            row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        with self.transaction() as connection:
            connection.execute("REPLACE INTO meta VALUES (?, ?)", (name, value))

    @property
    def directory_id(self) -> UUID:
        """Made with the file: whoever has lost it is another replica."""
        stored = self.meta(_DIRECTORY_ID)
        assert stored is not None
        return UUID(stored)

    @property
    def journal_owner(self) -> UUID:
        """What the journal's blocks are known by. A secret, or a client could send records that
        look like blocks; the directory's id, which is none, where an older release wrote them."""
        stored = self.meta(_JOURNAL_OWNER)
        return self.directory_id if stored is None else UUID(stored)

    @property
    def has_journal_owner(self) -> bool:
        """Whether it is a secret already."""
        return self.meta(_JOURNAL_OWNER) is not None

    def make_journal_owner(self) -> None:
        """Have a secret from now on, if there is none: blocks that are there are strangers' then.
        To be called in the transaction that makes an end of them."""
        if not self.has_journal_owner:
            self.set_meta(_JOURNAL_OWNER, str(uuid4()))

    def begin_run(self, boot_id: str, *, has_sync_failed: bool = False) -> BrokerRun:
        """To be called once, before anything else. `boot_id` is the machine's since it booted;
        `has_sync_failed` says that a sync has since the last run began.

        If the page cache may have been lost since the last run, partitions that rely on it are
        unclean from now on.
        """
        with self.transaction() as connection:
            last_boot, was_clean = self.meta(_BOOT_ID), self.meta(_CLEAN_STOP) == "1"
            has_booted = last_boot not in (None, boot_id)
            # What a failed sync was for is in the page cache as if it were on the disk, and the
            # kernel drops it when it likes.
            is_cache_lost = has_sync_failed or (has_booted and not was_clean)
            incarnation = int(self.meta(_INCARNATION) or 0) + 1
            self.set_meta(_INCARNATION, str(incarnation))
            self.set_meta(_BOOT_ID, boot_id)
            self.set_meta(_CLEAN_STOP, "0")
            if is_cache_lost:
                connection.execute(
                    "UPDATE partition SET condition = ? WHERE condition = ? AND NOT is_journaled",
                    (Condition.UNCLEAN, Condition.CLEAN),
                )
            return BrokerRun(self.directory_id, incarnation, is_cache_lost)

    def end_run(self) -> None:
        """Everything is synced and recorded, and nothing follows."""
        self.set_meta(_CLEAN_STOP, "1")

    @property
    def journal_start(self) -> int | None:
        """The journal's records from this lsn on are not in here; `None`: there was no journal."""
        stored = self.meta(JOURNAL_START)
        return None if stored is None else int(stored)


def _failure(error: sqlite3.Error, path: str) -> OSError | None:
    """What the disk does not do, if that is no want of room."""
    code = getattr(error, "sqlite_errorcode", 0)
    if code in _FAILED_SYNCS:
        return SyncFailed(errno.EIO, os.strerror(errno.EIO), path)
    if code not in _REFUSED_WRITES:
        return None
    # No room on the disk has a code of its own, but a quota that is used up is called the same as a
    # disk that fails (`unixWrite` in SQLite's `os_unix.c`). So the disk is asked.
    number = _refusal_in(os.path.dirname(path)) or errno.EIO
    failure = OSError(number, os.strerror(number), path)
    return None if may_pass(failure) else failure


def _refusal_in(directory: str) -> int:
    """The number of the error with which a new file is not taken there; 0 if it is taken."""
    try:
        with TemporaryFile(dir=directory, buffering=0) as file:
            return 0 if file.write(bytes(_TRIED_BYTES)) == _TRIED_BYTES else errno.ENOSPC
    except OSError as error:
        return error.errno or errno.EIO


def _hint(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return f". {_WRITE_ADVICE}" if code == sqlite3.SQLITE_READONLY else ""


def _advice(error: sqlite3.Error) -> str:
    # An extended code says more, and has the plain one in its last byte. What Python has against a
    # call has none.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_CANTOPEN:
        # Also for its `-wal` and `-shm`. SQLite does not say why.
        return _OPEN_ADVICE
    if code == sqlite3.SQLITE_READONLY:
        return _WRITE_ADVICE
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL):
        return _DISK_ADVICE
    return "Restore the file from a copy; without it, nobody knows what the logs beside it hold"


def _new_owner(new_id: UUID | None) -> UUID:
    """Random, but where the directory's id is given: then what follows is to be repeatable."""
    return uuid4() if new_id is None else uuid5(new_id, _JOURNAL_OWNER)
