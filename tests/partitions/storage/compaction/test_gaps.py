"""Gaps among what else goes by a log's offsets: truncation, recovery, reading, other replicas."""

from __future__ import annotations

import pytest

from tests.partitions.storage.compaction.keyed import (
    DIRECTORY,
    SETTINGS,
    batches,
    compact,
    keyed_batch,
    new_log,
    put,
    rows,
    seal,
    values,
)
from tests.partitions.storage.crashes import Crashes
from tests.partitions.storage.searches import find_timestamp
from tidemark.partitions.raft.entries import Configuration, EpochStart, Run
from tidemark.partitions.raft.messages import AppendRequest
from tidemark.partitions.replication.checking import bytes_of, checked
from tidemark.partitions.replication.reading import read_entries
from tidemark.partitions.storage.files import read_file
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.gaps import is_gap
from tidemark.protocol.records.header import HEADER_BYTES
from tidemark.protocol.types import Epoch, NodeId, Offset, Position
from tidemark.testing.memory_files import MemoryFiles

ALONE = Configuration((NodeId(1),))
ROWS = (EpochStart(Epoch(1), Offset(0), NodeId(1), ALONE),)


def gapped_log() -> tuple[MemoryFiles, Log]:
    """Offset 0, a gap from 1 to 9, offset 9, and a segment that is written to."""
    files, log = new_log()
    put(log, (b"first", b"1"))
    for number in range(9):
        put(log, (b"a", b"%d" % number))
    seal(log)
    compact(files, log)
    put(log, (b"open", b"1"))
    log.sync()
    assert [offset for offset, _, _ in rows(log)] == [0, 9, 10]
    return files, log


def opened(
    files: MemoryFiles, recovery_point: int, epochs: tuple[EpochStart, ...] | None = None
) -> Log:
    return Log.open(
        files, DIRECTORY, SETTINGS, recovery_point=Offset(recovery_point), epochs=epochs
    )


@pytest.mark.parametrize("offset", range(1, 12))
def test_a_log_ends_where_it_is_cut_within_a_gap_too(offset: int) -> None:
    files, log = gapped_log()
    log.truncate(Offset(offset))
    assert log.end_offset == offset
    log.append(keyed_batch(log, [(b"new", b"1")], epoch=2))
    log.sync()
    again = opened(files.after_kill(), log.end_offset)
    for found in (log, again):
        assert rows(found)[-1] == (offset, b"new", b"1")
    assert verify(files, DIRECTORY).is_sound


def test_a_reader_that_was_there_before_a_cut_within_a_gap_finds_what_came_since() -> None:
    files, log = gapped_log()
    log = opened(files, log.close())
    assert len(rows(log)) == 3  # its files are open for reading now
    log.truncate(Offset(5))
    put(log, (b"new", b"1"))
    seal(log)  # and is read by its name
    assert [(offset, key) for offset, key, _ in rows(log)] == [(0, b"first"), (5, b"new")]


def test_what_lies_before_a_cut_within_a_gap_stays_however_much_it_is() -> None:
    settings = LogSettings(segment_bytes=8 << 20, index_interval_bytes=100, retention_ms=-1)
    files, log = new_log(settings)
    large = {b"%d" % number: bytes([number]) * 1_000_000 for number in range(3)}
    put(log, *large.items())
    for number in range(9):
        put(log, (b"a", b"%d" % number))
    seal(log)
    compact(files, log)
    log.truncate(Offset(7))
    log.append(keyed_batch(log, [(b"new", b"1")], epoch=2))
    log.sync()
    assert values(log) == {**large, b"new": b"1"}
    assert verify(files, DIRECTORY).is_sound


def test_every_crash_leaves_a_log_before_the_cut_or_after_it() -> None:
    files, log = gapped_log()
    ends = set()

    def check(disk: MemoryFiles) -> None:
        left = opened(disk, 5)
        ends.add(left.end_offset)
        assert left.end_offset >= 5
        assert rows(left)[0] == (0, b"first", b"1")

    crashes = Crashes(files, check)
    log.truncate(Offset(5))
    crashes.now()
    assert crashes.disks > 5
    assert ends == {5, 10, 11}


