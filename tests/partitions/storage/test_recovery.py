"""What opening a log accepts, repairs and refuses."""

from itertools import product
from random import Random

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.searches import find_timestamp, max_timestamp
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.storage.index import ENTRY, ENTRY_BYTES
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, NodeId, Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
SETTINGS = LogSettings(segment_bytes=400, index_interval_bytes=100)


def path(base_offset: int, suffix: str = ".log") -> str:
    return f"{DIRECTORY}/{base_offset:020d}{suffix}"


def open_log(files: MemoryFiles, recovery_point: int = 0, start_offset: int = 0) -> Log:
    return Log.open(
        files,
        DIRECTORY,
        SETTINGS,
        recovery_point=Offset(recovery_point),
        start_offset=Offset(start_offset),
    )


def closed_log(batches: int = 20) -> MemoryFiles:
    """A log of one-record batches in segments of four, closed in order."""
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    log = open_log(files)
    for number in range(batches):
        log.append(batch(number, size=20))
    log.close()
    return files


def flip(files: MemoryFiles, path: str, position: int) -> None:
    file = files.open(path)
    byte = file.pread(1, position)[0]
    file.pwrite(bytes([byte ^ 0x10]), position)


def contents(files: MemoryFiles) -> dict[str, bytes]:
    return {
        name: files.open(f"{DIRECTORY}/{name}").pread(size, 0)
        for name, size in files.sizes(DIRECTORY).items()
    }


def everything(log: Log) -> bytes:
    parts, offset = [], log.start_offset
    while offset < log.end_offset:
        # One batch at a time: they have one record each.
        parts.append(log.read(offset, bytes_max=1, end_offset=log.end_offset).read())
        offset = Offset(offset + 1)
    return b"".join(parts)


OVERSHOOTING = (0).to_bytes(4) + (3 * len(batch(0, size=20))).to_bytes(4)
"""An index entry that gives the first offset the place of the last batch."""

WHOLE = b"".join(batch(number, size=20) for number in range(20))
BATCH_BYTES = len(batch(0, size=20))


def test_segments_are_as_the_other_tests_expect() -> None:
    names = sorted(name for name in closed_log().sizes(DIRECTORY) if name.endswith(".log"))
    assert names == [f"{base:020d}.log" for base in (0, 4, 8, 12, 16)]


@pytest.mark.parametrize("field", [0, 9, 16])  # base offset, length, magic
@pytest.mark.parametrize("number", [0, 1, 3])
@pytest.mark.parametrize("segment", [0, 8, 16])
def test_a_header_that_is_wrong_below_the_recovery_point_is_refused(
    segment: int, number: int, field: int
) -> None:
    files = closed_log(21)
    flip(files, path(segment), number * BATCH_BYTES + field)
    before = contents(files)
    with pytest.raises(StorageError, match=rf"{segment:020d}\.log is corrupt at byte"):
        open_log(files, recovery_point=20)
    assert contents(files) == before


def test_a_wrong_crc_below_the_recovery_point_is_found_by_who_reads_it_not_by_the_start() -> None:
    """The start stays fast; `tidemark log verify` looks at every byte."""
    files = closed_log()
    flip(files, path(16), BATCH_BYTES - 1)
    assert open_log(files, recovery_point=20).recovery.clean


def test_corruption_in_the_middle_does_not_shorten_the_log() -> None:
    files = closed_log()
    flip(files, path(16), BATCH_BYTES + 5)
    before = contents(files)
    with pytest.raises(StorageError, match="corrupt at byte 88: offset") as caught:
        open_log(files, recovery_point=18)
    assert "tidemark log verify" in str(caught.value)
    assert contents(files) == before


def test_a_log_that_is_shorter_than_what_was_synced_is_refused() -> None:
    files = closed_log()
    files.open(path(16)).truncate(BATCH_BYTES)
    with pytest.raises(StorageError, match="ends at offset 17, but was on the disk up to 20"):
        open_log(files, recovery_point=20)


