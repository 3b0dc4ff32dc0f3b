"""What is small and must be exact: identity, votes, leader epochs, log starts, recovery points.

One SQLite file for the whole data directory, in WAL mode with `synchronous=FULL`: what a method has
returned from is on the disk. A thousand partitions are one transaction, not a thousand syncs.

It is the journal's checkpoint: as of `journal_start`, it holds what the journal says about each
partition, and it is written only once the journal that says so is durable.

| table       | holds |
|-------------|-------|
| `meta`      | by name: ids of cluster, node and directory, incarnation, boot id, clean stop, |
|             | journal start |
| `partition` | per partition: its directory, log start, recovery point, vote, condition |
| `epoch`     | per partition: each leader epoch, where it began, its leader and voters |
| `left_group` | per partition that this broker held once: the epoch it left with |
| `group_snapshot` | per partition that is a state machine's log: its state at one position |
| `command`   | the cluster's metadata commands behind the snapshot, by version |
| `snapshot`  | the cluster's metadata at one version |

The schema's version is SQLite's `user_version`; `application_id` says that the file is ours.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from threading import RLock
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID, uuid4

from tidemark.partitions.raft.entries import Configuration, EpochStart, epoch_start
from tidemark.partitions.raft.messages import HardState
from tidemark.partitions.storage.state_schema import prepare
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, Offset, Position
from tidemark.protocol.values import dataclass

_DIRECTORY_ID: Final = "directory_id"
_INCARNATION: Final = "incarnation"
_BOOT_ID: Final = "boot_id"
_CLEAN_STOP: Final = "clean_stop"
_JOURNAL_START: Final = "journal_start"
_ZERO: Final = Offset(0)
_Epochs: TypeAlias = defaultdict[tuple[bytes, int], list[EpochStart]]
NO_VOTE: Final = HardState(NO_EPOCH, None)
"""Of a replica that has heard of no epoch yet."""


class PartitionKey(NamedTuple):
    """A partition by its topic's id, which no later topic of the same name shares."""

    topic_id: UUID
    partition: int


class EpochRow(NamedTuple):
    """A leader epoch, and the offset of the first record that could carry it."""

    epoch: Epoch
    start_offset: Offset


class Condition(IntEnum):
    """Whether a replica holds all that it has promised to hold. One that does not neither votes
    nor counts until it holds what its leader had committed."""

    CLEAN = 0
    UNCLEAN = 1
    """The end of its log may be gone: it was in the page cache only when the power failed."""
    DAMAGED = 2
    """Something that was on the disk is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """All that is recorded of one partition."""

    key: PartitionKey
    name: str
    """Of its directory; empty if an older release has recorded it."""
    log_start: Offset = _ZERO
    recovery_point: Offset = _ZERO
    hard_state: HardState = NO_VOTE
    epochs: tuple[EpochStart, ...] = ()
    """Ascending."""
    condition: Condition = Condition.CLEAN
    is_journaled: bool = True
    """Whether its batches are in the journal (`flush=commit`), and not in the page cache alone."""

    @property
    def newest_epoch(self) -> Epoch:
        """The newest that it has heard of."""
        row = self.epochs[-1].epoch if self.epochs else NO_EPOCH
        return max(self.hard_state.epoch, row)


class GroupSnapshot(NamedTuple):
    """A state machine's state after all entries of its log up to a position."""

    position: Position
    data: bytes


class BrokerRun(NamedTuple):
    """What is known at the beginning of one run of a broker."""

    directory_id: UUID
    incarnation: int
    """Counts the runs of this data directory, from 1."""
    is_cache_lost: bool
    """Whether what was not synced may be gone: another boot, and no clean stop before it."""


class Command(NamedTuple):
    """A change of the cluster's metadata; `version` is the state's after it."""

    version: int
    data: bytes


