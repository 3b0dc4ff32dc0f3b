"""The journal's files: which one is being filled, which are full, and which are free.

They are few and of one size; one that is written over costs half of what a growing one does to
sync. So the first is there before the first record comes, and each further one is to be made while
the one before it is being filled (`wants_file`). When half of them are full, somebody else has to
bring `state.db` and the segments up to a mark (`needs_checkpoint`); then those before the mark are
free. If that takes its time there are more files for a while: the writer does not wait.
"""

from collections.abc import Sequence
from threading import Lock
from uuid import UUID

from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.journal.blocks import PAGE_BYTES, Lsn
from tidemark.partitions.storage.journal.making import (
    STAMP_PAGES,
    JournalFile,
    create,
    prepare,
    prewrite,
    stamp,
)
from tidemark.partitions.storage.journal.names import journal_files, journal_name


class FilePool:
    """Of one journal. `roll` is for the writer's thread; all else may be asked by any."""

    def __init__(
        self,
        files: Files,
        path: str,
        there: Sequence[JournalFile],
        *,
        file_pages: int,
        files_max: int,
    ) -> None:
        """For `open`. None of the files that are there is needed any more; the first is stamped."""
        first, *others = there
        self._files = files
        self._path = path
        self.file_pages = file_pages
        self._files_max = files_max
        self._lock = Lock()
        self.active = _anew(first)
        """The one that is being filled."""
        self._free = others
        self._full: list[JournalFile] = []
        self._preparing: str | None = None
        """The path of a file that is being made for later."""
        self._prepared_for: JournalFile | None = None
        """The file to which one that follows was made, or could not be made. Not twice."""

    @classmethod
    def open(
        cls, files: Files, path: str, owner: UUID, lsn: Lsn, *, file_bytes: int, files_max: int
    ) -> "FilePool":
        """Files that are there are written over; if there is none, the first is written once, so
        that it has its size. Blocking. Raises `OSError` if there is no room for it."""
        assert file_bytes % PAGE_BYTES == 0
        assert file_bytes >= 2 * PAGE_BYTES
        if not files.exists(path):
            files.make_directory(path)
            files.sync_directory(path.rpartition("/")[0])
        names = journal_files(files, path)
        for surplus in names[files_max:]:
            files.remove(f"{path}/{surplus}")
        paths = [f"{path}/{name}" for name in names[:files_max]]
        there = [JournalFile(each, files.open(each)) for each in paths]
        first = there[0] if there else create(files, f"{path}/{journal_name(0)}")
        if first.file.size() < file_bytes:
            for _ in prewrite(first.file, file_bytes):
                pass
        stamp(first.file, owner, lsn)
        # Also for names that a process made which did not live to sync them.
        files.sync_directory(path)
        first.is_new = False
        pages = file_bytes // PAGE_BYTES
        return cls(files, path, there or [first], file_pages=pages, files_max=files_max)

    @property
    def needs_checkpoint(self) -> bool:
        """Whether half of the files wait to be free again."""
        return len(self._full) >= max(1, self._files_max // 2)

    @property
    def wants_file(self) -> bool:
        """Whether the file that is being filled is half full, and none is there to follow it."""
        active = self.active
        return (
            2 * active.page >= self.file_pages
            and not self._free
            and active is not self._prepared_for
            and len(self._full) + 1 < self._files_max
        )

    def prepare(self) -> None:
        """Make the file that follows. Blocking; for another thread than the writer's, which goes on
        meanwhile.

        Raises `OSError`. If it may pass (the disk is full) the writer makes the file itself, when
        it comes to that. Any other error is final, for the writer as well.
        """
        with self._lock:
            self._prepared_for = self.active
            path = self._preparing = self._unused_path()
        try:
            size_bytes = self.file_pages * PAGE_BYTES
            if self._files.space(self._path).free_bytes < self._files_max * size_bytes:
                return  # On a disk that is nearly full, nothing is taken before it is needed.
            prepared = prepare(self._files, path, size_bytes)
            with self._lock:
                self._free.append(prepared)
        finally:
            self._preparing = None

    def roll(self) -> None:
        """Go on in another file. Raises `OSError` if there is none, and none can be made."""
        with self._lock:
            # In one: a file that is being made must not be taken for one that nobody uses.
            active = self._take()
            self._full.append(self.active)
            self.active, self._prepared_for = active, None

    def checkpointed(self, mark: Lsn) -> None:
        """Nothing before `mark` is needed any more."""
        with self._lock:
            done = [file for file in self._full if file.end <= mark]
            self._full = [file for file in self._full if file.end > mark]
            room = max(0, self._files_max - len(self._full) - len(self._free) - 1)
            kept, surplus = done[:room], done[room:]
            for file in kept:
                if file.file.size() > self.file_pages * PAGE_BYTES:
                    file.file.truncate(self.file_pages * PAGE_BYTES)
            self._free += kept
            for file in surplus:
                self._files.remove(file.path)

    def close(self) -> None:
        self._free, self._full = [], []

    def _take(self) -> JournalFile:
        """A file that is not needed, or a new one, which grows as it is written."""
        return _anew(self._free.pop(0) if self._free else create(self._files, self._unused_path()))

    def _unused_path(self) -> str:
        used = {file.path for file in (*self._full, *self._free, self.active)} | {self._preparing}
        numbers = range(len(used) + 1)
        return next(p for n in numbers if (p := f"{self._path}/{journal_name(n)}") not in used)


def _anew(taken: JournalFile) -> JournalFile:
    taken.page = STAMP_PAGES
    return taken
