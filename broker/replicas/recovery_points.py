"""Up to where each log is known to be on the disk, recorded now and then.

A start after a crash checks everything from the recorded point on. Recording costs a synced
transaction, so it is done every few seconds for all logs that moved.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

import trio

from tidemark.partitions.storage.state_db import PartitionKey, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Offset

logger = logging.getLogger(__name__)

RECORD_SECONDS: Final = 5.0


class Keyed(Protocol):
    """A replica, as far as this needs one."""

    key: PartitionKey


class RecoveryPoints:
    """What was synced since the last recording."""

    def __init__(self, state: StateDb) -> None:
        self._state = state
        self._points: dict[Keyed, Offset] = {}

    def note(self, replica: Keyed, end_offset: Offset) -> None:
        """All below `end_offset` is on the disk."""
        self._points[replica] = end_offset

    def forget(self, replica: Keyed) -> None:
        """Its files are closed or gone."""
        self._points.pop(replica, None)

    async def run(self) -> None:
        """Record every few seconds, for ever."""
        while True:
            await trio.sleep(RECORD_SECONDS)
            try:
                await self.record()
            except StorageError as error:
                # The disk is full, say. The points that are recorded still hold: a start after a
                # crash has more to check, and nothing is lost.
                logger.warning("recovery points cannot be recorded now: %s", error)

    async def record(self) -> None:
        points, self._points = self._points, {}
        if points:
            by_key = {replica.key: offset for replica, offset in points.items()}
            await trio.to_thread.run_sync(self._state.set_recovery_points, by_key)
