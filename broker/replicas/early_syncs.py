"""A log's bytes go to the disk little by little, and not all of them at a checkpoint.

What is committed is in the journal; the same bytes lie in the page cache of the log's segments
until a checkpoint syncs them. If that were the first to do so it would find all that half of the
journal's files hold, and a commit that wants its sync meanwhile would wait until the disk has taken
that: a tenth of a second, now and then, for whoever produces then. So a log that has got much is
synced between checkpoints. Nothing is recorded of it: the checkpoint does what it always does, and
finds little to do.
"""

from __future__ import annotations

from typing import Final, Protocol

from tidemark.broker.replicas.disk import DiskWriter
from tidemark.broker.threads import in_thread
from tidemark.partitions.storage.journal.group_commits import Synced

EARLY_BYTES: Final = 2 * 1024 * 1024
"""So much of a log is synced together. Of many logs with little in each, none is: a sync each would
cost more than it spares."""


class Growing(Protocol):
    """A replica, as far as this needs one."""

    @property
    def is_available(self) -> bool: ...
    def begin_early_sync(self) -> Synced: ...


class EarlySyncs:
    """Which logs have got much, and their syncs. Used on the loop."""

    def __init__(self, disk: DiskWriter) -> None:
        self._disk = disk
        self._grown: dict[Growing, int] = {}
        """By so many bytes, since the last sync here."""
        self._due: dict[Growing, None] = {}

    def note(self, replica: Growing, size_bytes: int) -> bool:
        """Its log has got so much more; whether there is something to be synced now."""
        grown = self._grown.get(replica, 0) + size_bytes
        if grown < EARLY_BYTES:
            self._grown[replica] = grown
            return False
        self._grown[replica] = 0
        self._due[replica] = None
        return True

    def forget(self, replica: Growing) -> None:
        """Its files are closed or going away."""
        self._grown.pop(replica, None)
        self._due.pop(replica, None)

    async def run(self) -> None:
        """Sync what is due, one log after the other. A sync that fails ends the broker, as any."""
        due, self._due = self._due, {}
        for replica in due:
            if replica.is_available and self._disk.error is None:
                try:
                    await in_thread(replica.begin_early_sync().run)
                except OSError as error:
                    self._disk.fail(error)
