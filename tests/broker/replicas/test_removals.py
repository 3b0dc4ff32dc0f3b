"""What becomes of a file that was kept for a log's next segment."""

from typing import cast

import pytest
from trio.testing import MockClock

from tests.partitions.storage.directories import files_with
from tests.partitions.storage.recycling import DIRECTORY, fill, is_kept, trimmed
from tidemark.broker.replicas.disk import DiskWriter
from tidemark.broker.replicas.removals import Removals
from tidemark.partitions.storage.names import LOG_SUFFIX
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles


class Idle:
    """A disk that has nothing to do."""

    durable = 1
    error: OSError | None = None


@pytest.fixture
def files() -> MemoryFiles:
    return files_with(DIRECTORY)


@pytest.mark.parametrize("is_full", [False, True])
async def test_a_kept_file_that_is_not_used_goes_after_a_minute_or_on_a_full_disk(
    files: MemoryFiles, mock_clock: MockClock, is_full: bool
) -> None:
    full = False
    removals = Removals(cast("DiskWriter", Idle()), is_full=lambda: full)
    _, removal = trimmed(files)
    removals.add(1, [removal])
    await removals.run_durable()
    mock_clock.jump(59)
    await removals.look_after_kept()
    seen = [is_kept(files)]
    full = is_full
    mock_clock.jump(0 if is_full else 2)
    await removals.look_after_kept()
    assert [*seen, is_kept(files), removal.state.recycled.is_offered] == [True, False, False]


async def test_a_kept_file_that_somebody_reads_is_offered_later(files: MemoryFiles) -> None:
    removals = Removals(cast("DiskWriter", Idle()))
    log, removal = trimmed(files)
    first = min(name for name in files.sizes(DIRECTORY) if name.endswith(LOG_SUFFIX))
    reader = files.open_reader(f"{DIRECTORY}/{first}")
    removals.add(1, [removal])
    await removals.run_durable()
    await removals.look_after_kept()
    assert (is_kept(files), removal.state.recycled.is_offered) == (True, False)
    del reader
    await removals.look_after_kept()
    assert removal.state.recycled.is_offered
    fill(log, 3)
    await removals.look_after_kept()
    assert log.end_offset > Offset(0)
    assert not is_kept(files)
