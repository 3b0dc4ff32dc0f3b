"""What has changed is saved: after the journal has it, all of it, and again where that failed."""

import errno
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import pytest
import trio
import trio.testing

from tests.broker.clusters import wait_until
from tests.partitions.storage.batches import batch
from tidemark.broker.network.turn import Turn
from tidemark.broker.replicas.checkpoints import Captured, Checkpoints
from tidemark.broker.replicas.disk import DiskWriter, open_disk_writer
from tidemark.broker.replicas.early_syncs import EARLY_BYTES
from tidemark.partitions.storage.files import File
from tidemark.partitions.storage.journal.blocks import FIRST_LSN
from tidemark.partitions.storage.journal.journal import Journal, JournalStart
from tidemark.partitions.storage.journal.records import batches
from tidemark.partitions.storage.left_groups import come_back, left_epochs
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.retention import Removal
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.state_db import PartitionKey, PartitionState, StateDb
from tidemark.partitions.storage.syncing import SyncCapture, TailSync
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing.memory_files import MemoryFiles

KEY = PartitionKey(UUID(int=7), 0)
DIRECTORY = "/data/t-0"


class FakeReplica:
    """A log, and what is to be recorded of it."""

    def __init__(self, files: MemoryFiles) -> None:
        self.key = KEY
        self.is_available = True
        self.flushes: list[bool] = []
        self.early_syncs = 0
        self.captures = 0
        self.retained: list[int] = []
        self.log = Log.open(files, DIRECTORY, LogSettings(segment_bytes=200))

    def capture(self) -> Captured:
        self.captures += 1
        return Captured(self.log.begin_sync(), PartitionState(key=KEY, name="t-0"))

    def begin_early_sync(self) -> TailSync:
        self.early_syncs += 1
        return self.log.begin_early_sync()

    def set_flush(self, *, syncs: bool) -> None:
        self.flushes.append(syncs)

    def retain(self) -> None:
        self.retained.append(self.log.segment_count)


class Bench:
    """A journal, a log and `state.db`, with what saves them."""

    def __init__(self, files: MemoryFiles, disk: DiskWriter, journal: Journal) -> None:
        self.files = files
        self.state = StateDb.open(":memory:")
        self.replica = FakeReplica(files)
        self.is_settled = True
        self.disk = disk
        self.journal = journal
        self.checkpoints = Checkpoints(
            journal=journal, state=self.state, disk=disk, is_settled=lambda: self.is_settled
        )

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            data = batch(self.replica.log.end_offset, size=50)
            self.replica.log.append(data)
            self.disk.write(self.disk.newest + 1, [batches(KEY, data)], lambda batch: None)
        self.checkpoints.note(self.replica)

    def recovery_point(self) -> Offset | None:
        stored = self.state.partition_state(KEY)
        return None if stored is None else stored.recovery_point


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with opened() as bench:
        yield bench


@asynccontextmanager
async def opened() -> AsyncIterator[Bench]:
    files = MemoryFiles()
    for path in ("/data", DIRECTORY):
        files.make_directory(path)
    files.sync_directory("/")
    files.sync_directory("/data")
    start = JournalStart(UUID(int=1), FIRST_LSN)
    journal = Journal.open(files, "/data/journal", start, file_bytes=1 << 16)
    failures = list[OSError]()
    async with open_disk_writer(journal, turn=Turn(), failed=failures.append) as disk:
        yield Bench(files, disk, journal)


async def test_a_checkpoint_records_what_is_on_the_disk_then(bench: Bench) -> None:
    bench.append(5)
    await bench.disk.wait_idle()
    await bench.checkpoints.checkpoint()
    assert bench.recovery_point() == 5
    assert bench.state.journal_start == bench.journal.next_lsn


