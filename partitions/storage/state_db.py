"""What is small and must be exact: identity, votes, leader epochs, log starts, recovery points.

One SQLite file for the whole data directory, in WAL mode with `synchronous=EXTRA`: what a method
has returned from is on the disk. A thousand partitions are one transaction, not a thousand syncs.

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
| `command`, `snapshot` | nothing: from the first format, which kept the cluster's metadata here |

The file is opened in `state_file`, partitions are in `state_partitions`, all values in
`state_values`. The schema's version is SQLite's `user_version`; `application_id` says that the file
is ours.
"""

from tidemark.partitions.storage.state_partitions import PartitionTable
from tidemark.partitions.storage.state_rows import key_row
from tidemark.partitions.storage.state_values import (
    NO_VOTE,
    BrokerRun,
    Condition,
    GroupSnapshot,
    PartitionKey,
    PartitionState,
)
from tidemark.protocol.types import Position

__all__ = [
    "NO_VOTE",
    "BrokerRun",
    "Condition",
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
