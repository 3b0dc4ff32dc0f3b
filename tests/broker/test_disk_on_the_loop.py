"""A little is written and synced by the loop itself, where the disk is quick."""

import errno
import threading
from collections.abc import Sequence

import pytest
import trio
import trio.testing

from tests.broker.disks import (
    FakeJournal,
    FakeSync,
    fail,
    make_quick,
    no_descriptor,
    opened,
    record,
    wait,
)
from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.disk import open_disk_writer
from tidemark.partitions.storage.journal.records import JournalRecord
from tidemark.partitions.storage.refusals import SyncFailed


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


@pytest.mark.parametrize("is_alone", [False, True])
async def test_one_after_the_other_is_synced_on_the_loop_where_nobody_waits(is_alone: bool) -> None:
    threads = list[int]()
    async with opened(journal := FakeJournal()) as disk:
        await make_quick(disk)
        disk.is_alone = lambda: is_alone
        journal.sync_disk = lambda: threads.append(threading.get_ident())
        for number in range(2, 10):
            disk.write(number, [record(number)], lambda write: None)
            await disk.wait_durable(number)
    assert (set(threads) == {threading.get_ident()}) == is_alone


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


@pytest.mark.parametrize("is_told", [False, True])
async def test_a_mistake_on_the_loop_is_the_end_whoever_has_begun_the_turn(is_told: bool) -> None:
    """Of the journal, or of who is told."""

    def break_down() -> None:
        raise ValueError("a mistake")

    errors, journal = list[OSError](), FakeJournal()
    async with open_disk_writer(journal, turn=Turn(), failed=errors.append) as disk:
        await make_quick(disk)
        journal.sync_disk = (lambda: None) if is_told else break_down
        with pytest.raises(ValueError, match="a mistake"):
            disk.write(2, [record(2)], lambda write: break_down())
        assert errors == [disk.error]
        disk.write(3, [record(3)], lambda write: None)
    assert journal.groups == [[b"1"], [b"2"]]
    assert "a mistake" in str(errors[0])


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
        disk.write(2, [record(2)], lambda write: None)
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
        disk.write(2, [record(2)], lambda write: None)
        await disk.wait_durable(2)
    assert [error.errno for error in errors] == [errno.ENOSPC]
    assert tries == [1]


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
        assert journal.is_synced
    assert persisted == [2]
    assert journal.groups == [[b"1"], [b"2"]]


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
