import errno
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from uuid import UUID

import pytest
import trio
import trio.testing

from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.disk import DiskWriter, open_disk_writer
from tidemark.partitions.storage.journal.records import JournalRecord, RecordKind
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.state_db import PartitionKey

KEY = PartitionKey(UUID(int=7), 0)


def record(number: int) -> JournalRecord:
    return JournalRecord(KEY, RecordKind.BATCHES, b"%d" % number)


class FakeJournal:
    """A journal whose sync can be held back, and can fail."""

    def __init__(self, sync: Callable[[], None] = lambda: None) -> None:
        self.groups = list[list[bytes]]()
        self.sync_disk = sync
        self.noted = threading.Event()

    def write(self, records: Sequence[JournalRecord], *, synced: bool) -> None:
        assert synced, "as far as it can be in one call"
        self.groups.append([bytes(record.payload) for record in records])

    def sync(self, *, notes: bool) -> None:
        assert not notes, "who waits is told first"
        self.sync_disk()

    def note_synced(self) -> None:
        self.noted.set()


def never(error: OSError) -> None:
    raise AssertionError(f"no sync fails here: {error}")


def opened(
    journal: FakeJournal,
    *,
    turn: Turn | None = None,
    observe: Callable[[float, int], None] = lambda seconds, batches: None,
) -> AbstractAsyncContextManager[DiskWriter]:
    return open_disk_writer(journal, turn=turn or Turn(), failed=never, observe=observe)


async def test_what_comes_during_a_sync_is_one_group() -> None:
    gate, persisted = threading.Semaphore(0), list[int]()

    def wait_at_gate() -> None:
        gate.acquire()

    journal = FakeJournal(sync=wait_at_gate)
    async with opened(journal) as disk:
        for number in range(1, 50):
            disk.write(number, [record(number)], persisted.append)
        gate.release()
        gate.release()
        await disk.wait_idle()
    assert journal.groups == [[b"1"], [b"%d" % number for number in range(2, 50)]]
    assert persisted == [1, 49]


class FakeSync:
    """A log's files, which the journal relies on."""

    def __init__(self, done: Callable[[], None], subject: str = "log") -> None:
        self.run = done
        self.subject = subject


async def test_what_the_records_rely_on_is_synced_before_they_are_written() -> None:
    journal, written_before = FakeJournal(), list[int]()
    async with opened(journal) as disk:
        sync = FakeSync(lambda: written_before.append(len(journal.groups)))
        disk.write(1, [record(1)], lambda batch: None, syncs=[sync])
        await disk.wait_idle()
    assert written_before == [0]
    assert journal.groups == [[b"1"]]


async def test_a_log_is_synced_once_for_a_group_with_all_that_the_group_has_of_it() -> None:
    gate, synced = threading.Semaphore(0), list[str]()

    def wait_at_gate() -> None:
        gate.acquire()

    async with opened(FakeJournal(sync=wait_at_gate)) as disk:
        for number, log in enumerate("abab", 1):
            sync = FakeSync(partial(synced.append, f"{log}{number}"), log)
            disk.write(number, [record(number)], lambda batch: None, syncs=[sync])
        gate.release(2)
        await disk.wait_idle()
    assert synced[0] == "a1", "a group of its own, for nothing was being written"
    assert sorted(synced[1:]) == ["a3", "b4"]


async def test_the_disk_goes_on_with_what_is_large_while_the_loop_is_busy() -> None:
    """Handed over by the loop it would begin when that has time."""
    gate, journal, persisted, begun = threading.Event(), FakeJournal(), list[int](), list[int]()
    goes_on = threading.Event()

    def begin() -> None:
        begun.append(len(persisted))
        goes_on.set()

    def wait_at_gate() -> None:
        assert gate.wait(10)

    journal.sync_disk = wait_at_gate
    async with opened(journal) as disk:
        disk.write(1, [record(1)], persisted.append)
        disk.write(2, [record(2)], persisted.append, syncs=[FakeSync(begin)])
        gate.set()
        assert goes_on.wait(10), "the loop has done nothing else"
        assert (begun, persisted) == ([0], [])
        await disk.wait_durable(2)
    assert persisted == [1, 2]
    assert journal.groups == [[b"1"], [b"2"]]


