"""The journal's files, made so that they cost little to write over.

To sync what a file has grown by, the file system writes its own journal, too, and all processes
wait for that one behind each other. A file that has all its blocks on the disk is written over,
and nothing but its bytes goes to the disk.
"""

from collections.abc import Iterator
from typing import Final

from tidemark.partitions.storage.files import File, Files, remove_if_there
from tidemark.partitions.storage.journal.blocks import FIRST_LSN, Lsn
from tidemark.partitions.storage.refusals import may_pass
from tidemark.protocol.values import dataclass

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
