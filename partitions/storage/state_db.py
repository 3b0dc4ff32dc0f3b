"""What is small and must be exact: identity, leader epochs, log starts, recovery points, metadata.

One SQLite file for the whole data directory, in WAL mode with `synchronous=FULL`: what a method has
returned from is on the disk. A thousand partitions are one transaction, not a thousand syncs.

| table       | holds |
|-------------|-------|
| `meta`      | cluster id, node id, incarnation, by name |
| `epoch`     | per partition: each leader epoch and the offset at which it began |
| `partition` | per partition: log start, recovery point |
| `command`   | the cluster's metadata commands behind the snapshot, by version |
| `snapshot`  | the cluster's metadata at one version |

The schema's version is SQLite's `user_version`; `application_id` says that the file is ours.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import Final, NamedTuple
from uuid import UUID

from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, Offset

SCHEMA_VERSION: Final = 1
APPLICATION_ID: Final = 0x74_69_64_65  # "tide"

_SCHEMA: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE epoch (
    topic_id BLOB NOT NULL, partition INTEGER NOT NULL, epoch INTEGER NOT NULL,
    start_offset INTEGER NOT NULL,
    PRIMARY KEY (topic_id, partition, epoch)
) WITHOUT ROWID;
CREATE TABLE partition (
    topic_id BLOB NOT NULL, partition INTEGER NOT NULL,
    log_start INTEGER NOT NULL DEFAULT 0, recovery_point INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (topic_id, partition)
) WITHOUT ROWID;
CREATE TABLE command (version INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE snapshot (version INTEGER NOT NULL, data BLOB NOT NULL);
"""


class PartitionKey(NamedTuple):
    """A partition by its topic's id, which no later topic of the same name shares."""

    topic_id: UUID
    partition: int


class EpochRow(NamedTuple):
    """A leader epoch, and the offset of the first record that could carry it."""

    epoch: Epoch
    start_offset: Offset


class Command(NamedTuple):
    """A change of the cluster's metadata; `version` is the state's after it."""

    version: int
    data: bytes