def test_a_missing_segment_is_refused_and_the_rest_left_untouched() -> None:
    files = closed_log()
    files.remove(path(8))
    before = {name for name in contents(files) if name.endswith(".log")}
    with pytest.raises(StorageError, match="ends at offset 8, the next segment begins at 12"):
        open_log(files, recovery_point=19)
    assert {name for name in contents(files) if name.endswith(".log")} == before


def test_what_was_cut_off_behind_the_recovery_point_is_cut_off_again() -> None:
    """The cut was not on the disk, the name of the segment that was begun then was."""
    files = closed_log()
    files.open(path(4)).pwrite(b"an old batch, say", 4 * BATCH_BYTES)
    before = contents(files)
    with pytest.raises(StorageError, match="is corrupt at byte"):
        open_log(files, recovery_point=9)
    assert contents(files) == before
    log = open_log(files, recovery_point=8)
    assert (log.end_offset, log.recovery.removed_segments) == (8, 3)
    log.append(batch(8, size=20))
    assert everything(log) == WHOLE[: 9 * BATCH_BYTES]


def test_so_it_is_where_nothing_is_behind_it_but_a_name() -> None:
    files = closed_log(4)
    files.create(path(4))
    files.open(path(0)).pwrite(b"an old batch, say", 4 * BATCH_BYTES)
    log = open_log(files, recovery_point=4)
    assert everything(log) == WHOLE[: 4 * BATCH_BYTES]
    assert (log.end_offset, log.recovery.removed_segments) == (4, 1)


def test_a_segment_below_the_recovery_point_does_not_end_before_it() -> None:
    for position in (2, 3):
        files = closed_log()
        flip(files, path(4), position * BATCH_BYTES)
        before = contents(files)
        with pytest.raises(StorageError, match="Nothing was changed"):
            open_log(files, recovery_point=8)
        assert contents(files) == before


def test_the_oldest_segment_may_be_gone_by_retention() -> None:
    files = closed_log()
    files.remove(path(0))
    assert open_log(files, start_offset=4, recovery_point=20).start_offset == 4


@pytest.mark.parametrize("recovery_point", [0, 3, 20])
def test_where_a_log_begins_may_have_been_in_what_the_journal_has_lost(recovery_point: int) -> None:
    files = closed_log()
    files.remove(path(0))
    log = Log.open(
        files,
        DIRECTORY,
        SETTINGS,
        recovery_point=Offset(recovery_point),
        may_begin_later=True,
    )
    assert (log.start_offset, log.end_offset) == (4, 20)
    assert everything(log) == WHOLE[4 * BATCH_BYTES :]


@pytest.mark.parametrize("recovery_point", [3, 19, 20])
def test_a_missing_first_segment_is_refused_and_the_rest_left_untouched(
    recovery_point: int,
) -> None:
    files = closed_log()
    files.remove(path(0))
    before = {name for name in contents(files) if name.endswith(".log")}
    with pytest.raises(StorageError, match="begins here, at offset 4, but was on the disk from 0"):
        open_log(files, recovery_point=recovery_point)
    assert {name for name in contents(files) if name.endswith(".log")} == before


def test_an_empty_directory_where_records_were_synced_is_refused() -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    with pytest.raises(StorageError, match="ends at offset 0, but was on the disk up to 5"):
        open_log(files, recovery_point=5)


def test_a_gap_above_the_recovery_point_ends_the_log() -> None:
    files = closed_log()
    files.remove(path(12))
    log = open_log(files, recovery_point=6)
    assert (log.end_offset, log.recovery.removed_segments) == (12, 1)
    assert log.recovery.cut is not None
    assert "ends at offset 12" in log.recovery.cut.what
    log.append(batch(12, size=20))
    assert everything(log) == WHOLE[: 13 * BATCH_BYTES]


