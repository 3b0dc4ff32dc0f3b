"""What is refused while hardly anything of the disk is free, and what the reserve is for."""

import errno
from collections.abc import Callable

import pytest

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.os_files import OsFiles
from tidemark.partitions.storage.room import ALWAYS, DirectoryRoom, OutOfRoom
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.records.header import read_header
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing.memory_files import MemoryFiles

UNIT = 1 << 20
"""What is reserved of a disk as small as this one."""
DISK = 32 * UNIT


@pytest.fixture
def files() -> MemoryFiles:
    files = MemoryFiles()
    files.capacity_bytes = DISK
    files.make_directory("/d")
    return files


def room_of(files: MemoryFiles) -> DirectoryRoom:
    """Of a broker that runs: with its reserve."""
    room = DirectoryRoom(files, "/d")
    room.take_reserve()
    room.look()
    return room


def leave(files: MemoryFiles, free_bytes: int) -> None:
    """Have somebody else take all but so much."""
    assert files.capacity_bytes is not None
    files.capacity_bytes += free_bytes - files.free_bytes()


def reserve_bytes(files: MemoryFiles) -> int:
    return files.sizes("/d").get("reserve", 0)


@pytest.mark.parametrize(
    ("disk_mib", "unit_mib"), [(1, 1), (64, 1), (256, 4), (1024, 16), (1 << 20, 16)]
)
def test_the_reserve_is_a_64th_of_the_disk_from_1_to_16_mib(
    files: MemoryFiles, disk_mib: int, unit_mib: int
) -> None:
    files.capacity_bytes = disk_mib << 20
    assert DirectoryRoom(files, "/d").unit_bytes == unit_mib << 20


def test_records_are_refused_below_five_units_and_taken_again_from_six(files: MemoryFiles) -> None:
    room = room_of(files)
    seen = []
    # What the reserve holds counts.
    for spare in (6 * UNIT, 5 * UNIT, 5 * UNIT - 1, 6 * UNIT - 1, 6 * UNIT, 5 * UNIT):
        leave(files, spare - UNIT)
        room.look()
        seen.append(room.records.is_out)
    assert seen == [False, False, True, True, False, False]


def test_coordinators_may_use_half_of_the_reserve(files: MemoryFiles) -> None:
    room = room_of(files)
    leave(files, 0)
    room.look()
    assert (room.records.is_out, room.coordinators.is_out) == (True, False)
    for _ in range(3):
        assert room.make_room()
        leave(files, 0)
    room.look()
    assert room.coordinators.is_out
    leave(files, UNIT)
    room.look()
    assert (room.records.is_out, room.coordinators.is_out) == (True, False)


def test_the_reserve_is_given_up_by_quarters_and_no_sooner_than_it_is_asked_for(
    files: MemoryFiles,
) -> None:
    room = room_of(files)
    leave(files, 0)
    room.look()
    assert reserve_bytes(files) == UNIT
    found = []
    while room.make_room():
        found.append(files.free_bytes())
    assert found == [UNIT // 4, UNIT // 2, UNIT * 3 // 4, UNIT]
    assert reserve_bytes(files) == 0


def test_the_reserve_is_taken_again_when_there_is_room(files: MemoryFiles) -> None:
    room = room_of(files)
    leave(files, 0)
    room.make_room()
    due = []
    for free_bytes in (0, 5 * UNIT - 1, 5 * UNIT):
        leave(files, free_bytes)
        room.look()
        due.append(room.is_reserve_due)
    assert due == [False, False, True]
    room.take_reserve()
    room.look()
    assert (reserve_bytes(files), room.is_reserve_due) == (UNIT, False)


def test_a_reserve_for_which_there_is_no_room_takes_none(files: MemoryFiles) -> None:
    room = DirectoryRoom(files, "/d")
    leave(files, UNIT // 2)
    with pytest.raises(OSError, match="No space left"):
        room.take_reserve()
    assert reserve_bytes(files) == 0
    assert not room.make_room()


def test_a_start_on_a_full_disk_is_given_half_a_unit_of_what_the_last_run_has_reserved(
    files: MemoryFiles,
) -> None:
    room_of(files)
    leave(files, 0)
    again = DirectoryRoom(files, "/d")
    assert again.is_nothing_free
    again.make_much_room()
    assert (files.free_bytes(), reserve_bytes(files)) == (UNIT // 2, UNIT // 2)
    again.make_much_room()
    assert reserve_bytes(files) == UNIT // 2, "there is enough"


def test_a_reserve_is_really_allocated(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("real")
    room = DirectoryRoom(OsFiles(), str(directory))
    room.take_reserve()
    found = (directory / "reserve").stat()
    assert found.st_size == room.unit_bytes
    assert found.st_blocks * 512 >= room.unit_bytes
    assert room.make_room()
    assert (directory / "reserve").stat().st_size == room.unit_bytes * 3 // 4


def test_a_log_that_is_out_of_room_takes_nothing_and_reads_on(files: MemoryFiles) -> None:
    files.make_directory("/d/p-0")
    log = Log.open(files, "/d/p-0", LogSettings())
    log.append(batch(0, size=20))
    room = room_of(files)
    log.room = room.records
    before = files.sizes("/d/p-0")
    leave(files, 2 * UNIT)
    room.look()
    one = batch(1, size=20)
    header = read_header(one)
    appends: list[Callable[[], object]] = [
        lambda: log.append(one),
        lambda: log.append(one + batch(2, size=20)),
        lambda: log.append_run([bytearray(one)], [header], Epoch(1)),
        lambda: log.append_placed(one, [header]),
        lambda: log.append_one(bytearray(one), header.batch_length, 0, 1, Epoch(1)),
    ]
    for append in appends:
        with pytest.raises(OutOfRoom, match="the disk of /d is full: 2097152 bytes") as caught:
            append()
        assert caught.value.errno == errno.ENOSPC
    assert (log.end_offset, files.sizes("/d/p-0")) == (1, before)
    assert log.read(Offset(0), bytes_max=1000, end_offset=Offset(1)).read() == batch(0, size=20)
    leave(files, 20 * UNIT)
    room.look()
    assert log.append(one) == 2


def test_the_disk_is_looked_at_before_appends_can_have_used_what_was_spare(
    files: MemoryFiles,
) -> None:
    files.make_directory("/d/p-0")
    log = Log.open(files, "/d/p-0", LogSettings())
    room = room_of(files)
    looks = []

    def look() -> None:
        room.look()
        looks.append(room.spare_bytes)

    log.room = room.records
    room.records.look = look
    offset = 0
    while not log.room.is_out:
        offset = log.append(batch(offset, size=100_000))
    # As if each were in the journal, too, which it is not here.
    assert 5 * UNIT - 200_000 < room.spare_bytes < 5 * UNIT
    assert len(looks) < offset / 10, "not with each append"
    assert looks[0] > DISK // 2 + 2 * UNIT, "half of what is spare"


def test_how_much_may_be_appended_is_no_matter_where_nobody_keeps_count() -> None:
    ALWAYS.took(1 << 60)
    assert not ALWAYS.is_out
