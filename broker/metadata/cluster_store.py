"""The cluster's metadata on one broker: commands go to `state.db`, and then to the state machine.

One change at a time, and durable before it is applied: what the state machine shows is on the disk.
Only the path of a command is here; what the commands mean is the state machine's.
"""

from collections.abc import Iterable
from typing import Final
from uuid import UUID

import trio

from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import (
    Command,
    DeleteTopic,
    decode_command,
    encode_command,
)
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.storage.state_db import Command as StoredCommand
from tidemark.partitions.storage.state_db import PartitionKey, StateDb
from tidemark.protocol.errors import RequestError, StorageError

COMMANDS_MAX: Final = 1000
"""Commands kept behind a snapshot; more are folded into a new one at the next start."""


class ClusterStore:
    """The state, and the commands that led to it."""

    def __init__(self, db: StateDb) -> None:
        """Read what is there. Blocking. Raises `StorageError` for what cannot be read."""
        self._db = db
        snapshot = db.snapshot()
        self.state = ClusterState.decode(snapshot.data) if snapshot else ClusterState()
        commands = db.commands()
        self.deleted: dict[UUID, TopicMetadata] = {}
        """Topics deleted since the snapshot: a crash may have left their files."""
        for command in commands:
            self._replay(command)
        self._is_long = len(commands) > COMMANDS_MAX

    def _replay(self, stored: StoredCommand) -> None:
        command = decode_command(stored.data)
        deleted = self.state.topic_by_id(command.id) if isinstance(command, DeleteTopic) else None
        try:
            self.state.apply(command)
        except RequestError as error:
            # Only what could be applied was ever recorded.
            raise StorageError(
                f"state.db: metadata command {stored.version} does not apply: {error}"
            ) from error
        if deleted is not None:
            self.deleted[deleted.id] = deleted

    def fold(self) -> None:
        """Replace many commands by a snapshot. Only once the files of `deleted` are gone."""
        if self._is_long:
            self._db.replace_snapshot(StoredCommand(self.state.version, self.state.encode()))
        self._is_long = False
        self.deleted.clear()

    async def commit(self, command: Command, *, forget: Iterable[PartitionKey] = ()) -> Applied:
        """Make `command` durable and apply it; with it, forget what is known of partitions.

        The caller makes sure that no other commit is under way. Raises `RequestError` if the
        command is refused, `StorageError` if it cannot be recorded; nothing has changed then.
        Once begun it is not cancelled.
        """
        self.state.check(command)
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(self._record, command, list(forget))
        return self.state.apply(command)

    def _record(self, command: Command, forget: list[PartitionKey]) -> None:
        stored = StoredCommand(command.at_version + 1, encode_command(command))
        with self._db.transaction():
            self._db.append_commands([stored])
            self._db.forget_partitions(forget)
