"""Who may write while the disk is nearly full, and when that is looked at."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from tests.broker.clusters import wait_until
from tidemark.broker.replicas.room_watch import RoomWatch, room_to_start
from tidemark.partitions.storage.files import File, Space
from tidemark.partitions.storage.room import ALWAYS, DirectoryRoom
from tidemark.protocol.errors import StorageError
from tidemark.testing.memory_files import MemoryFiles

UNIT = 1 << 20
DISK = 64 * UNIT


class LookedAt(MemoryFiles):
    """Counts how often it is asked for its space."""

    def __init__(self, total_bytes: int = DISK) -> None:
        super().__init__()
        self.capacity_bytes = self.total_bytes = total_bytes
        self.looks = 0
        self.make_directory("/d")

    def space(self, directory: str) -> Space:
        self.looks += 1
        return super().space(directory)._replace(total_bytes=self.total_bytes)

    def leave(self, free_bytes: int) -> None:
        """Have somebody else take all but so much."""
        assert self.capacity_bytes is not None
        self.capacity_bytes += free_bytes - self.free_bytes()


@asynccontextmanager
async def watched(files: LookedAt, *, is_reserved: bool = True) -> AsyncIterator[RoomWatch]:
    room = DirectoryRoom(files, "/d")
    if is_reserved:
        room.take_reserve()
    watch = RoomWatch(room)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run)
        yield watch
        nursery.cancel_scope.cancel()


async def test_the_fuller_the_disk_the_more_often_it_is_looked_at(
    autojump_clock: MockClock,
) -> None:
    files = LookedAt(100 << 30)
    async with watched(files):
        looks = []
        for free_bytes in (50 << 30, 1 << 30, (336 - 16) * UNIT, 0):
            files.leave(free_bytes)
            await trio.sleep(11)
            files.looks = 0
            await trio.sleep(10)
            looks.append(files.looks)
    # Every 10 s; 2 s for a GiB; half a second for 256 MiB above the low mark; 0.25 s while full.
    assert looks[0] <= 2
    assert 4 <= looks[1] <= 6
    assert 18 <= looks[2] <= 21
    assert 39 <= looks[3] <= 41


async def test_a_write_that_found_no_room_is_looked_after_at_once(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    files = LookedAt()
    async with watched(files) as watch:
        await trio.sleep(2)
        files.leave(0)
        watch.look()
        assert watch.is_out
        with trio.fail_after(0.1):
            await watch.wait_out()
        (line,) = [each.getMessage() for each in caplog.records]
        assert "the disk of /d is full: 0 bytes are free" in line
        assert "tidemark topic delete" in line
        files.leave(20 * UNIT)
        await trio.sleep(1.2)
        with trio.move_on_after(5) as waiting:
            await watch.wait_out()
        assert waiting.cancelled_caught


def test_a_broker_that_fills_its_disk_by_itself_sees_it_between_two_looks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = LookedAt()
    watch = RoomWatch(DirectoryRoom(files, "/d"))
    rooms = (watch.of("orders"), watch.of("__consumer_offsets"))
    for room, low_bytes in zip(rooms, (5 * UNIT, UNIT // 2), strict=True):
        files.leave(20 * UNIT)
        watch.look()
        room.took((20 * UNIT - low_bytes) // 2)
        files.leave(0)
        seen = [room.is_out]
        room.took(1)
        assert [*seen, room.is_out] == [False, True]
        assert "the disk of /d is full: 0 bytes are free" in caplog.text


def test_the_metadata_are_never_refused_and_coordinators_last() -> None:
    files = LookedAt()
    files.leave(0)
    watch = RoomWatch(DirectoryRoom(files, "/d"))
    assert watch.of("__cluster") is ALWAYS
    assert watch.of("orders").is_out
    assert watch.of("__consumer_offsets") is watch.of("__transaction_state")
    assert watch.of("__consumer_offsets").is_out, "there is no reserve, either"


def test_a_start_without_room_is_told_what_to_do_and_one_with_room_why_it_failed() -> None:
    files = LookedAt()
    room = DirectoryRoom(files, "/d")
    with pytest.raises(StorageError, match=r"^is damaged$"), room_to_start(room, "/d"):
        raise StorageError("is damaged")
    files.leave(1000)
    what = r"/d is full: 1000 bytes are free, and a start needs some 1048576\..*\(no room\)$"
    with pytest.raises(StorageError, match=what), room_to_start(room, "/d"):
        raise OSError("no room. Restore it")


class NoAllocation(LookedAt):
    """A file system that cannot take room beforehand."""

    def create(self, path: str) -> File:
        raise OSError("not supported")


async def test_a_reserve_is_taken_after_the_start_or_it_is_said_why_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    files = LookedAt()
    taken, refused = watched(files, is_reserved=False), watched(NoAllocation(), is_reserved=False)
    async with taken as one, refused as other:
        await wait_until(lambda: files.sizes("/d") == {"reserve": UNIT})
        await wait_until(lambda: "the reserve of the disk cannot be taken" in caplog.text)
        assert not one.is_out
        assert not other.is_out
    assert "cannot be taken: not supported" in caplog.text
