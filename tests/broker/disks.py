"""A journal that holds syncs back, fails or has no room, and a disk writer over it."""

import errno
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from uuid import UUID

import trio

from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.disk import DiskWriter, open_disk_writer
from tidemark.partitions.storage.journal.put_off import PutOff
from tidemark.partitions.storage.journal.records import JournalRecord, RecordKind
from tidemark.partitions.storage.state_db import PartitionKey

KEY = PartitionKey(UUID(int=7), 0)


def record(number: int) -> JournalRecord:
    return JournalRecord(KEY, RecordKind.BATCHES, b"%d" % number)


def large(number: int) -> JournalRecord:
    """In place of batches that are large."""
    return JournalRecord(KEY, RecordKind.SYNCED, b"%d" % number)


class FakeJournal:
    """A journal whose sync can be held back, and can fail."""

    def __init__(self, sync: Callable[[], None] = lambda: None) -> None:
        self.groups = list[list[bytes]]()
        self.sync_disk = sync
        self.noted = threading.Event()
        self._put_off = PutOff()
        self.is_synced = True

    def put_off(self, records: Sequence[JournalRecord]) -> bool:
        return self._put_off.take_in(records)

    def write(self, records: Sequence[JournalRecord], *, synced: bool) -> None:
        assert synced, "as far as it can be in one call"
        payloads = [bytes(record.payload) for record in self._put_off.before(records)]
        self._put_off.clear()
        if payloads:
            self.groups.append(payloads)
            self.is_synced = False

    def sync(self, *, notes: bool) -> None:
        assert not notes, "who waits is told first"
        if not self.is_synced:
            self.sync_disk()
            self.is_synced = True

    def note_synced(self) -> None:
        self.noted.set()


def never(error: OSError) -> None:
    raise AssertionError(f"no sync fails here: {error}")


def opened(
    journal: FakeJournal,
    *,
    turn: Turn | None = None,
    observe: Callable[[float, int], None] = lambda seconds, writes: None,
) -> AbstractAsyncContextManager[DiskWriter]:
    return open_disk_writer(journal, turn=turn or Turn(), failed=never, observe=observe)


class FakeSync:
    """A log's files, which the journal relies on."""

    def __init__(
        self,
        done: Callable[[], None],
        subject: str = "log",
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self.begin, self.run = begin, done
        self.subject = subject


def fail() -> None:
    raise OSError(5, "Input/output error")


def no_descriptor() -> None:
    raise OSError(errno.EMFILE, "Too many open files")


def wait(gate: threading.Semaphore) -> None:
    assert gate.acquire(timeout=5)


async def make_quick(disk: DiskWriter) -> None:
    """The first group is the thread's; from then on it is known that the disk is quick."""
    disk.write(1, [record(1)], lambda write: None)
    await disk.wait_durable(1)
    await trio.sleep(0.1)  # many times what it took, and the thread has noted what it notes
