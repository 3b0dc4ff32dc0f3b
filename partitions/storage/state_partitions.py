"""What `state.db` records of partitions: votes, epochs, log starts, recovery points, conditions."""

from collections import defaultdict
from collections.abc import Iterable

from tidemark.partitions.raft.entries import EpochStart
from tidemark.partitions.storage.state_file import JOURNAL_START, StateFile
from tidemark.partitions.storage.state_rows import (
    Epochs,
    StateRows,
    TopicIds,
    delete_of,
    epoch_of_row,
    epoch_row,
    key_row,
    partition_row,
)
from tidemark.partitions.storage.state_values import PartitionKey, PartitionState


class PartitionTable(StateFile):
    """The part of `StateDb` that knows the partitions."""

    def partition_states(self) -> dict[PartitionKey, PartitionState]:
        """All there is, by partition."""
        return self._partition_states("", ())

    def partition_names(self) -> dict[PartitionKey, str]:
        """All that are recorded, with their names: much less than their states."""
        topics = TopicIds()
        with self.transaction() as connection:
            rows = connection.execute("SELECT topic_id, partition, name FROM partition")
            return {PartitionKey(topics[topic], number): name for topic, number, name in rows}

    def partition_state(self, key: PartitionKey) -> PartitionState | None:
        """One of them, without reading all."""
        found = self._partition_states(" WHERE topic_id = ? AND partition = ?", key_row(key))
        return found.get(key)

    def _partition_states(
        self, where: str, of: tuple[bytes | int, ...]
    ) -> dict[PartitionKey, PartitionState]:
        """A start has thousands of partitions, with an epoch for each start there was. Most say the
        same: what they say is made once."""
        epochs: Epochs = defaultdict(list)
        starts: dict[tuple[int | str, ...], EpochStart] = {}
        with self.transaction() as connection:
            for row in connection.execute(
                "SELECT topic_id, partition, epoch, start_offset, leader, voters, outgoing,"
                f" config_version FROM epoch{where} ORDER BY topic_id, partition, epoch",
                of,
            ):
                said = row[2:]
                start = starts.get(said)
                if start is None:
                    start = starts[said] = epoch_of_row(*said)
                epochs[row[:2]].append(start)
            rows = connection.execute(
                "SELECT topic_id, partition, name, log_start, recovery_point, vote_epoch,"
                f" voted_for, condition, is_journaled FROM partition{where}",
                of,
            )
            reading = StateRows(epochs)
            states = (reading.state(*row) for row in rows)
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
                map(partition_row, states),
            )
            connection.executemany(
                "DELETE FROM epoch WHERE topic_id = ? AND partition = ?",
                (key_row(state.key) for state in states),
            )
            connection.executemany(
                "INSERT INTO epoch VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (epoch_row(state.key, start) for state in states for start in state.epochs),
            )
            if journal_start is not None:
                self.set_meta(JOURNAL_START, str(journal_start))

    def forget_partitions(self, keys: Iterable[PartitionKey]) -> None:
        """Remove all there is about partitions that were deleted.

        For those whose groups live on elsewhere see `left_groups`.
        """
        with self.transaction() as connection:
            for key in keys:
                for table in ("epoch", "partition", "group_snapshot", "left_group"):
                    delete_of(connection, table, key)
