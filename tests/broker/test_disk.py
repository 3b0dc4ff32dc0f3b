"""Groups are written by the thread, and told of in order."""

import errno
import threading
from collections.abc import Callable, Sequence
from functools import partial

import pytest
import trio
import trio.testing

from tests.broker.disks import (
    FakeJournal,
    FakeSync,
    fail,
    large,
    never,
    opened,
    record,
    wait,
)
from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas import writer_thread
from tidemark.broker.replicas.disk import DiskWriter, open_disk_writer
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.protocol.errors import StorageError


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


async def test_what_the_records_rely_on_is_synced_before_they_are_written() -> None:
    journal, written_before = FakeJournal(), list[int]()
    async with opened(journal) as disk:
        sync = FakeSync(lambda: written_before.append(len(journal.groups)))
        disk.write(1, [record(1)], lambda write: None, syncs=[sync])
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
            disk.write(number, [record(number)], lambda write: None, syncs=[sync])
        gate.release(2)
        await disk.wait_idle()
    assert synced[0] == "a1", "a group of its own, for nothing was being written"
    assert sorted(synced[1:]) == ["a3", "b4"]


async def test_the_disk_begins_with_several_logs_before_one_of_them_is_waited_for() -> None:
    gate, done = threading.Semaphore(0), list[str]()

    def sync_of(log: str) -> FakeSync:
        return FakeSync(partial(done.append, f"synced {log}"), log, partial(done.append, log))

    async with opened(FakeJournal(sync=lambda: wait(gate))) as disk:
        for number, logs in enumerate(("a", "b", "bc"), 1):
            syncs = [sync_of(log) for log in logs]
            disk.write(number, [record(number)], lambda write: None, syncs=syncs)
        gate.release(2)
        await disk.wait_idle()
    assert done == ["synced a", "b", "c", "synced b", "synced c"]


async def test_a_disk_that_cannot_begin_is_the_end() -> None:
    gate, errors = threading.Semaphore(0), list[OSError]()
    journal = FakeJournal(sync=lambda: wait(gate))
    async with open_disk_writer(journal, turn=Turn(), failed=errors.append) as disk:
        for number, log in enumerate("abc", 1):
            sync = FakeSync(lambda: None, log, fail)
            disk.write(number, [record(number)], lambda write: None, syncs=[sync])
        gate.release()
        await disk.wait_failed()
        assert disk.durable == 1
    assert errors == [disk.error]


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

    def come(write: int) -> None:
        sync = FakeSync(lambda: None)
        disk.write(3, [record(3)], lambda write: told.set(), syncs=[sync])

    disk.write(1, [record(1)], come)
    disk.write(2, [record(2)], lambda write: None)
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

    def tell(self, callback: Callable[[], None]) -> bool:
        is_woken = super().tell(callback)
        self.is_told.set()
        return is_woken


async def test_the_next_turn_hears_what_is_durable_whatever_it_is_for() -> None:
    """A loop with many requests would else answer the last ones late."""
    turn, said = WatchedTurn(), list[str]()
    async with opened(FakeJournal(), turn=turn) as disk:
        disk.write(1, [record(1)], lambda write: said.append(f"durable {write}"))
        assert turn.is_told.wait(10)
        turn.run(lambda: said.append("a request"))
        assert said == ["durable 1", "a request"]


async def test_a_mistake_of_who_is_told_is_the_end_whoever_has_begun_the_turn() -> None:
    """A request's turn would else answer it with an error, and the broker go on."""

    def break_down(write: int) -> None:
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

    def observe(seconds: float, writes: int) -> None:
        turns.append(turn.is_open)
        groups.append(writes)

    def wait_at_gate() -> None:
        gate.acquire()

    async with opened(FakeJournal(wait_at_gate), turn=turn, observe=observe) as disk:
        for number in range(1, 4):
            disk.write(number, [record(number), record(number)], persisted.append)
        gate.release(2)
        await disk.wait_durable(3)
    assert (persisted, groups, turns) == ([1, 3], [1, 2], [True, True])


async def test_a_write_is_waited_for_until_it_is_durable() -> None:
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
        disk.write(1, [record(1)], lambda write: None)
        await disk.wait_durable(1)
        assert await trio.to_thread.run_sync(journal.noted.wait, 10)


async def test_leaving_the_block_writes_what_is_queued() -> None:
    journal, persisted = FakeJournal(), list[int]()
    async with opened(journal) as disk:
        disk.write(7, [record(7)], persisted.append)
    assert journal.groups == [[b"7"]]
    assert persisted == [7]


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


async def test_what_may_be_said_later_comes_with_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The files of large batches are synced, and nothing else is waited for."""
    monkeypatch.setattr(writer_thread, "NOTE_SECONDS", 60)
    journal, told, written_before = FakeJournal(), list[int](), list[int]()
    async with opened(journal) as disk:
        for number in (1, 2):
            sync = FakeSync(lambda: written_before.append(len(told)))
            disk.write(number, [large(number)], told.append, syncs=[sync])
            await disk.wait_durable(number)
        assert (told, written_before, journal.groups) == ([1, 2], [0, 1], [])
        disk.write(3, [record(3)], told.append)
        await disk.wait_durable(3)
    assert told == [1, 2, 3]
    assert journal.groups == [[b"2", b"3"]]


async def test_what_may_be_said_later_is_said_once_nothing_follows() -> None:
    journal = FakeJournal()
    async with opened(journal) as disk:
        disk.write(1, [large(1)], lambda batch: None, syncs=[FakeSync(lambda: None)])
        assert await trio.to_thread.run_sync(journal.noted.wait, 10)
        assert journal.groups == [[b"1"]]
        assert journal.is_synced


@pytest.mark.parametrize("is_written", [False, True])
async def test_what_could_be_said_later_and_fails_is_the_end(*, is_written: bool) -> None:
    def break_down(records: Sequence[JournalRecord], *, synced: bool) -> None:
        fail()

    journal, errors, told = FakeJournal(fail), list[OSError](), list[int]()
    if not is_written:
        journal.write = break_down  # type: ignore[method-assign]  # the disk is broken
    async with open_disk_writer(journal, turn=Turn(), failed=errors.append) as disk:
        disk.write(1, [large(1)], told.append, syncs=[FakeSync(lambda: None)])
        with trio.fail_after(30):
            await disk.wait_failed()
    assert told == [1], "it was on the disk"
    assert errors == [disk.error]


async def test_what_could_be_said_later_is_left_where_the_loop_has_met_a_failure() -> None:
    """It has told of that: the thread would say it a second time, and in other words."""
    journal, told, tried = FakeJournal(), list[int](), threading.Event()

    def refuse(records: Sequence[JournalRecord], *, synced: bool) -> None:
        tried.set()
        raise StorageError("the journal could not be written")

    journal.write = refuse  # type: ignore[method-assign]  # as it does after a failure
    async with opened(journal) as disk:
        for number in (1, 2):
            disk.write(number, [large(number)], told.append, syncs=[FakeSync(lambda: None)])
            assert await trio.to_thread.run_sync(tried.wait, 10)
            await disk.wait_durable(number)
            tried.clear()
    assert told == [1, 2], "the thread lives"
