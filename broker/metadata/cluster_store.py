"""The cluster's metadata on one broker: commands go to `state.db`, and then to the state machine.

One change at a time, and durable before it is applied: what the state machine shows is on the disk.
Only the path of a command is here; what the commands mean is the state machine's.
"""

from collections.abc import Callable
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
from tidemark.partitions.state_machines.cluster_machine import Outcome
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.storage.state_db import Command as StoredCommand
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.errors import RequestError, StorageError
from tidemark.protocol.types import NO_EPOCH, NodeId, Offset, Position

COMMANDS_MAX: Final = 1000
"""Commands kept behind a snapshot; more are folded into a new one at the next start."""


class ClusterStore:
    """The state, and the commands that led to it."""

    leads = True

    def __init__(self, db: StateDb, node_id: NodeId) -> None:
        """Read what is there. Blocking. Raises `StorageError` for what cannot be read."""
        self.leader = node_id
        self._db = db
        self._proposing = trio.Lock()
        self._listeners: list[Callable[[Outcome], None]] = []
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

    def listen(self, listener: Callable[[Outcome], None]) -> None:
        """Have `listener` called with each outcome, before whoever proposed it."""
        self._listeners.append(listener)

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied:
        """Make what `decide` makes of the state durable, and apply it.

        Raises what `decide` raises, `RequestError` if the command is refused, `StorageError` if it
        cannot be recorded; nothing has changed then. Once begun it is not cancelled.
        """
        async with self._proposing:
            command = decide(self.state)
            self.state.check(command)
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._record, command)
            result = self.state.apply(command)
            position = Position(NO_EPOCH, Offset(self.state.version))
            for listener in self._listeners:
                listener(Outcome(position, command, result))
            return result

    async def wait_version(self, version: int) -> None:
        """Until the state is of that version: every version that was ever told of is here."""
        assert version <= self.state.version

    def _record(self, command: Command) -> None:
        stored = StoredCommand(command.at_version + 1, encode_command(command))
        self._db.append_commands([stored])