def test_what_has_come_since_is_not_taken_before_what_was_handed_over() -> None:
    """However soon the loop hears what is durable, and hands over what waited for it."""
    gate, told, journal = threading.Event(), threading.Event(), FakeJournal()

    def wait_at_gate() -> None:
        assert gate.wait(10)

    journal.sync_disk = wait_at_gate
    disk = DiskWriter(journal, call_in_loop=lambda callback: callback(), failed=never)
    thread = disk.thread.start()

    def come(batch: int) -> None:
        sync = FakeSync(lambda: None)
        disk.write(3, [record(3)], lambda batch: told.set(), syncs=[sync])

    disk.write(1, [record(1)], come)
    disk.write(2, [record(2)], lambda batch: None)
    gate.set()
    assert told.wait(10)
    disk.thread.stop()
    thread.join(10)
    assert journal.groups == [[b"1"], [b"2"], [b"3"]]


class WatchedTurn(Turn):
    """It shows when another thread has told something."""

    __slots__ = ("is_told",)

    def __init__(self) -> None:
        super().__init__()
        self.is_told = threading.Event()

    def tell(self, callback: Callable[[], None]) -> None:
        super().tell(callback)
        self.is_told.set()


async def test_the_next_turn_hears_what_is_durable_whatever_it_is_for() -> None:
    """A loop with many requests would else answer the last ones late."""
    turn, said = WatchedTurn(), list[str]()
    async with opened(FakeJournal(), turn=turn) as disk:
        disk.write(1, [record(1)], lambda batch: said.append(f"durable {batch}"))
        assert turn.is_told.wait(10)
        turn.run(lambda: said.append("a request"))
        assert said == ["durable 1", "a request"]


async def test_a_mistake_of_who_is_told_is_the_end_whoever_has_begun_the_turn() -> None:
    """A request's turn would else answer it with an error, and the broker go on."""

    def break_down(batch: int) -> None:
        raise ValueError("a mistake")

    errors, turn, persisted = list[OSError](), WatchedTurn(), list[int]()
    async with open_disk_writer(FakeJournal(), turn=turn, failed=errors.append) as disk:
        disk.write(1, [record(1)], break_down)
        disk.write(2, [record(2)], persisted.append)
        assert turn.is_told.wait(10)
        with pytest.raises(ValueError, match="a mistake"):
            turn.run(lambda: None)
        assert "a mistake" in str(disk.error)
    assert errors == [disk.error]
    assert persisted == []


async def test_a_log_that_cannot_be_synced_is_the_end() -> None:
    def fail() -> None:
        raise OSError(errno.EIO, "gone")

    journal, persisted, failures = FakeJournal(), list[int](), list[OSError]()
    async with open_disk_writer(journal, turn=Turn(), failed=failures.append) as disk:
        disk.write(1, [record(1)], persisted.append, syncs=[FakeSync(fail)])
        await disk.wait_failed()
    assert [error.errno for error in failures] == [errno.EIO]
    assert (journal.groups, persisted) == ([], [])


async def test_a_group_is_reported_in_a_turn_and_once() -> None:
    gate, turn, turns = threading.Semaphore(0), Turn(), list[bool]()
    persisted, groups = list[int](), list[int]()

    def observe(seconds: float, batches: int) -> None:
        turns.append(turn.is_open)
        groups.append(batches)

    def wait_at_gate() -> None:
        gate.acquire()

    async with opened(FakeJournal(wait_at_gate), turn=turn, observe=observe) as disk:
        for number in range(1, 4):
            disk.write(number, [record(number), record(number)], persisted.append)
        gate.release(2)
        await disk.wait_durable(3)
    assert (persisted, groups, turns) == ([1, 3], [1, 2], [True, True])