async def test_nothing_is_recorded_before_the_journal_has_it(bench: Bench) -> None:
    bench.append()
    bench.disk.commits.newest += 1  # another batch, which the disk does not come to
    with trio.move_on_after(0.05) as waiting:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.checkpoints.checkpoint)
            await trio.sleep(0.02)
            assert bench.recovery_point() is None
            bench.disk.fail(OSError(errno.EIO, "gone"))
    assert not waiting.cancelled_caught
    assert bench.recovery_point() is None


async def test_a_log_that_always_has_much_is_saved_a_few_times_a_second(bench: Bench) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        began = trio.current_time()
        while bench.replica.captures < 3:
            bench.replica.log.append(batch(bench.replica.log.end_offset, size=50))
            bench.checkpoints.save_later(bench.replica)
            await trio.sleep(0.005)
        assert trio.current_time() - began >= 0.4
        end = bench.replica.log.end_offset
        await wait_until(lambda: bench.recovery_point() == end)  # what came last, too
        assert bench.replica.retained, "a segment was closed"
        nursery.cancel_scope.cancel()


async def test_a_log_that_is_about_to_be_cut_is_not_captured(bench: Bench) -> None:
    bench.append()
    bench.is_settled = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.checkpoint)
        await trio.sleep(0.02)
        assert bench.recovery_point() is None
        bench.is_settled = True
    assert bench.recovery_point() == 1


async def test_who_removes_a_replica_meanwhile_can_wait_for_its_row(bench: Bench) -> None:
    """It was captured before: what is removed from the database after that does not come back."""
    bench.append()
    bench.disk.commits.newest += 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.checkpoint)
        await trio.sleep(0.02)
        bench.replica.is_available = False
        bench.disk.commits.newest -= 1
        bench.disk.write(bench.disk.newest + 2, [], lambda batch: None)
        assert bench.recovery_point() is None
        await bench.checkpoints.wait_saved()
        assert bench.recovery_point() is not None


async def test_the_journal_is_not_used_again_before_the_epochs_of_what_left_are_recorded(
    bench: Bench,
) -> None:
    """A crash before it is forgotten finds a row of an earlier moment, and no journal."""
    bench.checkpoints.leave(bench.replica.key, Epoch(7))
    assert left_epochs(bench.state) == {}
    await bench.checkpoints.checkpoint()
    assert left_epochs(bench.state) == {bench.replica.key: 7}
    come_back(bench.state, [bench.replica.key])
    await bench.checkpoints.checkpoint()
    assert left_epochs(bench.state) == {}, "it is said once"
    bench.checkpoints.leave(bench.replica.key, Epoch(9))
    async with bench.checkpoints.end():
        assert left_epochs(bench.state) == {bench.replica.key: 9}


async def test_where_there_is_no_room_nothing_is_recorded_until_there_is(bench: Bench) -> None:
    bench.append(5)  # four segments are complete
    await bench.disk.wait_idle()
    bench.files.capacity_bytes = 0
    with pytest.raises(StorageError, match="No space left"):
        await bench.checkpoints.checkpoint()
    assert bench.recovery_point() is None
    assert bench.disk.error is None
    bench.files.capacity_bytes = None
    await bench.checkpoints.checkpoint()
    assert bench.recovery_point() == 5
    names = bench.files.sizes(DIRECTORY)
    assert sum(name.endswith(".index") for name in names) == 4


def captures() -> list[object]:
    """All that there are, garbage as well: each holds files."""
    return [each for each in gc.get_objects() if isinstance(each, SyncCapture)]


async def test_where_there_was_no_room_no_file_is_held_open(bench: Bench) -> None:
    """Or what retention removes then would free nothing."""
    bench.append(5)
    await bench.disk.wait_idle()
    bench.files.capacity_bytes = 0
    gc.collect()  # what other tests have left
    gc.disable()
    try:
        with pytest.raises(StorageError, match="No space left") as raised:
            await bench.checkpoints.checkpoint()
        del raised
        await wait_until(lambda: not captures(), 10)
    finally:
        gc.enable()


