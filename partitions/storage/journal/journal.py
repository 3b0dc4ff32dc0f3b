"""Writing the journal: blocks over files that are used again and again.

The first page of the first file is an empty block for ever, and blocks begin at a file's second
page: a journal of which a crash tore the only block would else look like one that was lost.

`put_off`, `write` and `sync` are for one thread, the writer's. The files are few and of one size;
one that is written over costs half of what a growing one does to sync. So the first is there before
the first record comes, and each further one is to be made while the one before it is being filled
(`wants_file`). When half of them are full, somebody else has to bring
`state.db` and the segments up to a mark (`needs_checkpoint`); then those before the mark are free.
If that takes its time there are more files for a while: the writer does not wait.
"""

import contextlib
from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Final, NamedTuple
from uuid import UUID

from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.journal.blocks import (
    PAGE_BYTES,
    Lsn,
    block_bytes,
    encode,
    pages_of,
)
from tidemark.partitions.storage.journal.making import (
    STAMP_PAGES,
    JournalFile,
    create,
    prepare,
    prewrite,
    stamp,
)
from tidemark.partitions.storage.journal.names import journal_files, journal_name
from tidemark.partitions.storage.journal.put_off import PutOff
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.refusals import was_not_asked, was_not_written
from tidemark.protocol.errors import StorageError

FILE_BYTES: Final = 16 * 1024 * 1024
FILES_MAX: Final = 8


class JournalStart(NamedTuple):
    """Where a journal goes on after a redo."""

    owner: UUID
    lsn: Lsn


