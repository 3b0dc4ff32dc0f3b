"""Each crash that a test has to go through."""

from __future__ import annotations

from collections.abc import Callable

from tests.partitions.storage.every_crash import every_crash
from tidemark.testing.memory_files import MemoryFiles


class Crashes:
    """Crashes a disk before each of its syncs, and looks at what is left."""

    def __init__(self, files: MemoryFiles, check: Callable[[MemoryFiles], None]) -> None:
        self.points = self.disks = 0
        self._files, self._check = files, check
        self._before_sync = files.before_sync
        files.before_sync = self._crash  # type: ignore[method-assign]  # a crash before each sync

    def now(self) -> None:
        """The disks that a crash leaves at this moment."""
        self.points += 1
        for disk in every_crash(self._files):
            self.disks += 1
            self._check(disk)

    def _crash(self, path: str, node: object) -> None:
        self.now()
        self._before_sync(path, node)  # type: ignore[arg-type]  # a node, handed through