class StateDb:
    """The database. Any thread may use it, one at a time; each method is a transaction.

    Methods called inside `with db.transaction()` are one transaction together. Methods raise
    `StorageError` when the file cannot be read or written; nothing was changed then.
    """

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        """For `open`."""
        self._connection = connection
        self._path = path
        self._lock = RLock()

    @classmethod
    def open(cls, path: str) -> "StateDb":
        """Open the file, or make it. Raises `StorageError` for a file that is not a sound one."""
        try:
            # No implicit transactions: they are begun and ended in one place, below.
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StorageError(f"{path}: {error}") from error
        try:
            _prepare(connection, path)
        except sqlite3.Error as error:
            connection.close()
            raise StorageError(
                f"{path}: {error}. Restore the file from a copy; without it, nobody knows what "
                "the logs beside it hold"
            ) from error
        except StorageError:
            connection.close()
            raise
        return cls(connection, path)

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
                raise StorageError(f"{self._path}: {error}") from error
            finally:
                # Does nothing after a commit.
                connection.rollback()

    # Identity

    def meta(self, name: str) -> str | None:
        with self.transaction() as connection:
            row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, name: str, value: str) -> None:
        with self.transaction() as connection:
            connection.execute("REPLACE INTO meta VALUES (?, ?)", (name, value))

    # Leader epochs

    def epochs(self) -> dict[PartitionKey, list[EpochRow]]:
        """Every partition's epochs, ascending."""
        found: dict[PartitionKey, list[EpochRow]] = {}
        with self.transaction() as connection:
            for topic_id, partition, epoch, start_offset in connection.execute(
                "SELECT topic_id, partition, epoch, start_offset FROM epoch"
                " ORDER BY topic_id, partition, epoch"
            ):
                key = PartitionKey(UUID(bytes=topic_id), partition)
                found.setdefault(key, []).append(EpochRow(epoch, start_offset))
        return found

    def append_epochs(self, rows: Iterable[tuple[PartitionKey, EpochRow]]) -> None:
        """Record epochs before they are used. One that is there already is refused."""
        with self.transaction() as connection:
            connection.executemany(
                "INSERT INTO epoch VALUES (?, ?, ?, ?)",
                ((key.topic_id.bytes, key.partition, *row) for key, row in rows),
            )

    def replace_epochs(self, key: PartitionKey, rows: Iterable[EpochRow]) -> None:
        """Make these the partition's epochs: after a truncation, or a reset."""
        with self.transaction() as connection:
            _delete(connection, "epoch", key)
            self.append_epochs((key, row) for row in rows)

    # Logs

    def log_starts(self) -> dict[PartitionKey, Offset]:
        return self._offsets("log_start")

    def set_log_starts(self, starts: Mapping[PartitionKey, Offset]) -> None:
        self._set_offsets("log_start", starts)

    def recovery_points(self) -> dict[PartitionKey, Offset]:
        return self._offsets("recovery_point")

    def set_recovery_points(self, points: Mapping[PartitionKey, Offset]) -> None:
        """Record up to where logs are on the disk; never more than a sync has said."""
        self._set_offsets("recovery_point", points)

    def forget_partitions(self, keys: Iterable[PartitionKey]) -> None:
        """Remove all there is about partitions that were deleted."""
        with self.transaction() as connection:
            for key in keys:
                _delete(connection, "epoch", key)
                _delete(connection, "partition", key)

    def _offsets(self, column: str) -> dict[PartitionKey, Offset]:
        with self.transaction() as connection:
            rows = connection.execute(f"SELECT topic_id, partition, {column} FROM partition")
            return {PartitionKey(UUID(bytes=t), p): Offset(offset) for t, p, offset in rows}

    def _set_offsets(self, column: str, offsets: Mapping[PartitionKey, Offset]) -> None:
        with self.transaction() as connection:
            connection.executemany(
                f"INSERT INTO partition (topic_id, partition, {column}) VALUES (?, ?, ?)"
                f" ON CONFLICT DO UPDATE SET {column} = excluded.{column}",
                ((key.topic_id.bytes, key.partition, offset) for key, offset in offsets.items()),
            )

    # The cluster's metadata

    def append_commands(self, commands: Iterable[Command]) -> None:
        """Record commands. A version that is there already is refused."""
        with self.transaction() as connection:
            connection.executemany("INSERT INTO command VALUES (?, ?)", commands)

    def commands(self) -> list[Command]:
        """The commands behind the snapshot, in order."""
        with self.transaction() as connection:
            rows = connection.execute("SELECT version, data FROM command ORDER BY version")
            return [Command(*row) for row in rows]

    def snapshot(self) -> Command | None:
        """The state at some version, as bytes; `None` if all commands are there."""
        with self.transaction() as connection:
            row = connection.execute("SELECT version, data FROM snapshot").fetchone()
        return None if row is None else Command(*row)

    def replace_snapshot(self, snapshot: Command) -> None:
        """Keep the state at this version in place of the commands up to it."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM snapshot")
            connection.execute("INSERT INTO snapshot VALUES (?, ?)", snapshot)
            connection.execute("DELETE FROM command WHERE version <= ?", (snapshot.version,))


def _delete(connection: sqlite3.Connection, table: str, key: PartitionKey) -> None:
    connection.execute(
        f"DELETE FROM {table} WHERE topic_id = ? AND partition = ?",
        (key.topic_id.bytes, key.partition),
    )


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Check that the file is ours and whole, or make it so if it is new."""
    is_empty = not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    application_id = _pragma(connection, "application_id")
    version = _pragma(connection, "user_version")
    if not is_empty and application_id != APPLICATION_ID:
        raise StorageError(f"{path} is a database, but not one of Tidemark's")
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path} has format {version}, and this release reads {SCHEMA_VERSION}: "
            "a newer Tidemark has written it"
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    if is_empty:
        # One transaction: a crash leaves an empty file or a complete schema.
        connection.executescript(
            f"BEGIN; {_SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
            f" PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;"
        )
    elif (damage := connection.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        in_one_line = " ".join(damage.split())
        raise StorageError(f"{path} is damaged: {in_one_line}. Restore it from a copy")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])
