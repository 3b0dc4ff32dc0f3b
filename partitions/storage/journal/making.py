"""The journal's files, made so that they cost little to write over.

To sync what a file has grown by, the file system writes its own journal, too, and all processes
wait for that one behind each other. A file that has all its blocks on the disk is written over,
and nothing but its bytes goes to the disk.
"""

from collections.abc import Iterator
from typing import Final
from uuid import UUID

from tidemark.partitions.storage.files import File, Files, remove_if_there
from tidemark.partitions.storage.journal.blocks import (
    FIRST_LSN,
    PAGE_BYTES,
    Lsn,
    decode_header,
    encode,
    is_sound,
    table_end,
)
from tidemark.partitions.storage.refusals import may_pass
from tidemark.protocol.values import dataclass

STAMP_PAGES: Final = 1
"""Where the blocks of a file begin. In the first there is a stamp before."""

_PIECE_BYTES: Final = 256 * 1024


@dataclass(slots=True, eq=False)
class JournalFile:
    path: str
    file: File
    page: int = 0
    """Where the next block would be."""
    end: Lsn = FIRST_LSN
    """All blocks in it are before this."""
    is_new: bool = False
    """Its name may not be on the disk."""


def create(files: Files, path: str) -> JournalFile:
    """An empty one, which grows as it is written."""
    return JournalFile(path, files.create(path), is_new=True)


def prepare(files: Files, path: str, size_bytes: int) -> JournalFile:
    """One of full size, on the disk with its name. Blocking.

    Raises `OSError`. If that may pass (the disk is full), nothing is left of the file.
    """
    made = create(files, path)
    try:
        for _ in prewrite(made.file, size_bytes):
            # Little by little: a commit may wait for the same disk.
            made.file.sync()
        files.sync_directory(path.rpartition("/")[0])
    except OSError as error:
        if may_pass(error):
            remove_if_there(files, path)
        raise
    made.is_new = False
    return made


def prewrite(file: File, size_bytes: int) -> Iterator[None]:
    """Write zeros up to this size, a piece each time; they are to be synced."""
    zeros = bytes(min(_PIECE_BYTES, size_bytes))
    for position in range(file.size(), size_bytes, len(zeros)):
        file.pwrite(zeros[: size_bytes - position], position)
        yield


def stamp(file: File, owner: UUID, lsn: Lsn) -> None:
    """Let the first page be an empty block, on the disk, and all of the file with it. Blocking.

    That tells a journal in which nothing was ever written from one that was lost. Nothing of the
    file is needed any more, but a crash that tears the page must not leave one without a block: so
    what is there already stays until another page says the same.
    """
    if not _is_stamped(file, owner):
        empty, size_bytes = encode(owner, lsn, lsn, []), file.size()
        file.pwritev(empty, -(-size_bytes // PAGE_BYTES) * PAGE_BYTES)
        file.sync()
        file.pwritev(empty, 0)
        file.sync()
        file.truncate(size_bytes)
    # Also what a process wrote that did not live to sync it.
    file.sync()


def _is_stamped(file: File, owner: UUID) -> bool:
    page = file.pread(PAGE_BYTES, 0)
    found = decode_header(owner, page)
    if found is None:
        return False
    header, crc = found
    return header.record_count == 0 and is_sound(crc, page[: table_end(header)])
