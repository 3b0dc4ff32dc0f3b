"""What is small and must be exact: identity, votes, leader epochs, log starts, recovery points.

One SQLite file for the whole data directory, in WAL mode with `synchronous=FULL`: what a method has
returned from is on the disk. A thousand partitions are one transaction, not a thousand syncs.

It is the journal's checkpoint: as of `journal_start`, it holds what the journal says about each
partition, and it is written only once the journal that says so is durable.

| table       | holds |
|-------------|-------|
| `meta`      | by name: ids of cluster, node and directory, incarnation, boot id, clean stop, |
|             | journal start, the secret of the journal's blocks |
| `partition` | per partition: its directory, log start, recovery point, vote, condition |
| `epoch`     | per partition: each leader epoch, where it began, its leader and voters |
| `left_group` | per partition that this broker held once: the epoch it left with |
| `group_snapshot` | per partition that is a state machine's log: its state at one position |
| `command`   | the cluster's metadata commands behind the snapshot, by version |
| `snapshot`  | the cluster's metadata at one version |

The file is opened in `state_file`, partitions are in `state_partitions`, all values in
`state_values`. The schema's version is SQLite's `user_version`; `application_id` says that the file
is ours.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from tidemark.partitions.storage.state_partitions import PartitionTable
from tidemark.partitions.storage.state_rows import delete_of, key_row
from tidemark.partitions.storage.state_values import (
    NO_VOTE,
    BrokerRun,
    Command,
    Condition,
    EpochRow,
    GroupSnapshot,
    PartitionKey,
    PartitionState,
)
from tidemark.protocol.types import Offset, Position

__all__ = [
    "NO_VOTE",
    "BrokerRun",
    "Command",
    "Condition",
    "EpochRow",
    "GroupSnapshot",
    "PartitionKey",
    "PartitionState",
    "StateDb",
]


class StateDb(PartitionTable):
    """The database: what is recorded of partitions, and what state machines keep of their logs."""

    def group_snapshot(self, key: PartitionKey) -> GroupSnapshot | None:
        """The state of the state machine whose log this is, at or below the log's start."""
        with self.transaction() as connection:
            row = connection.execute(
                "SELECT epoch, end_offset, data FROM group_snapshot"
                " WHERE topic_id = ? AND partition = ?",
                key_row(key),
            ).fetchone()
        return None if row is None else GroupSnapshot(Position(row[0], row[1]), row[2])

    def save_group_snapshot(self, key: PartitionKey, snapshot: GroupSnapshot) -> None:
        """Record a state, before the log start moves up to its position."""
        with self.transaction() as connection:
            connection.execute(
                "REPLACE INTO group_snapshot VALUES (?, ?, ?, ?, ?)",
                (*key_row(key), *snapshot.position, snapshot.data),
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
                ((*key_row(key), *row) for key, row in rows),
            )

    def replace_epochs(self, key: PartitionKey, rows: Iterable[EpochRow]) -> None:
        """Make these the partition's epochs: after a truncation, or a reset."""
        with self.transaction() as connection:
            delete_of(connection, "epoch", key)
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
                ((*key_row(key), offset) for key, offset in offsets.items()),
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