def test_a_start_cuts_a_gap_where_the_journal_says_that_another_epoch_begins() -> None:
    files, log = gapped_log()
    log.close()
    went_on = (*ROWS, EpochStart(Epoch(2), Offset(5), NodeId(1), ALONE))
    again = opened(files, 5, went_on)
    assert again.end_offset == 5
    again.append(keyed_batch(again, [(b"new", b"1")], epoch=2))
    again.sync()
    assert rows(opened(files, 6, went_on)) == [(0, b"first", b"1"), (5, b"new", b"1")]


def test_a_gap_that_would_have_to_end_below_the_recovery_point_is_refused_and_left_alone() -> None:
    files, log = gapped_log()
    log.close()
    before = {name: read_file(files, f"{DIRECTORY}/{name}") for name in files.sizes(DIRECTORY)}
    another = (*ROWS, EpochStart(Epoch(2), Offset(5), NodeId(1), ALONE))
    with pytest.raises(StorageError, match="is corrupt at byte"):
        opened(files, 8, another)
    after = {name: read_file(files, f"{DIRECTORY}/{name}") for name in files.sizes(DIRECTORY)}
    assert after == before


def test_what_follows_a_gap_that_a_start_has_cut_is_found_by_its_time() -> None:
    files, log = gapped_log()
    log.close()
    went_on = (*ROWS, EpochStart(Epoch(2), Offset(5), NodeId(1), ALONE))
    again = opened(files, 5, went_on)
    again.append(keyed_batch(again, [(b"new", b"1")], epoch=2, timestamp_ms=2_000))
    found = find_timestamp(again, 2_000, end_offset=again.end_offset)
    assert found is not None
    assert found.offset == 5


@pytest.mark.parametrize("offset", range(11))
def test_a_reader_may_begin_anywhere(offset: int) -> None:
    _, log = gapped_log()
    found = log.read(Offset(offset), bytes_max=10_000, end_offset=log.end_offset)
    assert len(found)
    assert found.end_offset > offset


@pytest.mark.parametrize("end_offset", range(1, 12))
def test_a_slice_says_truly_where_it_ends(end_offset: int) -> None:
    _, log = gapped_log()
    found = log.read(Offset(0), bytes_max=10_000, end_offset=Offset(end_offset))
    headers = [header for header, _ in batches(log)]
    assert found.end_offset in {header.next_offset for header in headers}
    assert found.end_offset <= end_offset


@pytest.mark.parametrize("held", range(1, 10))
def test_a_replica_that_ends_within_the_gap_is_sent_the_rest_of_it(held: int) -> None:
    _, log = gapped_log()
    after, up_to = Position(Epoch(1), Offset(held)), Position(Epoch(1), log.end_offset)
    entries = read_entries(ROWS, log, {}, after, up_to, bytes_max=10_000)
    message = checked(AppendRequest(Epoch(1), after, entries, after), Epoch(1))
    assert isinstance(message, AppendRequest)
    run, *others = [entry for entry in message.entries if isinstance(entry, Run)]
    assert run.base_offset == held
    if 1 < held < 9:
        assert run.end_offset == 9
        assert len(bytes_of(run)) == HEADER_BYTES
        assert others[0].base_offset == 9
    # Whoever takes it has a log that joins.
    _, follower = new_log()
    for number in range(held):
        put(follower, (b"a", b"%d" % number))
    for entry in (run, *others):
        follower.append(bytes_of(entry))
    assert follower.end_offset == log.end_offset


def test_a_start_that_moves_into_a_gap_is_read_from() -> None:
    files, log = gapped_log()
    log.delete_before(Offset(4)).run()
    found = log.read(Offset(4), bytes_max=10_000, end_offset=log.end_offset)
    assert found.end_offset == 10
    end = log.close()
    again = Log.open(
        files, DIRECTORY, SETTINGS, start_offset=Offset(4), recovery_point=end, epochs=ROWS
    )
    assert again.start_offset == 4
    assert is_gap(batches(again)[0][0])