async def fill_half(bench: Bench) -> None:
    """Of the journal's file, so that it wants the next one."""
    while not bench.journal.wants_file:
        bench.append()
        await bench.disk.wait_idle()


async def test_the_journals_next_file_is_made_before_it_is_needed(bench: Bench) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        await trio.testing.wait_all_tasks_blocked()
        await fill_half(bench)
        bench.checkpoints.look()
        await wait_until(lambda: not bench.journal.wants_file)
        nursery.cancel_scope.cancel()
    assert set(bench.files.sizes("/data/journal").values()) == {1 << 16}
    assert len(bench.files.sizes("/data/journal")) == 2


async def test_a_journal_file_that_cannot_be_synced_is_the_end(bench: Bench) -> None:
    await fill_half(bench)
    bench.files.failing_syncs = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        bench.checkpoints.look()
        await wait_until(lambda: not bench.journal.wants_file)
        await bench.checkpoints.wait_saved()
        nursery.cancel_scope.cancel()
    assert bench.disk.error is not None


async def test_no_room_for_the_journals_next_file_is_not_the_end(bench: Bench) -> None:
    await fill_half(bench)
    bench.files.capacity_bytes = 1 << 16
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        bench.checkpoints.look()
        await wait_until(lambda: not bench.journal.wants_file)
        await bench.checkpoints.wait_saved()
        nursery.cancel_scope.cancel()
    assert bench.disk.error is None
    assert len(bench.files.sizes("/data/journal")) == 1


async def test_no_descriptor_for_the_journals_next_file_is_not_the_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> File:
        raise OSError(errno.EMFILE, "Too many open files")

    await fill_half(bench)
    monkeypatch.setattr(bench.files, "create", refuse)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        bench.checkpoints.look()
        await wait_until(lambda: not bench.journal.wants_file)
        await bench.checkpoints.wait_saved()
        nursery.cancel_scope.cancel()
    assert bench.disk.error is None


async def test_a_log_that_has_got_much_is_synced_before_the_checkpoint_comes(bench: Bench) -> None:
    segment = f"{DIRECTORY}/{0:020d}.log"
    bench.append()
    await bench.disk.wait_idle()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        bench.checkpoints.note(bench.replica, EARLY_BYTES - 1)
        await trio.testing.wait_all_tasks_blocked()
        assert segment not in bench.files.synced_paths, "of many logs with little, none is"
        bench.checkpoints.note(bench.replica, 1)
        await wait_until(lambda: segment in bench.files.synced_paths)
        nursery.cancel_scope.cancel()
    assert bench.replica.early_syncs == 1
    assert bench.recovery_point() is None, "that is the checkpoint's to say"


async def test_an_early_sync_that_fails_is_the_end(bench: Bench) -> None:
    """What the kernel has dropped then, no later sync would find."""
    bench.append()
    await bench.disk.wait_idle()
    bench.files.failing_syncs = 1
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        bench.checkpoints.note(bench.replica, EARLY_BYTES)
        await wait_until(lambda: bool(bench.replica.early_syncs))
        await bench.checkpoints.wait_saved()
        nursery.cancel_scope.cancel()
    assert bench.disk.error is not None
    with pytest.raises(StorageError, match="nothing is known about the disk"):
        await bench.checkpoints.checkpoint()
    assert bench.recovery_point() is None


async def test_nothing_is_synced_early_of_a_log_that_goes_away(bench: Bench) -> None:
    bench.append()
    bench.checkpoints.note(bench.replica, EARLY_BYTES)
    bench.checkpoints.forget(bench.replica)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert bench.replica.early_syncs == 0


async def test_a_sync_that_fails_is_the_end(bench: Bench) -> None:
    bench.append()
    await bench.disk.wait_idle()
    bench.files.failing_syncs = 1
    await bench.checkpoints.checkpoint()
    assert bench.disk.error is not None
    assert bench.recovery_point() is None