def test_a_segment_torn_above_the_recovery_point_takes_those_behind_it_along() -> None:
    files = closed_log()
    flip(files, path(8), BATCH_BYTES * 2 + 70)
    log = open_log(files, recovery_point=6)
    assert (log.end_offset, log.recovery.removed_segments) == (10, 2)
    assert log.recovery.cut_bytes == 10 * BATCH_BYTES
    assert sorted(name for name in files.sizes(DIRECTORY) if name.endswith(".log")) == [
        f"{base:020d}.log" for base in (0, 4, 8)
    ]
    assert everything(log) == WHOLE[: 10 * BATCH_BYTES]


def test_a_segment_torn_at_its_first_byte_is_removed_whole() -> None:
    files = closed_log()
    flip(files, path(8), 0)
    log = open_log(files, recovery_point=6)
    assert (log.end_offset, log.recovery.removed_segments) == (8, 3)
    log.append(batch(8, size=20))
    assert everything(log) == WHOLE[: 9 * BATCH_BYTES]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("content", [None, b"", b"\0" * 24, b"\x7f" * 24, b"abc", OVERSHOOTING])
@pytest.mark.parametrize("recovery_point", [20, 19])
def test_indexes_that_are_missing_or_wrong_change_no_answer(
    suffix: str, content: bytes | None, recovery_point: int
) -> None:
    files = closed_log()
    for name in [name for name in files.sizes(DIRECTORY) if name.endswith(suffix)]:
        files.remove(f"{DIRECTORY}/{name}")
        if content is not None:
            files.create(f"{DIRECTORY}/{name}").pwrite(content, 0)
    log = open_log(files, recovery_point=recovery_point)
    assert everything(log) == WHOLE
    for offset in range(20):
        found = find_timestamp(log, 1000 + offset, end_offset=Offset(20))
        assert found == (1000 + offset, offset)
    log.append(batch(20, size=20))
    assert max_timestamp(log, end_offset=Offset(21)) == (1020, 20)


@pytest.mark.parametrize("moved", [1, BATCH_BYTES, -BATCH_BYTES, 1 << 30])
def test_an_entry_in_the_midst_of_an_index_that_is_wrong_changes_no_answer(moved: int) -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    log = Log.open(files, DIRECTORY, LogSettings(index_interval_bytes=0))
    for offset in range(10):
        log.append(batch(offset, size=20))
    log.close()
    index = files.open(path(0, ".index"))
    offset, position = ENTRY.unpack(index.pread(ENTRY_BYTES, 4 * ENTRY_BYTES))
    assert position == offset * BATCH_BYTES
    index.pwrite(ENTRY.pack(offset, position + moved), 4 * ENTRY_BYTES)
    log = open_log(files, recovery_point=10)
    for first in (offset - 1, offset, offset + 1):
        read = log.read(Offset(first), bytes_max=1, end_offset=Offset(10)).read()
        assert read == batch(first, size=20)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("is_appended_to", [False, True])
@pytest.mark.parametrize("latest_ms", [1004, 2000])
def test_a_flipped_bit_in_an_index_changes_no_answer(
    suffix: str, is_appended_to: bool, latest_ms: int
) -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    settings = LogSettings(index_interval_bytes=100)
    log = Log.open(files, DIRECTORY, settings)
    times = [1000, 1001, 1002, 1003, latest_ms, 1005, 1006, 1007, 1008, 1009]
    for offset, timestamp_ms in enumerate(times):
        log.append(batch(offset, size=20, timestamps_ms=[timestamp_ms]))
    log.close()
    name = path(0, suffix)
    for byte, bit in product(range(files.open(name).size()), (0, 3, 7)):
        flipped = files.after_kill()
        flipped.flip_bit(name, byte, bit)
        log = Log.open(flipped, DIRECTORY, settings, recovery_point=Offset(10))
        if is_appended_to:
            log.append(batch(10, size=20, timestamps_ms=[1000]))
        for offset, timestamp_ms in enumerate(times):
            read = log.read(Offset(offset), bytes_max=1, end_offset=Offset(10)).read()
            assert read == batch(offset, size=20, timestamps_ms=[timestamp_ms])
            first = next(n for n in range(10) if times[n] >= timestamp_ms)
            found = find_timestamp(log, timestamp_ms, end_offset=Offset(10))
            assert found == (times[first], first)
            before = times[: offset + 1]
            found = max_timestamp(log, end_offset=Offset(offset + 1))
            assert found == (max(before), before.index(max(before)))


