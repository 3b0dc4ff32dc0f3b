"""A journal for tests: small files on a disk in memory, and what is read back from it."""

from uuid import UUID

from tidemark.partitions.storage.journal.blocks import FIRST_LSN, PAGE_BYTES, Lsn
from tidemark.partitions.storage.journal.journal import Journal, JournalStart
from tidemark.partitions.storage.journal.making import STAMP_PAGES
from tidemark.partitions.storage.journal.reader import ReadJournal
from tidemark.partitions.storage.journal.records import JournalRecord, batches
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.testing.memory_files import MemoryFiles

OWNER = UUID(int=99)
KEY = PartitionKey(UUID(int=7), 0)
OTHER = PartitionKey(UUID(int=7), 1)
PATH = "/journal"
FILE_PAGES = 8
BEGIN = STAMP_PAGES * PAGE_BYTES
"""Where the blocks of a file begin."""


def note(number: int, *, size: int = 20, key: PartitionKey = KEY) -> JournalRecord:
    """A record that can be told from others; its payload looks like nothing else's."""
    return batches(key, (b"record %d " % number).ljust(size, b"."))


def opened(
    files: MemoryFiles, lsn: Lsn = FIRST_LSN, *, file_pages: int = FILE_PAGES, files_max: int = 4
) -> Journal:
    return Journal.open(
        files,
        PATH,
        JournalStart(OWNER, lsn),
        file_bytes=file_pages * PAGE_BYTES,
        files_max=files_max,
    )


def read(files: MemoryFiles, lsn: Lsn = FIRST_LSN) -> ReadJournal:
    return ReadJournal(files, PATH, OWNER, lsn)


def payloads(files: MemoryFiles, lsn: Lsn = FIRST_LSN) -> list[bytes]:
    """What is in the journal, which must be in order."""
    journal = read(files, lsn)
    found = [bytes(record.payload) for record in journal.records()]
    assert not journal.damage
    return found
