"""Entries read for others: in order, none across an epoch, from memory or from the log's files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.partitions.storage.batches import batch
from tidemark.partitions.raft.entries import Configuration, EpochStart
from tidemark.partitions.replication.reading import read_entries
from tidemark.partitions.replication.recent import (
    RUN_BYTES,
    KeptRun,
    RecentBytes,
    RecentRuns,
    find,
)
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.types import ORIGIN, Epoch, NodeId, Offset, Position
from tidemark.testing.memory_files import MemoryFiles

CONFIG = Configuration((NodeId(1),))
# Epoch 2 has no records, epochs 1 and 3 have three batches each.
ROWS = [
    EpochStart(Epoch(epoch), Offset(start), NodeId(1), CONFIG)
    for epoch, start in [(1, 0), (2, 3), (3, 3)]
]
END = Position(Epoch(3), Offset(6))


def log_with(recent: RecentRuns, kept: RecentBytes) -> Log:
    files = MemoryFiles()
    files.make_directory("/log")
    log = Log.open(files, "/log", LogSettings(segment_bytes=250))
    for offset in range(6):
        epoch = Epoch(1 if offset < 3 else 3)
        data = batch(offset, epoch=epoch)
        log.append(data)
        kept.keep(recent, KeptRun(epoch, Offset(offset), Offset(offset + 1), data))
    return log


def described(after: Position, up_to: Position, bytes_max: int, kept_bytes: int) -> list[str]:
    recent: RecentRuns = {}
    log = log_with(recent, RecentBytes(kept_bytes))
    found = []
    for entry in read_entries(ROWS, log, recent, after, up_to, bytes_max=bytes_max):
        if isinstance(entry, EpochStart):
            found.append(f"start {entry.epoch}")
        else:
            records = entry.records if isinstance(entry.records, bytes) else entry.records.read()  # type: ignore[attr-defined]  # a slice
            batches = range(entry.base_offset, entry.end_offset)
            assert records == b"".join(batch(n, epoch=entry.epoch) for n in batches)
            found += [f"{n}@{entry.epoch}" for n in batches]
    return found


ALL = ["start 1", "0@1", "1@1", "2@1", "start 2", "start 3", "3@3", "4@3", "5@3"]
SIZE = len(batch(0))


@pytest.mark.parametrize("kept_bytes", [0, 2 * SIZE, 100 * SIZE])
def test_everything_is_read_in_order(kept_bytes: int) -> None:
    found = list[str]()
    after = ORIGIN
    while after != END:
        part = described(after, END, 10_000, kept_bytes)
        found += part
        # The log's slices end with their segment.
        after = _after(found)
    assert found == ALL


def _after(found: list[str]) -> Position:
    after = ORIGIN
    for each in found:
        if each.startswith("start"):
            after = Position(Epoch(int(each.split()[1])), after.offset)
        else:
            after = Position(after.epoch, Offset(after.offset + 1))
    return after


@given(st.integers(0, 8), st.integers(1, 9), st.integers(1, 500), st.sampled_from([0, 300, 10_000]))
def test_any_part_of_it_is_a_part_of_it(
    begin: int, length: int, bytes_max: int, kept_bytes: int
) -> None:
    end = min(begin + length, len(ALL))
    found = described(_after(ALL[:begin]), _after(ALL[:end]), bytes_max, kept_bytes)
    assert found == ALL[begin : begin + len(found)]
    assert 1 <= len(found) <= end - begin


def test_only_so_many_bytes_are_kept_and_the_oldest_go() -> None:
    recent: RecentRuns = {}
    kept = RecentBytes(3 * (SIZE + RUN_BYTES))
    log_with(recent, kept)
    assert sorted(recent) == [3, 4, 5]
    assert kept.size_bytes == 3 * (SIZE + RUN_BYTES)


def test_what_a_run_takes_beside_its_records_counts() -> None:
    """Of small batches that is most of it: two hundred thousand were kept, in 80 MB."""
    recent: RecentRuns = {}
    kept = RecentBytes(100_000)
    for offset in range(2_000):
        kept.keep(recent, KeptRun(Epoch(1), Offset(offset), Offset(offset + 1), b"small"))
    assert 300 < len(recent) < 340


def test_what_was_kept_anew_does_not_go_with_what_it_replaced() -> None:
    recent: RecentRuns = {}
    kept = RecentBytes(2 * (SIZE + RUN_BYTES))
    for epoch in (1, 2):
        kept.keep(recent, KeptRun(Epoch(epoch), Offset(0), Offset(1), batch(0, epoch=epoch)))
    kept.keep(recent, KeptRun(Epoch(2), Offset(1), Offset(2), batch(1, epoch=2)))
    assert sorted(recent) == [0, 1]


def test_small_batches_are_joined_but_not_across_epochs_or_the_end() -> None:
    recent: RecentRuns = {}
    log_with(recent, RecentBytes())
    joined = find(recent, Offset(1), end=Offset(6), bytes_max=10_000)
    assert joined is not None
    assert (joined.base_offset, joined.end_offset) == (1, 3)
    assert find(recent, Offset(4), end=Offset(5), bytes_max=10_000) == recent[Offset(4)]
    assert find(recent, Offset(4), end=Offset(4), bytes_max=10_000) is None
