"""Files on which a broker is interrupted."""

from tidemark.testing.memory_files import MemoryFiles


class Interrupted(Exception):
    pass


class InterruptedFiles(MemoryFiles):
    """A disk whose machine loses power before its n-th sync."""

    def __init__(self, disk: MemoryFiles, syncs: int) -> None:
        super().__init__()
        self._root = disk._root
        self.syncs_left = syncs

    def sync_directory(self, path: str) -> None:
        self.count_down()
        super().sync_directory(path)

    def before_sync(self, path: str, node: object) -> None:
        self.count_down()

    def count_down(self) -> None:
        if self.syncs_left == 0:
            raise Interrupted
        self.syncs_left -= 1