class StateDb:
    """The database. Any thread may use it, one at a time; each method is a transaction.

    Methods called inside `with db.transaction()` are one transaction together. Methods raise
    `StorageError` when the file cannot be read or written; nothing was changed then.
    """

    def __init__(self, connection: sqlite3.Connection, path: str, new_id: UUID | None) -> None:
        """For `open`."""
        self._connection = connection
        self._path = path
        self._lock = RLock()
        if self.meta(_DIRECTORY_ID) is None:
            self.set_meta(_DIRECTORY_ID, str(new_id or uuid4()))

    @classmethod
    def open(cls, path: str, *, new_id: UUID | None = None) -> "StateDb":
        """Open the file, or make it. Raises `StorageError` for a file that is not a sound one.

        `new_id` is given to a directory that has none yet; a random one by default.
        """
        try:
            # No implicit transactions: they are begun and ended in one place, below.
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StorageError(f"{path}: {error}") from error
        try:
            prepare(connection, path)
            return cls(connection, path, new_id)
        except sqlite3.Error as error:
            connection.close()
            raise StorageError(
                f"{path}: {error}. Restore the file from a copy; without it, nobody knows what "
                "the logs beside it hold"
            ) from error
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

    @property
    def directory_id(self) -> UUID:
        """Made with the file: whoever has lost it is another replica."""
        stored = self.meta(_DIRECTORY_ID)
        assert stored is not None
        return UUID(stored)

    def begin_run(self, boot_id: str) -> BrokerRun:
        """To be called once, before anything else. `boot_id` is the machine's since it booted.

        If the page cache may have been lost since the last run, partitions that rely on it are
        unclean from now on.
        """
        with self.transaction() as connection:
            last_boot, was_clean = self.meta(_BOOT_ID), self.meta(_CLEAN_STOP) == "1"
            is_cache_lost = last_boot not in (None, boot_id) and not was_clean
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
        stored = self.meta(_JOURNAL_START)
        return None if stored is None else int(stored)

    # Partitions

    def partition_states(self) -> dict[PartitionKey, PartitionState]:
        """All there is, by partition."""
        return self._partition_states("", ())

    def partition_names(self) -> dict[PartitionKey, str]:
        """All that are recorded, with their names: much less than their states."""
        with self.transaction() as connection:
            rows = connection.execute("SELECT topic_id, partition, name FROM partition")
            return {PartitionKey(UUID(bytes=topic), number): name for topic, number, name in rows}

    def partition_state(self, key: PartitionKey) -> PartitionState | None:
        """One of them, without reading all."""
        found = self._partition_states(" WHERE topic_id = ? AND partition = ?", _key_row(key))
        return found.get(key)

    def _partition_states(
        self, where: str, of: tuple[bytes | int, ...]
    ) -> dict[PartitionKey, PartitionState]:
        """A start has thousands of partitions, with an epoch for each start there was."""
        epochs: _Epochs = defaultdict(list)
        configs: dict[tuple[str, str], Configuration] = {}
        with self.transaction() as connection:
            for topic_id, partition, epoch, start_offset, leader, *config in connection.execute(
                "SELECT topic_id, partition, epoch, start_offset, leader, voters, outgoing"
                f" FROM epoch{where} ORDER BY topic_id, partition, epoch",
                of,
            ):
                voters, outgoing = config
                known = configs.get((voters, outgoing))
                if known is None:
                    known = Configuration(_from_text(voters), _from_text(outgoing))
                    configs[voters, outgoing] = known
                start = epoch_start(epoch, start_offset, leader, known)
                epochs[topic_id, partition].append(start)
            rows = connection.execute(
                "SELECT topic_id, partition, name, log_start, recovery_point, vote_epoch,"
                f" voted_for, condition, is_journaled FROM partition{where}",
                of,
            )
            states = (_partition_state(epochs, *row) for row in rows)
            return {state.key: state for state in states}

    def save(self, states: Iterable[PartitionState], *, journal_start: int | None = None) -> None:
        """Record partitions as they are now, new ones too.

        A checkpoint passes its mark: the journal's records before it are no longer needed. What
        is recorded must be durable in the journal and in the segments.
        """
        states = list(states)
        with self.transaction() as connection:
            connection.executemany(
                "REPLACE INTO partition (topic_id, partition, name, log_start, recovery_point,"
                " vote_epoch, voted_for, condition, is_journaled)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                map(_partition_row, states),
            )
            connection.executemany(
                "DELETE FROM epoch WHERE topic_id = ? AND partition = ?",
                (_key_row(state.key) for state in states),
            )
            connection.executemany(
                "INSERT INTO epoch VALUES (?, ?, ?, ?, ?, ?, ?)",
                (_epoch_row(state.key, start) for state in states for start in state.epochs),
            )
            if journal_start is not None:
                self.set_meta(_JOURNAL_START, str(journal_start))

    def set_conditions(self, conditions: Mapping[PartitionKey, Condition]) -> None:
        with self.transaction() as connection:
            connection.executemany(
                "UPDATE partition SET condition = ? WHERE topic_id = ? AND partition = ?",
                ((condition, *_key_row(key)) for key, condition in conditions.items()),
            )

    def forget_partitions(self, keys: Iterable[PartitionKey]) -> None:
        """Remove all there is about partitions that were deleted.

        For those whose groups live on elsewhere see `left_groups`.
        """
        with self.transaction() as connection:
            for key in keys:
                for table in ("epoch", "partition", "group_snapshot", "left_group"):
                    _delete(connection, table, key)

    def group_snapshot(self, key: PartitionKey) -> GroupSnapshot | None:
        """The state of the state machine whose log this is, at or below the log's start."""
        with self.transaction() as connection:
            row = connection.execute(
                "SELECT epoch, end_offset, data FROM group_snapshot"
                " WHERE topic_id = ? AND partition = ?",
                _key_row(key),
            ).fetchone()
        return None if row is None else GroupSnapshot(Position(row[0], row[1]), row[2])

    def save_group_snapshot(self, key: PartitionKey, snapshot: GroupSnapshot) -> None:
        """Record a state, before the log start moves up to its position."""
        with self.transaction() as connection:
            connection.execute(
                "REPLACE INTO group_snapshot VALUES (?, ?, ?, ?, ?)",
                (*_key_row(key), *snapshot.position, snapshot.data),
            )

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
                "INSERT INTO epoch (topic_id, partition, epoch, start_offset) VALUES (?, ?, ?, ?)",
                ((*_key_row(key), *row) for key, row in rows),
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

    def _offsets(self, column: str) -> dict[PartitionKey, Offset]:
        with self.transaction() as connection:
            rows = connection.execute(f"SELECT topic_id, partition, {column} FROM partition")
            return {PartitionKey(UUID(bytes=t), p): Offset(offset) for t, p, offset in rows}

    def _set_offsets(self, column: str, offsets: Mapping[PartitionKey, Offset]) -> None:
        with self.transaction() as connection:
            connection.executemany(
                f"INSERT INTO partition (topic_id, partition, {column}) VALUES (?, ?, ?)"
                f" ON CONFLICT DO UPDATE SET {column} = excluded.{column}",
                ((*_key_row(key), offset) for key, offset in offsets.items()),
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


def _key_row(key: PartitionKey) -> tuple[bytes, int]:
    return key.topic_id.bytes, key.partition


def _delete(connection: sqlite3.Connection, table: str, key: PartitionKey) -> None:
    connection.execute(f"DELETE FROM {table} WHERE topic_id = ? AND partition = ?", _key_row(key))


def _partition_row(state: PartitionState) -> tuple[bytes | int | str | None, ...]:
    return (
        *_key_row(state.key),
        state.name,
        state.log_start,
        state.recovery_point,
        state.hard_state.epoch,
        state.hard_state.voted_for,
        state.condition,
        state.is_journaled,
    )


def _partition_state(
    epochs: _Epochs,
    topic_id: bytes,
    partition: int,
    name: str,
    log_start: Offset,
    recovery_point: Offset,
    vote_epoch: Epoch,
    voted_for: NodeId | None,
    condition: int,
    is_journaled: int,
) -> PartitionState:
    key = PartitionKey(UUID(bytes=topic_id), partition)
    return PartitionState(
        key=key,
        name=name,
        log_start=log_start,
        recovery_point=recovery_point,
        hard_state=HardState(vote_epoch, voted_for),
        epochs=tuple(epochs.get((topic_id, partition), ())),
        condition=Condition(condition),
        is_journaled=bool(is_journaled),
    )


def _epoch_row(key: PartitionKey, start: EpochStart) -> tuple[bytes | int | str, ...]:
    voters, outgoing = _as_text(start.config.voters), _as_text(start.config.outgoing)
    return (*_key_row(key), start.epoch, start.start_offset, start.leader, voters, outgoing)


def _as_text(ids: Iterable[NodeId]) -> str:
    """Node ids as somebody who opens the file with `sqlite3` would like to read them."""
    return ",".join(map(str, ids))


def _from_text(ids: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(node_id)) for node_id in ids.split(",") if node_id)