async def test_files_are_removed_once_the_batch_that_says_so_is_durable(bench: Bench) -> None:
    bench.append(5)
    await bench.disk.wait_idle()
    removal: Removal = bench.replica.log.delete_before(Offset(4))
    bench.checkpoints.remove_later(bench.disk.newest + 1, [removal])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        await trio.sleep(0.02)
        assert f"{0:020d}.log" in bench.files.sizes(DIRECTORY)
        bench.disk.write(bench.disk.newest + 1, [], lambda batch: None)
        await wait_until(lambda: f"{0:020d}.log" not in bench.files.sizes(DIRECTORY))
        nursery.cancel_scope.cancel()


async def test_files_are_removed_though_there_is_no_room_to_save_anything(bench: Bench) -> None:
    while not bench.journal.needs_checkpoint:
        bench.append()
        await bench.disk.wait_idle()
    removal: Removal = bench.replica.log.delete_before(Offset(1))
    bench.files.capacity_bytes = 0
    bench.checkpoints.remove_later(bench.disk.newest, [removal])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        with trio.fail_after(5):
            await wait_until(lambda: f"{0:020d}.log" not in bench.files.sizes(DIRECTORY))
        nursery.cancel_scope.cancel()
    assert bench.recovery_point() is None


async def test_files_that_cannot_be_removed_for_want_of_descriptors_are_removed_later(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(path: str) -> None:
        raise OSError(errno.EMFILE, "Too many open files", path)

    bench.append(5)
    await bench.disk.wait_idle()
    removal: Removal = bench.replica.log.delete_before(Offset(4))
    assert len(removal) > 1
    bench.checkpoints.remove_later(bench.disk.newest, [removal])
    async with trio.open_nursery() as nursery:
        with monkeypatch.context() as patch:
            patch.setattr(bench.files, "sync_directory", refuse)
            nursery.start_soon(bench.checkpoints.run)
            await wait_until(lambda: "cannot be removed now" in caplog.text)
        bench.checkpoints.save_later(bench.replica)  # whatever comes next
        last = f"{removal.segments[-1].base_offset:020d}.log"
        await wait_until(lambda: last not in bench.files.sizes(DIRECTORY))
        nursery.cancel_scope.cancel()
    assert bench.disk.error is None


async def test_a_sync_of_names_that_fails_after_files_were_removed_is_the_end(bench: Bench) -> None:
    """The name of a segment that is written to may be among them."""
    bench.append(5)
    await bench.disk.wait_idle()
    removal: Removal = bench.replica.log.delete_before(Offset(4))
    bench.files.failing_syncs = 1
    bench.checkpoints.remove_later(bench.disk.newest, [removal])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        await wait_until(lambda: bench.disk.error is not None)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("syncs", [True, False])
async def test_another_flush_holds_once_it_is_recorded(bench: Bench, syncs: bool) -> None:
    bench.append()
    bench.checkpoints.set_flush_later(bench.replica, syncs=syncs)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.run)
        await wait_until(lambda: bool(bench.replica.flushes))
        nursery.cancel_scope.cancel()
    assert bench.replica.flushes == [syncs]
    stored = bench.state.partition_state(KEY)
    assert stored is not None
    assert stored.is_journaled is syncs


async def test_after_its_end_nothing_is_saved(bench: Bench) -> None:
    bench.append()
    async with bench.checkpoints.end() as mark:
        assert mark == bench.journal.next_lsn
    await bench.checkpoints.checkpoint()
    assert bench.recovery_point() is None


async def test_the_end_waits_for_no_log_that_may_never_be_settled(bench: Bench) -> None:
    bench.append()
    bench.is_settled = False
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.checkpoints.checkpoint)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(5) as waiting:
            async with bench.checkpoints.end():
                assert bench.recovery_point() is None
        bench.is_settled = True
    assert not waiting.cancelled_caught
