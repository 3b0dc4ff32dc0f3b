"""Segments whose files are used again."""

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.names import LOG_SUFFIX
from tidemark.partitions.storage.recycled_file import RECYCLED_NAME
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
SIZE = 100
"""Of a batch's record; five batches to a segment."""
SETTINGS = LogSettings(segment_bytes=1000, recycled_batch_bytes=SIZE)


def fill(log: Log, segments: int) -> None:
    """Append until there are so many."""
    while log.segment_count < segments:
        log.append(batch(log.end_offset, size=SIZE))


def trimmed(files: MemoryFiles, settings: LogSettings = SETTINGS) -> tuple[Log, Removal]:
    """A log of three segments, synced, whose first one is to be removed."""
    log = Log.open(files, DIRECTORY, settings)
    return log, trimmed_again(files, log)


def trimmed_again(files: MemoryFiles, log: Log) -> Removal:
    fill(log, 3)
    log.sync()
    second = sorted(name for name in files.sizes(DIRECTORY) if name.endswith(LOG_SUFFIX))[1]
    return log.delete_before(Offset(int(second.removesuffix(LOG_SUFFIX))))


def is_kept(files: MemoryFiles) -> bool:
    return RECYCLED_NAME in files.sizes(DIRECTORY)
