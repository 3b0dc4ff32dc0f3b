"""What an older segment has left behind a segment's end is told from damage."""

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.directories import files_with
from tidemark.partitions.storage.inspect import dump
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.names import LOG_SUFFIX, file_name
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.verify import verify
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY = "/p-0"
SETTINGS = LogSettings(segment_bytes=10_000, recycled_batch_bytes=100)
RECORD = 600
"""Bytes, of the batches of a segment that is written over."""


def written_over(records: int, size: int) -> tuple[MemoryFiles, Log]:
    """A log whose last segment has so many batches, in the file of one that is gone."""
    files = files_with(DIRECTORY)
    log = Log.open(files, DIRECTORY, SETTINGS)
    while log.segment_count < 3:
        log.append(batch(log.end_offset, size=RECORD))
    log.sync()
    log.delete_before(Offset(log.end_offset - 1)).run()
    while log.segment_count < 2:
        log.append(batch(log.end_offset, size=RECORD))
    for _ in range(records - 1):
        log.append(batch(log.end_offset, size=size))
    log.sync()
    return files, log


def last_segment(files: MemoryFiles) -> str:
    return (
        f"{DIRECTORY}/{max(name for name in files.sizes(DIRECTORY) if name.endswith(LOG_SUFFIX))}"
    )


@pytest.mark.parametrize("records", [1, 2, 5, 10])
@pytest.mark.parametrize("size", [RECORD, 100, 555, 780])
def test_tools_say_what_an_older_segment_has_left(records: int, size: int) -> None:
    files, log = written_over(records, size)
    found = verify(files, DIRECTORY)
    assert found.is_sound
    assert found.end_offset == log.end_offset
    (problem,) = (each for each in found.problems if each.path.endswith(LOG_SUFFIX))
    assert "an older segment has left" in problem.what
    dumped = list(dump(files, DIRECTORY))
    assert dumped[-1] == problem
    assert len(dumped) == log.end_offset - log.start_offset + 1


@pytest.mark.parametrize("size", [RECORD, 555])
def test_what_an_older_segment_has_left_is_not_counted_with_the_log(size: int) -> None:
    files, log = written_over(5, size)
    checked: list[int] = []
    found = verify(files, DIRECTORY, progress=checked.append)
    assert found.size_bytes == log.size_bytes
    in_files = sum(n for name, n in files.sizes(DIRECTORY).items() if name.endswith(LOG_SUFFIX))
    assert 0 < found.older_bytes == in_files - log.size_bytes
    assert sum(checked) == in_files


@pytest.mark.parametrize("byte", [1, 7, 10, 16, 19])
def test_damage_before_it_is_still_damage(byte: int) -> None:
    """In a base offset, which may be an older one then, a length, a magic and a CRC, with whole
    batches behind."""
    files, _ = written_over(6, RECORD)
    file = files.open(last_segment(files))
    position = 2 * len(batch(0, size=RECORD)) + byte
    file.pwrite(bytes([0 if byte == 7 else file.pread(1, position)[0] ^ 0x40]), position)
    assert not verify(files, DIRECTORY).is_sound


@pytest.mark.parametrize("size", [RECORD, 555])
def test_a_start_says_so(size: int) -> None:
    files, log = written_over(5, size)
    start, end = log.start_offset, log.end_offset
    again = Log.open(
        files.after_kill(), DIRECTORY, SETTINGS, start_offset=start, recovery_point=end
    )
    assert again.end_offset == end
    cut = again.recovery.cut
    assert cut is not None
    assert cut.is_older
    assert "an older segment has left" in cut.what
    assert again.recovery.cut_bytes > 2 * RECORD


def test_a_start_bears_one_whose_offsets_are_far_away() -> None:
    files, base = files_with(DIRECTORY), 2**31 + 5
    new = b"".join(batch(base + number, size=9000) for number in range(2))
    older = b"".join(batch(number, size=9000) for number in range(2, 4))
    files.create(f"{DIRECTORY}/{file_name(Offset(base), LOG_SUFFIX)}").pwrite(new + older, 0)
    point = Offset(base + 1)
    log = Log.open(files, DIRECTORY, SETTINGS, start_offset=Offset(base), recovery_point=point)
    assert log.end_offset == base + 2
    assert log.recovery.cut is not None
    assert log.recovery.cut.is_older


def test_a_torn_tail_is_none() -> None:
    files = files_with(DIRECTORY)
    log = Log.open(files, DIRECTORY, SETTINGS)
    for _ in range(4):
        log.append(batch(log.end_offset, size=RECORD))
    file = files.open(last_segment(files))
    file.truncate(file.size() - 1)
    again = Log.open(files.after_kill(), DIRECTORY, SETTINGS)
    assert again.recovery.cut is not None
    assert not again.recovery.cut.is_older
