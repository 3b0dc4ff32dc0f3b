"""The ways in which a log is appended to."""

from collections.abc import Callable, Sequence

from tests.partitions.storage.batches import batch
from tidemark.partitions.storage.log import Log
from tidemark.protocol.records.header import iter_headers, read_header
from tidemark.protocol.types import Epoch


def made(log: Log, timestamps_ms: Sequence[int]) -> bytes:
    """Batches of one record each, placed at the log's end."""
    return b"".join(
        batch(log.end_offset + at, size=20, timestamps_ms=[timestamp_ms])
        for at, timestamp_ms in enumerate(timestamps_ms)
    )


def append_together(log: Log, timestamps_ms: Sequence[int]) -> None:
    log.append(made(log, timestamps_ms))


def append_placed(log: Log, timestamps_ms: Sequence[int]) -> None:
    data = made(log, timestamps_ms)
    log.append_placed(data, [header for _, header in iter_headers(data)])


def append_run(log: Log, timestamps_ms: Sequence[int]) -> None:
    run = [bytearray(batch(0, size=20, timestamps_ms=[ms])) for ms in timestamps_ms]
    log.append_run(run, [read_header(data) for data in run], Epoch(1))


WAYS = [append_together, append_placed, append_run]
Append = Callable[[Log, Sequence[int]], None]
