"""Batches, and the columns that they are to be."""

from collections.abc import Sequence

import pyarrow as pa
from hypothesis import strategies as st

from tests.protocol.records.strategies import CODECS, RECORDS
from tidemark.protocol.records.columns import SCHEMA
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.records import (
    Record,
    encode_batch,
)
from tidemark.protocol.types import Offset

BATCHES = st.lists(st.tuples(RECORDS, CODECS), min_size=1, max_size=3)
SAMPLE = [
    Record(value=b"v" * (i % 7), key=None if i % 3 else b"k", timestamp_ms=1_700_000_000_000 + i)
    for i in range(100)
]


def log_of(batches: Sequence[tuple[list[Record], Compression]]) -> bytes:
    log, offset = b"", Offset(7)
    for records, codec in batches:
        log += encode_batch(records, base_offset=offset, compression=codec)
        offset = Offset(offset + len(records) + 3)  # compaction leaves gaps like these
    return log


def columns_of(records: Sequence[Record]) -> pa.RecordBatch:
    return pa.record_batch(
        [
            pa.array([r.offset for r in records], pa.int64()),
            pa.array([r.timestamp_ms for r in records], pa.timestamp("ms", tz="UTC")),
            pa.array([0] * len(records), pa.int32()),
            pa.array([r.key for r in records], pa.binary()),
            pa.array([r.value for r in records], pa.binary()),
            pa.array(
                [[{"key": k, "value": v} for k, v in r.headers] for r in records],
                SCHEMA.field("headers").type,
            ),
        ],
        schema=SCHEMA,
    )
