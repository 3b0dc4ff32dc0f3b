"""The log on a real file system: what is appended is read back, in whole batches."""

from pathlib import Path

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.searches import find_timestamp, max_timestamp
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.os_files import OsFile, OsFiles
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.control import Marker, encode_marker
from tidemark.protocol.records.header import (
    HEADER_BYTES,
    build_batch,
    iter_headers,
    place,
    read_header,
)
from tidemark.protocol.types import Epoch, Offset, ProducerId


def open_log(directory: Path, recovery_point: int = 0, **settings: int) -> Log:
    return Log.open(
        OsFiles(),
        str(directory),
        LogSettings(**settings),
        recovery_point=Offset(recovery_point),
    )


def read_all(log: Log) -> bytes:
    parts, offset = [], log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, bytes_max=1000, end_offset=log.end_offset).read()
        parts.append(part)
        offset = Offset(offset + sum(h.record_count for _, h in iter_headers(part)))
    return b"".join(parts)


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = [batch(0, 3), batch(3), batch(4, 5)]
    for each in data:
        log.append(each)
    assert log.end_offset == 9
    assert log.read(Offset(0), bytes_max=10_000, end_offset=Offset(9)).read() == b"".join(data)


def test_a_read_starts_with_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = [batch(0, 3), batch(3, 3)]
    for each in data:
        log.append(each)
    assert log.read(Offset(4), bytes_max=10_000, end_offset=Offset(6)).read() == data[1]


def test_a_read_stops_before_the_end_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = [batch(0, 3), batch(3, 3)]
    for each in data:
        log.append(each)
    assert log.read(Offset(0), bytes_max=10_000, end_offset=Offset(5)).read() == data[0]
    assert len(log.read(Offset(3), bytes_max=10_000, end_offset=Offset(3))) == 0


def test_the_first_batch_is_given_whole_only_if_asked_for(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(0, size=500))
    log.append(batch(1, size=500))
    assert len(log.read(Offset(0), bytes_max=10, end_offset=Offset(2))) == len(batch(0, size=500))
    assert not log.read(Offset(0), bytes_max=10, end_offset=Offset(2), at_least_one=False)


