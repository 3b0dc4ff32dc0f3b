"""How many segments retention removes where clocks were ahead, against the plain definition."""

from collections.abc import Sequence
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.testing.memory_files import MemoryFiles

DIRECTORY: Final = "/p-0"
NOW: Final = 1_000
BATCH_BYTES: Final = len(batch(0, size=20))


class CountingFiles(MemoryFiles):
    """Knows how often a file's time was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.times_asked = 0

    def modified_ms(self, path: str) -> int:
        self.times_asked += 1
        return super().modified_ms(path)


def one_batch_a_segment(
    times: Sequence[tuple[int, int]], settings: LogSettings
) -> tuple[Log, CountingFiles]:
    """`times`: of each batch the one that it states, and of the clock that wrote it."""
    files = CountingFiles()
    files.make_directory(DIRECTORY)
    log = Log.open(files, DIRECTORY, settings)
    for stated_ms, files.now_ms in times:
        log.append(batch(log.end_offset, size=20, timestamps_ms=[stated_ms]))
    files.times_asked = 0
    return log, files


def removed_by_definition(times: Sequence[tuple[int, int]], settings: LogSettings) -> int:
    """Of all but the last batch, which is written to."""
    for number, (stated_ms, written_ms) in enumerate(times[:-1]):
        kept_bytes = (len(times) - number - 1) * BATCH_BYTES
        if 0 <= settings.retention_bytes <= kept_bytes:
            continue
        last_ms = written_ms if stated_ms < 0 else min(stated_ms, written_ms)
        if last_ms > NOW:
            last_ms = min([last_ms, *(written for _, written in times[number + 1 :])])
        if settings.retention_ms < 0 or NOW - last_ms <= settings.retention_ms:
            return number
    return len(times) - 1


around_now = st.integers(NOW - 20, NOW + 20)


@given(
    times=st.lists(st.tuples(around_now | st.just(-1), around_now), min_size=1, max_size=12),
    retention_ms=st.integers(-1, 15),
    retention_batches=st.integers(1, 12) | st.none(),
)
def test_as_many_go_as_by_the_definition(
    times: list[tuple[int, int]], retention_ms: int, retention_batches: int | None
) -> None:
    settings = LogSettings(
        segment_bytes=BATCH_BYTES,
        segment_ms=2**60,
        retention_ms=retention_ms,
        retention_bytes=-1 if retention_batches is None else retention_batches * BATCH_BYTES,
    )
    log, _ = one_batch_a_segment([*times, (NOW, NOW)], settings)
    start = log.apply_retention(NOW, end_offset=log.end_offset)
    assert start == removed_by_definition([*times, (NOW, NOW)], settings)


def test_a_file_s_time_is_asked_for_a_few_times_however_many_are_yet_to_come() -> None:
    settings = LogSettings(segment_bytes=BATCH_BYTES, segment_ms=2**60, retention_ms=10)
    ahead = [(NOW + 100, NOW + 100)] * 200
    log, files = one_batch_a_segment([*ahead, (NOW - 20, NOW - 20), (NOW, NOW)], settings)
    assert log.apply_retention(NOW, end_offset=log.end_offset) == 201
    assert files.times_asked < 3 * log.segment_count
