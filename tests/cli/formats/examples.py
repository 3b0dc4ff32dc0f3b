"""Records that the tests of the formats print."""

from tidemark.cli.formats.formatter import Source
from tidemark.protocol.records.records import Record
from tidemark.protocol.types import Offset

ORDERS = Source(
    topic="orders",
    partition=3,
    leader_epoch=7,
    producer_id=791,
    producer_epoch=1,
    compression=3,
    timestamp_type=0,
    is_transactional=True,
    log_start=40,
    last_stable_offset=90,
    high_watermark=100,
)

FULL = Record(
    offset=Offset(343),
    timestamp_ms=1_700_000_000_123,  # 2023-11-14 22:13:20.123 UTC, a Tuesday
    key=b"key",
    value=b"value",
    headers=(("H1", b"V1"), ("h2", None)),
)

NULLS = Record(offset=Offset(344), timestamp_ms=-1, key=None, value=None)


def record(value: bytes | None = None, key: bytes | None = None) -> Record:
    return Record(offset=Offset(0), timestamp_ms=0, key=key, value=value)