def test_an_offset_outside_of_the_log_is_out_of_range(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(RequestError) as caught:
        log.read(Offset(1), bytes_max=10, end_offset=Offset(1))
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_reader_of_the_tail_goes_on_where_it_was_without_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    log.append(batch(0))
    log.append(batch(1))
    assert log.read(Offset(0), bytes_max=10_000, end_offset=Offset(2))
    monkeypatch.delattr(OsFile, "pread")
    for number in range(2, 6):
        log.append(batch(number))
        end = Offset(number + 1)
        assert len(log.read(Offset(number), bytes_max=10_000, end_offset=end)) == len(batch(0))


def test_the_second_reader_of_the_same_is_not_searched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    for number in range(3):
        log.append(batch(number))
    first = log.read(Offset(1), bytes_max=len(batch(0)), end_offset=Offset(3)).read()
    with monkeypatch.context() as patched:
        patched.delattr(OsFile, "pread")
        again = log.read(Offset(1), bytes_max=len(batch(0)), end_offset=Offset(3))
    assert again.read() == first == batch(1)


def test_where_a_reader_was_is_forgotten_when_the_log_is_cut(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(3):
        log.append(batch(number))
    log.read(Offset(0), bytes_max=10_000, end_offset=Offset(2))
    log.truncate(Offset(0))
    long = [batch(0, size=500), batch(1, size=500), batch(2, size=500)]
    for each in long:
        log.append(each)
    assert log.read(Offset(2), bytes_max=10_000, end_offset=Offset(3)).read() == long[2]
    log.truncate(Offset(2))
    assert not log.read(Offset(2), bytes_max=10_000, end_offset=Offset(3))


def test_several_batches_may_be_appended_at_once(tmp_path: Path) -> None:
    log = open_log(tmp_path, index_interval_bytes=0)
    log.append(batch(0, 3) + batch(3, 4) + batch(7))
    assert log.end_offset == 8
    assert log.read(Offset(7), bytes_max=1000, end_offset=Offset(8)).read() == batch(7)


def test_segments_roll_by_size_and_reads_go_across_them(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300)
    data = [batch(number, size=50) for number in range(20)]
    for each in data:
        log.append(each)
    assert log.segment_count == 10
    assert read_all(log) == b"".join(data)


def test_a_slice_outlives_the_removal_of_its_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=100)
    for number in range(3):
        log.append(batch(number, size=50))
    held = log.read(Offset(0), bytes_max=1000, end_offset=Offset(3))
    log.delete_before(Offset(1)).run()
    assert held.read() == batch(0, size=50)
    assert not (tmp_path / "00000000000000000000.log").exists()


def test_a_closed_log_opens_without_a_check(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=300)
    for number in range(20):
        log.append(batch(number, size=50))
    end_offset = log.close()
    again = open_log(tmp_path, recovery_point=end_offset, segment_bytes=300)
    assert again.recovery.clean
    assert again.recovery.checked_batches == 0
    assert (again.start_offset, again.end_offset) == (0, 20)
    again.append(batch(20))
    assert read_all(again)[-len(batch(20)) :] == batch(20)


def test_a_truncated_log_tells_once_more_what_is_in_it(tmp_path: Path) -> None:
    seen: list[int] = []
    log = Log.open(
        OsFiles(),
        str(tmp_path),
        LogSettings(segment_bytes=200),
        take_snapshot=lambda: b"%d" % len(seen),
    )
    for base_offset in range(9):
        log.append(batch(base_offset))
        seen.append(base_offset)
    log.sync()
    log.truncate(Offset(7))
    seen.clear()
    snapshots: list[bytes] = []
    log.observe(
        load_snapshot=snapshots.append, on_batch=lambda header: seen.append(header.base_offset)
    )
    assert len(snapshots) == 1
    assert seen == list(range(int(snapshots[0]), 7))
    assert 0 < len(seen) < 7


def test_what_a_batch_states_of_records_behind_the_end_does_not_count(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(0, records=2, timestamps_ms=[5, 5]))
    log.append(batch(2, records=2, timestamps_ms=[5, 9]))
    assert max_timestamp(log, end_offset=Offset(3)) == (5, 0)
    assert max_timestamp(log, end_offset=Offset(4)) == (9, 3)


def stating(timestamp_ms: int, made: bytes) -> bytes:
    """The batch with another largest timestamp in its header."""
    changed = read_header(made)._replace(max_timestamp=timestamp_ms)
    return build_batch(made[HEADER_BYTES:], changed)


@pytest.mark.parametrize("end", [5, 7])
def test_what_a_batch_overstates_hides_no_other_largest_timestamp(tmp_path: Path, end: int) -> None:
    log = open_log(tmp_path)
    log.append(batch(0, timestamps_ms=[5]))
    log.append(stating(90, batch(1, timestamps_ms=[6])))
    log.append(batch(2, timestamps_ms=[8]))
    log.append(stating(80, batch(3, timestamps_ms=[7])))
    log.append(batch(4, timestamps_ms=[5]))
    log.append(batch(5, records=3, timestamps_ms=[7, 7, 95]))
    assert max_timestamp(log, end_offset=Offset(end)) == (8, 2)
    assert max_timestamp(log, end_offset=Offset(8)) == (95, 7)


def test_a_marker_may_be_the_latest_and_is_not_what_a_time_finds(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(batch(0, records=2, timestamps_ms=[5, 7]))
    ended = bytearray(encode_marker(ProducerId(1), 0, Marker(True, 0), timestamp_ms=9))
    place(ended, 0, base_offset=Offset(2), epoch=Epoch(1))
    log.append(bytes(ended))
    log.append(batch(3, timestamps_ms=[8]))
    assert max_timestamp(log, end_offset=Offset(4)) == (9, 2)
    assert max_timestamp(log, end_offset=Offset(2)) == (7, 1)
    assert find_timestamp(log, 8, end_offset=Offset(4)) == (8, 3)
    assert find_timestamp(log, 9, end_offset=Offset(4)) is None
