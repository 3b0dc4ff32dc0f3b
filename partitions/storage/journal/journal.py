"""Writing the journal: blocks over files that are used again and again.

The first page of the first file is an empty block for ever, and blocks begin at a file's second
page: a journal of which a crash tore the only block would else look like one that was lost.

`put_off`, `write` and `sync` are for one thread, the writer's. Which files there are is the pool's
to say (`file_pool.py`).
"""

import contextlib
from collections.abc import Iterator, Sequence
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
from tidemark.partitions.storage.journal.file_pool import FilePool
from tidemark.partitions.storage.journal.making import STAMP_PAGES, JournalFile
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

    def __init__(self, files: Files, path: str, start: JournalStart, pool: FilePool) -> None:
        """For `open`."""
        self._files = files
        self._path = path
        self._owner = start.owner
        self._pool = pool
        self._next = start.lsn
        self._synced = start.lsn
        self._unsynced: list[JournalFile] = []
        self._put_off = PutOff()
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

        Raises `StorageError` if there is no room for its first file.
        """
        try:
            pool = FilePool.open(
                files, path, start.owner, start.lsn, file_bytes=file_bytes, files_max=files_max
            )
        except OSError as error:
            raise StorageError(
                f"{path}: the journal needs {file_bytes} bytes to begin with: "
                f"{error.strerror or error}"
            ) from error
        return cls(files, path, start, pool)

    @property
    def needs_checkpoint(self) -> bool:
        """As its files say. Any thread may ask."""
        return self._pool.needs_checkpoint

    @property
    def wants_file(self) -> bool:
        """As its files say. Any thread may ask."""
        return self._pool.wants_file

    def prepare_file(self) -> None:
        """Make the file that follows, as `FilePool.prepare`."""
        self._pool.prepare()

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
        for some in _split(records, (self._pool.file_pages - STAMP_PAGES) * PAGE_BYTES):
            self._write_block(some, synced=synced)
        self._put_off.clear()
        return self._next

    def _write_block(self, records: Sequence[JournalRecord], *, synced: bool) -> None:
        pages, pool = pages_of(block_bytes(records)), self._pool
        try:
            if pool.active.page > STAMP_PAGES and pool.active.page + pages > pool.file_pages:
                pool.roll()
            active = pool.active
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
            if self._pool.active.page >= self._pool.file_pages:
                self._pool.roll()
            active = self._pool.active
            active.file.pwritev(note, active.page * PAGE_BYTES)

    def begin_checkpoint(self) -> Lsn:
        """The mark: all records written so far are before it. Any thread may call it.

        What they changed is to be captured after this call, and is to be durable, in the segments
        and in `state.db`, before the mark is given to `checkpointed`.
        """
        return self._next

    def checkpointed(self, mark: Lsn) -> None:
        """Nothing before `mark` is needed any more. Any thread may call it."""
        self._pool.checkpointed(mark)

    def close(self) -> None:
        """Nothing is written: what counts is synced."""
        self._unsynced = []
        self._pool.close()

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
