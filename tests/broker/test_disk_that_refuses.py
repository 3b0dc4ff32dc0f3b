"""What has no room, or no descriptor, is tried again by the thread."""

import errno
import threading
from collections.abc import Sequence
from functools import partial
from itertools import chain

import trio
import trio.testing

from tests.broker.disks import (
    FakeJournal,
    FakeSync,
    large,
    make_quick,
    never,
    no_descriptor,
    opened,
    record,
)
from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.disk import open_disk_writer
from tidemark.partitions.storage.journal.records import JournalRecord


class FullJournal(FakeJournal):
    """There is no room for what the loop writes."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = threading.get_ident()

    def write(self, records: Sequence[JournalRecord], *, synced: bool) -> None:
        if threading.get_ident() == self.loop:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().write(records, synced=synced)


async def test_who_waits_for_room_is_the_thread() -> None:
    journal, persisted = FullJournal(), list[int]()
    async with opened(journal) as disk:
        await make_quick(disk)
        disk.write(2, [record(2)], persisted.append)
        assert persisted == []
        await disk.wait_durable(2)
    assert persisted == [2]
    assert journal.groups == [[b"1"], [b"2"]]


class FillingJournal(FakeJournal):
    """There is room only for what somebody makes it for."""

    def __init__(self) -> None:
        super().__init__()
        self.reserve, self.room = 2, 0

    def make_room(self) -> bool:
        if self.reserve:
            self.reserve, self.room = self.reserve - 1, self.room + 1
            return True
        return False

    def write(self, records: Sequence[JournalRecord], *, synced: bool) -> None:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room -= 1
        super().write(records, synced=synced)


async def test_a_journal_without_room_is_given_some_of_the_reserve_at_once() -> None:
    journal, persisted, before_warnings = FillingJournal(), list[int](), list[list[int]]()

    def warn(error: OSError) -> None:
        before_warnings.append(list(persisted))
        journal.room = 1

    async with open_disk_writer(
        journal,
        turn=Turn(),
        failed=never,
        warn=warn,
        make_room=journal.make_room,
    ) as disk:
        for write in (1, 2, 3):
            disk.write(write, [record(write)], persisted.append)
            await disk.wait_durable(write)
    assert before_warnings == [[1, 2]], "only when nothing is left of it"


async def test_a_journal_without_a_descriptor_waits_and_leaves_the_reserve() -> None:
    journal, persisted, warned = FakeJournal(), list[int](), trio.Event()
    write, given = journal.write, list[bool]()

    def refuse(records: Sequence[JournalRecord], *, synced: bool) -> None:
        if not warned.is_set():
            raise OSError(errno.EMFILE, "Too many open files")
        write(records, synced=synced)

    def give() -> bool:
        given.append(True)
        return False

    journal.write = refuse  # type: ignore[method-assign]  # refuses at first
    async with open_disk_writer(
        journal,
        turn=Turn(),
        failed=never,
        warn=lambda error: warned.set(),
        make_room=give,
    ) as disk:
        disk.write(1, [record(1)], persisted.append)
        await disk.wait_durable(1)
    assert (persisted, given) == ([1], [])


async def test_a_sync_that_cannot_be_begun_is_begun_later() -> None:
    """Of a log's names, as of the journal's."""
    journal, persisted, warned = FakeJournal(), list[int](), trio.Event()

    def begin() -> None:
        if not warned.is_set():
            no_descriptor()

    async with open_disk_writer(
        journal, turn=Turn(), failed=never, warn=lambda error: warned.set()
    ) as disk:
        journal.sync_disk = begin
        disk.write(1, [record(1)], persisted.append)
        await disk.wait_durable(1)
        warned = trio.Event()
        disk.write(2, [record(2)], persisted.append, syncs=[FakeSync(begin)])
        await disk.wait_durable(2)
    assert persisted == [1, 2]
    assert journal.groups == [[b"1"], [b"2"]]


async def test_what_may_be_said_later_does_not_wait_for_room() -> None:
    """Nor does it ask for the reserve: nothing depends on it, and it comes with what follows."""
    journal, told, tries = FillingJournal(), list[int](), threading.Semaphore(0)
    journal.reserve, write = 0, journal.write

    def count(records: Sequence[JournalRecord], *, synced: bool) -> None:
        tries.release()
        write(records, synced=synced)

    journal.write = count  # type: ignore[method-assign]  # shows that it was tried
    async with opened(journal) as disk:
        disk.write(1, [large(1)], told.append, syncs=[FakeSync(lambda: None)])
        assert await trio.to_thread.run_sync(partial(tries.acquire, timeout=10))
        disk.write(2, [large(2)], told.append, syncs=[FakeSync(lambda: None)])
        await disk.wait_durable(2)
        journal.room = 2
        disk.write(3, [record(3)], told.append)
        await disk.wait_durable(3)
    assert told == [1, 2, 3]
    assert list(chain.from_iterable(journal.groups)) == [b"2", b"3"]
