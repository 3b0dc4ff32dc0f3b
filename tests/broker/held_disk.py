"""A disk that does not come to writing, from some moment on, until it is let."""

from collections.abc import Sequence

import pytest

from tidemark.broker.replicas.disk import DiskWriter
from tidemark.partitions.storage.journal.group_commits import Persisted, Synced
from tidemark.partitions.storage.journal.records import JournalRecord


class HeldDisk:
    """Stands before the disk writers of a test: `hold` keeps what comes, `release` reports it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._is_held = False
        self._held: list[tuple[int, Persisted]] = []
        write = DiskWriter.write

        def write_unless_held(
            disk: DiskWriter,
            batch: int,
            records: Sequence[JournalRecord],
            persisted: Persisted,
            *,
            syncs: Sequence[Synced] = (),
            is_told: bool = False,
        ) -> None:
            if self._is_held:
                self._held.append((batch, persisted))
            else:
                write(disk, batch, records, persisted, syncs=syncs, is_told=is_told)

        monkeypatch.setattr(DiskWriter, "write", write_unless_held)

    def hold(self) -> None:
        self._is_held = True

    def release(self) -> None:
        """Report all that came as if it had been synced."""
        self._is_held = False
        held, self._held = self._held, []
        for batch, persisted in held:
            persisted(batch)