def test_an_index_that_was_made_anew_is_the_one_that_grows() -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    settings = LogSettings(index_interval_bytes=0)
    log = Log.open(files, DIRECTORY, settings)
    for offset in range(10):
        log.append(batch(offset, size=20))
    log.close()
    flip(files, path(0, ".index"), 4 * ENTRY_BYTES + ENTRY_BYTES - 1)
    log = Log.open(files, DIRECTORY, settings, recovery_point=Offset(10))
    for offset in range(10, 20):
        log.append(batch(offset, size=20))
        assert log.read(Offset(5), bytes_max=1, end_offset=Offset(10)).read() == batch(5, size=20)
    log.close()
    index = files.open(path(0, ".index"))
    positions = [position for _, position in ENTRY.iter_unpack(index.pread(index.size(), 0))]
    assert positions == [number * BATCH_BYTES for number in range(1, 20)]


@pytest.mark.parametrize("byte", range(4))
def test_an_offset_that_is_far_away_is_damage(byte: int) -> None:
    files = closed_log()
    files.remove(path(0, ".index"))
    flip(files, path(0), 2 * BATCH_BYTES + byte)
    log = open_log(files, recovery_point=20)
    with pytest.raises(StorageError, match="is corrupt"):
        log.read(Offset(3), bytes_max=1, end_offset=Offset(20))


def test_leftovers_of_interrupted_writes_are_removed() -> None:
    files = closed_log()
    for name in (f"{8:020d}.index.tmp", f"{9:020d}.index", f"{9:020d}.timeindex"):
        files.create(f"{DIRECTORY}/{name}")
    files.create(f"{DIRECTORY}/partition.metadata")
    before = set(closed_log().sizes(DIRECTORY))
    assert everything(open_log(files, recovery_point=20)) == WHOLE
    assert set(files.sizes(DIRECTORY)) == before | {"partition.metadata"}


def test_segments_below_the_log_start_are_removed_even_with_a_gap_between_them() -> None:
    files = closed_log()
    files.remove(path(4))
    log = open_log(files, recovery_point=20, start_offset=9)
    assert (log.start_offset, log.segment_count) == (9, 3)
    assert path(0) not in files.sizes(DIRECTORY)


def test_a_log_that_begins_anew_believes_nothing_of_what_was_left() -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    for left in (path(0, ".index"), path(0, ".timeindex"), path(8, ".snapshot")):
        files.create(left)

    log = open_log(files)

    assert log.end_offset == 0
    assert set(files.sizes(DIRECTORY)) == {"00000000000000000000.log"}


class _NothingToRemove(MemoryFiles):
    """Files of which none may be removed."""

    def remove(self, path: str) -> None:
        raise AssertionError(f"{path} is to be removed")


def test_in_a_directory_that_is_empty_nothing_is_looked_for_to_be_removed() -> None:
    files = _NothingToRemove()
    files.make_directory(DIRECTORY)

    assert open_log(files).end_offset == 0


def test_a_log_that_a_crash_left_below_its_start_begins_anew_at_the_start() -> None:
    files = closed_log()
    for base in (12, 16):
        files.remove(path(base))
    log = open_log(files, recovery_point=4, start_offset=15)
    assert (log.start_offset, log.end_offset) == (15, 15)
    log.append(batch(15, size=20))
    log.sync()
    assert open_log(files, recovery_point=16, start_offset=15).end_offset == 16