class Journal:
    """The journal of one data directory, being written.

    After a failure nothing is written any more: nothing is known about the disk.
    """

    def __init__(
        self,
        files: Files,
        path: str,
        start: JournalStart,
        there: Sequence[JournalFile],
        *,
        file_bytes: int,
        files_max: int,
    ) -> None:
        """For `open`. None of the files that are there is needed any more; the first is stamped."""
        self._files = files
        self._path = path
        self._owner = start.owner
        self._file_pages = file_bytes // PAGE_BYTES
        self._files_max = files_max
        self._next = start.lsn
        self._synced = start.lsn
        self._lock = Lock()
        """Of the lists of files, and which one is written; the rest is the writer thread's."""
        self._free = list(there)
        self._full: list[JournalFile] = []
        self._unsynced: list[JournalFile] = []
        self._put_off = PutOff()
        self._preparing: str | None = None
        """The path of a file that is being made for later."""
        self._prepared_for: JournalFile | None = None
        """The file to which one that follows was made, or could not be made. Not twice."""
        self._active = self._take_file()
        self._failure: OSError | None = None

    @classmethod
    def open(
        cls,
        files: Files,
        path: str,
        start: JournalStart,
        *,
        file_bytes: int = FILE_BYTES,
        files_max: int = FILES_MAX,
    ) -> "Journal":
        """Begin anew behind all that a `redo` has taken care of. Blocking.

        Files that are there are written over; if there is none, the first is written once, so
        that it has its size. Raises `StorageError` if there is no room for it.
        """
        assert file_bytes % PAGE_BYTES == 0
        assert file_bytes >= 2 * PAGE_BYTES
        try:
            if not files.exists(path):
                files.make_directory(path)
                files.sync_directory(path.rpartition("/")[0])
            names = journal_files(files, path)
            for surplus in names[files_max:]:
                files.remove(f"{path}/{surplus}")
            there = [
                JournalFile(f"{path}/{name}", files.open(f"{path}/{name}"))
                for name in names[:files_max]
            ]
            first = there[0] if there else create(files, f"{path}/{journal_name(0)}")
            if first.file.size() < file_bytes:
                for _ in prewrite(first.file, file_bytes):
                    pass
            stamp(first.file, start.owner, start.lsn)
            # Also for names that a process made which did not live to sync them.
            files.sync_directory(path)
            first.is_new = False
        except OSError as error:
            raise StorageError(
                f"{path}: the journal needs {file_bytes} bytes to begin with: "
                f"{error.strerror or error}"
            ) from error
        return cls(files, path, start, there or [first], file_bytes=file_bytes, files_max=files_max)

    @property
    def needs_checkpoint(self) -> bool:
        """Whether half of the files wait to be free again. Any thread may ask."""
        return len(self._full) >= max(1, self._files_max // 2)

    @property
    def wants_file(self) -> bool:
        """Whether the file that is being filled is half full, and none is there to follow it. Any
        thread may ask."""
        active = self._active
        return (
            2 * active.page >= self._file_pages
            and not self._free
            and active is not self._prepared_for
            and len(self._full) + 1 < self._files_max
        )

    def prepare_file(self) -> None:
        """Make the file that follows. Blocking; for another thread than the writer's, which goes on
        meanwhile.

        Raises `OSError`. If it may pass (the disk is full) the writer makes the file itself, when
        it comes to that. Any other error is final, for the writer as well.
        """
        with self._lock:
            self._prepared_for = self._active
            path = self._preparing = self._unused_path()
        try:
            size_bytes = self._file_pages * PAGE_BYTES
            if self._files.space(self._path).free_bytes < self._files_max * size_bytes:
                return  # On a disk that is nearly full, nothing is taken before it is needed.
            prepared = prepare(self._files, path, size_bytes)
            with self._lock:
                self._free.append(prepared)
        finally:
            self._preparing = None

    @property
    def next_lsn(self) -> Lsn:
        """Where the next block will be. Any thread may ask."""
        return self._next

    def put_off(self, records: Sequence[JournalRecord]) -> bool:
        """Leave it to the next `write` to say what these say, if nothing is lost without them: what
        they rely on is on the disk. Whether it is left; if not, they are to be written."""
        self._refuse_after_failure()
        return self._put_off.take_in(records)

    def write(self, records: Sequence[JournalRecord], *, synced: bool = False) -> Lsn:
        """Write records in one block, or a few if they are more than a file holds, behind those
        that were put off. Blocking.

        Returns where the next block will be. They are durable after a `sync`, which has nothing to
        do if `synced` has them written and synced in one call, as it does where the file's name is
        durable and nothing else has to be. If it raises an `OSError` and it `was_not_written` (the
        disk is full, or there is no descriptor for the next file), it may be tried again; any other
        is final.
        """
        self._refuse_after_failure()
        records = self._put_off.before(records)
        for some in _split(records, (self._file_pages - STAMP_PAGES) * PAGE_BYTES):
            self._write_block(some, synced=synced)
        self._put_off.clear()
        return self._next

    def _write_block(self, records: Sequence[JournalRecord], *, synced: bool) -> None:
        pages = pages_of(block_bytes(records))
        try:
            if self._active.page > STAMP_PAGES and self._active.page + pages > self._file_pages:
                self._roll()
            active = self._active
            in_one_call = synced and not self._unsynced and not active.is_new
            write = active.file.pwritev_synced if in_one_call else active.file.pwritev
            parts = encode(self._owner, self._next, self._synced, records)
            write(parts, active.page * PAGE_BYTES)
        except OSError as error:
            if not was_not_written(error):
                self._failure = error
            raise
        active.page += pages
        active.end = self._next = Lsn(self._next + pages)
        if in_one_call:
            self._synced = self._next
        elif active not in self._unsynced:
            self._unsynced.append(active)

    def _roll(self) -> None:
        """Go on in another file."""
        with self._lock:
            # In one: a file that is being made must not be taken for one that nobody uses.
            active = self._take_file()
            self._full.append(self._active)
            self._active, self._prepared_for = active, None

    def _take_file(self) -> JournalFile:
        """A file that is not needed, or a new one, which grows as it is written."""
        taken = self._free.pop(0) if self._free else create(self._files, self._unused_path())
        taken.page = STAMP_PAGES
        return taken

    def _unused_path(self) -> str:
        used = {file.path for file in (*self._full, *self._free, self._active)} | {self._preparing}
        numbers = range(len(used) + 1)
        return next(p for n in numbers if (p := f"{self._path}/{journal_name(n)}") not in used)

    def sync(self, *, notes: bool = True) -> None:
        """Block until all that was written is on the disk; `notes` whether to `note_synced` then.

        An `OSError` is final, unless no sync has begun (`was_not_asked`).
        """
        self._refuse_after_failure()
        if not self._unsynced:
            return
        try:
            for file in self._unsynced:
                file.file.sync()
            if any(file.is_new for file in self._unsynced):
                self._files.sync_directory(self._path)
                for file in self._unsynced:
                    file.is_new = False
        except OSError as error:
            if not was_not_asked(error):
                self._failure = error
            raise
        self._unsynced = []
        self._synced = self._next
        if notes:
            self.note_synced()

    def note_synced(self) -> None:
        """Say on the next page that all before is durable, up to the last `sync`; the next block,
        which says it too, is written over it. Where that comes at once, it need not be said.

        It is not synced. But where it is found, a bad block before it is no torn tail, though no
        block may ever have followed.
        """
        note = encode(self._owner, self._next, self._synced, [])
        # Nothing depends on it. What is wrong with the disk, the next block will tell.
        with contextlib.suppress(OSError):
            if self._active.page >= self._file_pages:
                self._roll()
            self._active.file.pwritev(note, self._active.page * PAGE_BYTES)

    def begin_checkpoint(self) -> Lsn:
        """The mark: all records written so far are before it. Any thread may call it.

        What they changed is to be captured after this call, and is to be durable, in the segments
        and in `state.db`, before the mark is given to `checkpointed`.
        """
        return self._next

    def checkpointed(self, mark: Lsn) -> None:
        """Nothing before `mark` is needed any more. Any thread may call it."""
        with self._lock:
            done = [file for file in self._full if file.end <= mark]
            self._full = [file for file in self._full if file.end > mark]
            room = max(0, self._files_max - len(self._full) - len(self._free) - 1)
            kept, surplus = done[:room], done[room:]
            for file in kept:
                if file.file.size() > self._file_pages * PAGE_BYTES:
                    file.file.truncate(self._file_pages * PAGE_BYTES)
            self._free += kept
            for file in surplus:
                self._files.remove(file.path)

    def close(self) -> None:
        """Nothing is written: what counts is synced."""
        self._free, self._full, self._unsynced = [], [], []

    def _refuse_after_failure(self) -> None:
        if self._failure is not None:
            raise StorageError(
                f"{self._path}: the journal could not be written ({self._failure}); nothing is "
                "known about the disk since. Start the broker again"
            )


def _split(records: Sequence[JournalRecord], bytes_max: int) -> Iterator[Sequence[JournalRecord]]:
    """In order, and each no longer than a file; but a record is never parted."""
    if block_bytes(records) <= bytes_max:
        if records:
            yield records
        return
    some: list[JournalRecord] = []
    size_bytes = 0
    for record in records:
        length = block_bytes([record])
        if some and size_bytes + length > bytes_max:
            yield some
            some, size_bytes = [], 0
        some.append(record)
        size_bytes += length
    yield some