async def test_a_batch_is_waited_for_until_it_is_durable() -> None:
    persisted = list[int]()
    async with opened(FakeJournal()) as disk:
        await disk.wait_durable(0)
        disk.write(1, [record(1)], persisted.append)
        assert disk.durable == 0
        await disk.wait_durable(1)
        assert disk.durable == 1


async def test_where_nothing_follows_the_journal_notes_that_all_is_synced() -> None:
    journal = FakeJournal()
    async with opened(journal) as disk:
        disk.write(1, [record(1)], lambda batch: None)
        await disk.wait_durable(1)
        assert await trio.to_thread.run_sync(journal.noted.wait, 10)


async def test_leaving_the_block_writes_what_is_queued() -> None:
    journal, persisted = FakeJournal(), list[int]()
    async with opened(journal) as disk:
        disk.write(7, [record(7)], persisted.append)
    assert journal.groups == [[b"7"]]
    assert persisted == [7]


def fail() -> None:
    raise OSError(5, "Input/output error")


async def test_after_a_failed_sync_nothing_is_ever_reported_durable() -> None:
    errors, persisted = list[OSError](), list[int]()
    journal = FakeJournal(sync=fail)
    async with open_disk_writer(journal, turn=Turn(), failed=errors.append) as disk:
        disk.write(1, [record(1)], persisted.append)
        await disk.wait_idle()
        journal.sync_disk = lambda: None
        disk.write(2, [record(2)], persisted.append)
        await trio.testing.wait_all_tasks_blocked()
        await disk.wait_durable(2)
        assert disk.error is errors[0]
        assert len(errors) == 1
    assert persisted == []
    assert journal.groups == [[b"1"]]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_thread_that_breaks_by_a_mistake_is_the_end_too() -> None:
    """Else the broker would go on, and nothing would ever be durable."""

    def break_down() -> None:
        raise ValueError("a mistake")

    errors, persisted = list[OSError](), list[int]()
    journal = FakeJournal(sync=break_down)
    async with open_disk_writer(journal, turn=Turn(), failed=errors.append) as disk:
        disk.write(1, [record(1)], persisted.append)
        with trio.fail_after(30):
            await disk.wait_failed()
    assert "a mistake" in str(errors[0])
    assert persisted == []


# On the loop


def wait(gate: threading.Semaphore) -> None:
    assert gate.acquire(timeout=5)


async def make_quick(disk: DiskWriter) -> None:
    """The first group is the thread's; from then on it is known that the disk is quick."""
    disk.write(1, [record(1)], lambda batch: None)
    await disk.wait_durable(1)
    await trio.sleep(0.1)  # many times what it took, and the thread has noted what it notes


async def test_a_little_on_a_quick_disk_is_durable_when_it_is_handed_over() -> None:
    journal, turn, said, threads = FakeJournal(), Turn(), list[object](), list[int]()
    journal.sync_disk = lambda: threads.append(threading.get_ident())
    async with opened(journal, turn=turn) as disk:
        await make_quick(disk)
        journal.noted.clear()

        def write() -> None:
            disk.write(2, [record(2)], said.append)
            turn.after(lambda: said.append(journal.noted.is_set()))

        turn.run(write)
        assert disk.durable == 2
    assert threads[1:] == [threading.get_ident()]
    assert said == [2, False], "the journal's note comes last"
    assert journal.noted.is_set()
    assert journal.groups == [[b"1"], [b"2"]]


async def test_what_others_were_told_of_does_not_hold_the_loop() -> None:
    """They may be a majority before this disk is done; then the loop is to hear of it."""
    gate, journal, persisted = threading.Semaphore(0), FakeJournal(), list[int]()
    async with opened(journal) as disk:
        await make_quick(disk)
        journal.sync_disk = lambda: wait(gate)
        disk.write(2, [record(2)], persisted.append, is_told=True)
        told_at_once = list(persisted)
        gate.release(10)
        await disk.wait_durable(2)
    assert told_at_once == []
    assert persisted == [2]


