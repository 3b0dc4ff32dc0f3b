"""Groups that this broker has left, and that live on elsewhere: of each, the epoch it left with.

What a replica held may be given up with its directory. That it had voted, and acknowledged entries,
in epochs up to this one still binds the next replica of that group here: `raft/returning.py`.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from tidemark.partitions.storage.state_db import PartitionKey, StateDb
from tidemark.protocol.types import NO_EPOCH, Epoch


def left_epochs(state: StateDb) -> dict[PartitionKey, Epoch]:
    """All that are remembered."""
    with state.transaction() as connection:
        rows = connection.execute("SELECT topic_id, partition, epoch FROM left_group")
        return {PartitionKey(UUID(bytes=topic), number): Epoch(e) for topic, number, e in rows}


def remember(state: StateDb, left: Mapping[PartitionKey, Epoch]) -> None:
    """These partitions are being given up. To be durable before the journal, which has their
    epochs too, is used again: what is recorded of them may be of an earlier moment."""
    if not left:
        return
    with state.transaction() as connection:
        before = left_epochs(state)
        connection.executemany(
            "REPLACE INTO left_group VALUES (?, ?, ?)",
            (
                (key.topic_id.bytes, key.partition, max(epoch, before.get(key, NO_EPOCH)))
                for key, epoch in left.items()
            ),
        )


def leave(state: StateDb, left: Mapping[PartitionKey, Epoch]) -> None:
    """Remove all there is about these partitions but the epochs, as far as they are known here."""
    with state.transaction():
        epochs = left_epochs(state)
        for key, epoch in left.items():
            stored = state.partition_state(key)
            recorded = NO_EPOCH if stored is None else stored.newest_epoch
            epochs[key] = max(epoch, recorded, epochs.get(key, NO_EPOCH))
        state.forget_partitions(left)
        remember(state, {key: epochs[key] for key in left})


def come_back(state: StateDb, keys: Iterable[PartitionKey]) -> None:
    """Forget the epochs of these: their logs have gone beyond them, and nothing binds them now."""
    with state.transaction() as connection:
        connection.executemany(
            "DELETE FROM left_group WHERE topic_id = ? AND partition = ?",
            ((key.topic_id.bytes, key.partition) for key in keys),
        )