def test_a_leader_epoch_that_goes_back_is_not_believed() -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    files.create(path(0)).pwrite(batch(0, epoch=3) + batch(1, epoch=2), 0)
    assert open_log(files).end_offset == 1


def test_a_leader_epoch_that_was_never_opened_is_not_believed() -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    files.create(path(0)).pwrite(batch(0, epoch=3) + batch(1, epoch=9), 0)
    log = Log.open(files, DIRECTORY, SETTINGS, epoch_max=Epoch(3))
    assert log.end_offset == 1


def test_a_clean_start_reads_a_few_headers_only() -> None:
    files = closed_log()
    seen: list[BatchHeader] = []
    log = Log.open(files, DIRECTORY, SETTINGS, recovery_point=Offset(20), on_batch=seen.append)
    assert log.recovery.clean
    assert [header.base_offset for header in seen] == list(range(20))


def test_a_tail_of_another_history_is_cut_by_its_epochs() -> None:
    """Batches of epoch 3 at an offset where, as the caller knows, epoch 5 begins."""
    files = MemoryFiles()
    files.make_directory("/p-0")
    log = Log.open(files, "/p-0", LogSettings())
    for data in (batch(0, epoch=1), batch(1, epoch=3), batch(2, epoch=3), batch(3, epoch=3)):
        log.append(data)
    log.close()
    config = Configuration((NodeId(1),))
    rows = [
        EpochStart(Epoch(epoch), Offset(start), NodeId(1), config)
        for epoch, start in ((1, 0), (2, 1), (3, 1), (5, 3))
    ]
    reopened = Log.open(files, "/p-0", LogSettings(), recovery_point=Offset(1), epochs=rows)
    assert reopened.end_offset == 3
    assert "leader epoch 3 did not reach to this offset" in str(reopened.recovery.cut)
    with pytest.raises(StorageError, match="leader epoch 3 did not reach"):
        Log.open(files, "/p-0", LogSettings(), recovery_point=Offset(2), epochs=rows[:1])


def test_epochs_before_the_first_that_is_kept_are_not_doubted() -> None:
    files = MemoryFiles()
    files.make_directory("/p-0")
    log = Log.open(files, "/p-0", LogSettings())
    for data in (batch(0, epoch=1), batch(1, epoch=3)):
        log.append(data)
    log.close()
    row = EpochStart(Epoch(3), Offset(1), NodeId(1), Configuration((NodeId(1),)))
    log = Log.open(files, "/p-0", LogSettings(), start_offset=Offset(1), epochs=[row])
    assert log.end_offset == 2


def test_batches_of_a_log_that_has_no_epoch_are_cut() -> None:
    """The crash took the first epoch's start, and left its batches in the page cache."""
    files = MemoryFiles()
    files.make_directory("/p-0")
    log = Log.open(files, "/p-0", LogSettings())
    log.append(batch(0, epoch=1))
    assert Log.open(files, "/p-0", LogSettings(), epochs=()).end_offset == 0


@pytest.mark.parametrize("recovery_point", [0, 6])
def test_what_a_failed_sync_left_in_the_page_cache_only_is_written_again(
    recovery_point: int,
) -> None:
    files = MemoryFiles()
    files.make_directory(DIRECTORY)
    files.sync_directory("/")
    log = open_log(files)
    for number in range(20):
        if number == recovery_point:
            log.sync()
        log.append(batch(number, size=20))
    files.failing_syncs = 1
    with pytest.raises(OSError, match="Input/output"):
        log.sync()
    seen = everything(log)
    killed = files.after_kill()
    end_offset = open_log(killed, recovery_point).sync()
    for seed in range(5):
        after = open_log(killed.after_crash(Random(seed)), recovery_point=end_offset)
        assert everything(after) == seen
