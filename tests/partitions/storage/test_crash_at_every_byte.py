"""A crash may leave the tail of a log in any state: every byte of it, in four ways."""

from collections.abc import Callable
from random import Random

import pytest

from tests.partitions.storage.batches import batch
from tests.partitions.storage.tails import cut, garbled, zeroed
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import LogSettings
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, Offset
from tidemark.testing.memory_files import MemoryFiles

PATH = "/p-0/00000000000000000000.log"
DURABLE = batch(0, 3) + batch(3)
TAIL = batch(4, 2, size=40) + batch(6, 2, size=40)
FIRST_OF_TAIL = len(batch(4, 2, size=40))
OLD = (batch(2, 2, size=40) + batch(4, 1, size=60)) * 2


def overwritten_by_old_bytes(tail: bytes, at: int) -> bytes:
    return tail[:at] + OLD[: len(tail) - at]


def disk_with(tail: bytes | bytearray) -> MemoryFiles:
    """`DURABLE` was synced; `tail` is what came of later writes."""
    files = MemoryFiles()
    files.make_directory("/p-0")
    files.sync_directory("/")
    file = files.create(PATH)
    file.pwrite(DURABLE, 0)
    file.sync()
    files.sync_directory("/p-0")
    file.pwrite(tail, len(DURABLE))
    return files


def open_log(files: MemoryFiles, recovery_point: int, seen: list[BatchHeader] | None = None) -> Log:
    return Log.open(
        files,
        "/p-0",
        LogSettings(),
        recovery_point=Offset(recovery_point),
        on_batch=None if seen is None else seen.append,
    )


def everything(log: Log) -> bytes:
    return log.read(log.start_offset, bytes_max=1 << 20, end_offset=log.end_offset).read()


def whole_batches(tail: bytes) -> bytes:
    """What must be left of a damaged tail."""
    if tail == TAIL:  # The damage may write what was there.
        return TAIL
    return TAIL[:FIRST_OF_TAIL] if tail[:FIRST_OF_TAIL] == TAIL[:FIRST_OF_TAIL] else b""


@pytest.mark.parametrize("damage", [cut, zeroed, garbled, overwritten_by_old_bytes])
def test_a_torn_tail_is_cut_to_its_last_whole_batch(damage: Callable[[bytes, int], bytes]) -> None:
    for at in range(len(TAIL)):
        tail = damage(TAIL, at)
        whole = whole_batches(tail)
        files = disk_with(tail)
        seen: list[BatchHeader] = []
        log = open_log(files, 4, seen)
        assert everything(log) == DURABLE + whole, at
        assert sum(header.record_count for header in seen) == log.end_offset

        log.append(batch(log.end_offset, size=3))
        durable = log.sync()
        again = open_log(files.after_crash(Random(at)), durable)
        assert everything(again) == DURABLE + whole + batch(log.end_offset - 1, size=3), at


@pytest.mark.parametrize("damage", [cut, zeroed, garbled, overwritten_by_old_bytes])
def test_what_recovery_kept_is_durable_at_once(damage: Callable[[bytes, int], bytes]) -> None:
    for at in range(0, len(TAIL), 7):
        recovered = disk_with(damage(TAIL, at))
        kept = open_log(recovered, 4).end_offset
        assert open_log(recovered.after_crash(Random(at)), kept).end_offset == kept


def test_a_tail_that_is_whole_is_kept_whole() -> None:
    log = open_log(disk_with(TAIL), 4)
    assert everything(log) == DURABLE + TAIL
    assert log.recovery.cut is None
    assert log.recovery.checked_batches == 2


def test_every_bit_of_a_tail_is_checked() -> None:
    """Also those of the header that its CRC leaves out."""
    for bit in range(len(TAIL) * 8):
        tail = bytearray(TAIL)
        tail[bit // 8] ^= 1 << bit % 8
        log = Log.open(
            disk_with(tail),
            "/p-0",
            LogSettings(),
            recovery_point=Offset(4),
            epoch_max=Epoch(1),
        )
        assert log.end_offset == (6 if bit // 8 >= FIRST_OF_TAIL else 4), bit
        assert log.recovery.cut is not None