async def test_a_sync_that_fails_on_the_loop_is_the_end_too() -> None:
    errors, persisted, journal = list[OSError](), list[int](), FakeJournal()
    async with open_disk_writer(journal, turn=Turn(), failed=errors.append) as disk:
        await make_quick(disk)
        journal.sync_disk = fail
        disk.write(2, [record(2)], persisted.append)
        assert [error.errno for error in errors] == [errno.EIO]
        journal.sync_disk = lambda: None
        disk.write(3, [record(3)], persisted.append)
        await trio.testing.wait_all_tasks_blocked()
    assert persisted == []
    assert journal.groups == [[b"1"], [b"2"]]


async def test_a_full_sync_is_no_full_disk() -> None:
    """What was written may be lost: to write it again would not tell."""

    def no_room() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    errors, journal = list[OSError](), FakeJournal()
    async with open_disk_writer(journal, turn=Turn(), failed=errors.append) as disk:
        await make_quick(disk)
        journal.sync_disk = no_room
        disk.write(2, [record(2)], lambda batch: None)
        assert [error.errno for error in errors] == [errno.ENOSPC]


@pytest.mark.parametrize("is_quick", [False, True])
async def test_a_write_whose_sync_was_full_is_not_tried_again(is_quick: bool) -> None:
    """By the thread, and by the loop where the disk is quick."""

    def refuse(records: Sequence[JournalRecord], *, synced: bool) -> None:
        tries.append(len(records))
        if len(tries) == 1:
            raise SyncFailed(errno.ENOSPC, "No space left on device")

    errors, tries, journal = list[OSError](), list[int](), FakeJournal()
    async with open_disk_writer(journal, turn=Turn(), failed=errors.append) as disk:
        if is_quick:
            await make_quick(disk)
        journal.write = refuse  # type: ignore[method-assign]  # from now on
        disk.write(2, [record(2)], lambda batch: None)
        await disk.wait_durable(2)
    assert [error.errno for error in errors] == [errno.ENOSPC]
    assert tries == [1]


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
        for batch in (1, 2, 3):
            disk.write(batch, [record(batch)], persisted.append)
            await disk.wait_durable(batch)
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


def no_descriptor() -> None:
    raise OSError(errno.EMFILE, "Too many open files")


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


async def test_what_the_loop_has_written_the_thread_only_syncs() -> None:
    journal, persisted, loop = FakeJournal(), list[int](), threading.get_ident()

    def begin() -> None:
        if threading.get_ident() == loop:
            no_descriptor()

    async with opened(journal) as disk:
        await make_quick(disk)
        journal.sync_disk = begin
        disk.write(2, [record(2)], persisted.append)
        assert persisted == []
        await disk.wait_durable(2)
    assert persisted == [2]
    assert journal.groups == [[b"1"], [b"2"], []]


async def test_the_thread_syncs_what_others_keep_the_disk_busy_with() -> None:
    journal, persisted = FakeJournal(), list[int]()
    async with opened(journal) as disk:
        await make_quick(disk)
        sync = FakeSync(lambda: None)
        with disk.others():
            disk.write(2, [record(2)], persisted.append)
            assert persisted == []
            await disk.wait_durable(2)
        await trio.sleep(0.1)
        disk.write(3, [record(3)], persisted.append, syncs=[sync])
        assert persisted == [2]
        await disk.wait_durable(3)


async def test_nothing_is_written_on_the_loop_while_the_thread_uses_the_journal() -> None:
    gate, at_gate, persisted = threading.Semaphore(0), threading.Event(), list[int]()
    journal = FakeJournal()
    async with opened(journal) as disk:
        await make_quick(disk)

        def note_slowly() -> None:
            at_gate.set()
            gate.acquire(timeout=5)

        journal.note_synced = note_slowly  # type: ignore[method-assign]  # the thread's, this time
        with disk.others():
            disk.write(2, [record(2)], persisted.append)
        assert await trio.to_thread.run_sync(at_gate.wait, 10)
        await trio.sleep(0.1)
        disk.write(3, [record(3)], persisted.append)
        told = list(persisted)
        gate.release(10)
        await disk.wait_durable(3)
    assert told == [2]
