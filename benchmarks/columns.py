"""How many records a second go between record batches and Arrow columns, on one core?

Records of one length, and of lengths that vary by half; in one batch of a megabyte, the most that a
broker takes by default, and in batches of 16 KiB, a producer's usual. For scale, the same bytes
through the plain decoder here and through aiokafka's compiled one, with every field taken.
"""

import random
import time
from collections.abc import Callable, Sequence
from itertools import accumulate

from aiokafka.record.default_records import DefaultRecordBatch
from rich.console import Console

from benchmarks.harness import Row, median_of, show
from tidemark.protocol.records.columns import decode_columns, encode_columns
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.records.records import Record, decode_records, encode_batch
from tidemark.protocol.types import Offset

TOTAL_BYTES = 1 << 20
RUNS = 31
BATCH_BYTES = 16 << 10
START_MS = 1_700_000_000_000
AIM = 4.0  # million records a second, of 100 bytes


def run(*, runs: int = RUNS) -> list[Row]:
    """The rows of this question, in millions of records a second."""
    return [row for size in (20, 100, 1000) for row in rows_of(size, runs)]


def rows_of(size: int, runs: int) -> list[Row]:
    records = records_of(size)
    large, small = encode_batch(records), in_small_batches(records)
    varying = encode_batch(records_of(size, varying=True))
    columns, columns_varying = decode_columns(large), decode_columns(varying)
    aim = AIM if size == 100 else None

    def row(case: str, work: Callable[[], object], aim: float | None = None) -> Row:
        return row_of(f"{case}, {size} B", work, len(records), runs, aim)

    return [
        row("decode", lambda: decode_columns(large), aim),
        row("decode in 16 KiB batches", lambda: decode_columns(small)),
        row("decode varying", lambda: decode_columns(varying)),
        row("encode", lambda: encode_columns(columns), aim),
        row("encode varying", lambda: encode_columns(columns_varying)),
        row("decode plainly", lambda: decode_records(large)),
        row("decode with aiokafka", lambda: decode_with_aiokafka(large)),
    ]


def row_of(case: str, work: Callable[[], object], count: int, runs: int, aim: float | None) -> Row:
    def measure() -> float:
        # The core's time, not the clock's: what is measured is one thread that never waits.
        start = time.process_time()
        work()
        return count / (time.process_time() - start) / 1e6

    return Row(
        question="columns",
        case=case,
        value=median_of(runs, measure),
        unit="M records/s",
        runs=runs,
        aim=aim,
    )


def records_of(size: int, *, varying: bool = False) -> list[Record]:
    """Ten records a millisecond, without keys, of random bytes."""
    source = random.Random(7)
    count = TOTAL_BYTES // (size + 20)
    sizes = (source.randint(size // 2, size * 3 // 2) if varying else size for _ in range(count))
    return [
        Record(value=source.randbytes(length), timestamp_ms=START_MS + index // 10)
        for index, length in enumerate(sizes)
    ]


def in_small_batches(records: Sequence[Record]) -> bytes:
    ends = accumulate(len(record.value or b"") + 12 for record in records)
    batches: dict[int, list[Record]] = {}
    for record, end in zip(records, ends, strict=True):
        batches.setdefault(end // BATCH_BYTES, []).append(record)
    log, offset = [], 0
    for batch in batches.values():
        log.append(encode_batch(batch, base_offset=Offset(offset)))
        offset += len(batch)
    return b"".join(log)


def decode_with_aiokafka(log: bytes) -> list[tuple[object, ...]]:
    return [
        (record.offset, record.timestamp, record.key, record.value, record.headers)
        for at, header in iter_headers(log)
        for record in DefaultRecordBatch(log[at : at + header.size_bytes])
    ]


if __name__ == "__main__":
    show(run(), Console())
