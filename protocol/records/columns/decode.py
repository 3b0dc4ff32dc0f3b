"""Record batches to Arrow columns, without a Python object per record.

The batches of one buffer are decoded together, because numpy's fixed costs would be most of a small
batch's. Whatever is unusual or does not fit goes to the plain path, record by record: it gives the
same columns, slowly, or says exactly which batch is corrupt.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from tidemark.protocol.buffers import Buffers
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.columns.fields import read_columns
from tidemark.protocol.records.columns.schema import SCHEMA
from tidemark.protocol.records.columns.sections import Located, join_sections
from tidemark.protocol.records.columns.varints import Unusual
from tidemark.protocol.records.header import CONTROL_BIT, check_crc, iter_headers
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import BytesLike, Offset

BYTES_MAX: Final = (1 << 31) - 1
"""Arrow's binary columns count their bytes with an int32."""


def decode_columns(
    data: BytesLike,
    *,
    start: Offset | None = None,
    end: Offset | None = None,
    columns: Sequence[str] = tuple(SCHEMA.names),
    bytes_max: int = 1 << 30,
    memory: Buffers | None = None,
) -> pa.RecordBatch:
    """The records of the whole batches in `data` with offsets in [start, end), as `SCHEMA` columns.

    Batches wholly outside the range are skipped unread, transaction markers are left out, and so is
    an incomplete last batch. Of each batch read the CRC is checked; columns that are not asked for
    are neither decoded nor checked. `bytes_max` (at most `BYTES_MAX`) bounds the uncompressed size
    of all batches read together. Values may be copied into `memory`, which a batch keeps for itself
    as long as it lives. Raises `CorruptBatch`, `KeyError` for an unknown column.
    """
    assert bytes_max <= BYTES_MAX
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    data = memoryview(data)
    batches = _within(data, start, end)
    if not batches:
        return pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)
    for at, header in batches:
        check_crc(data, header, at)
    try:
        joined, sections = join_sections(data, batches, bytes_max=bytes_max)
        return read_columns(joined, sections, schema, start=start, end=end, memory=memory)
    except (Unusual, IndexError, ValueError):
        # ValueError is pyarrow's, too: a header's key that is not UTF-8.
        return _decode_plainly(data, batches, schema, start=start, end=end, bytes_max=bytes_max)


def _within(data: memoryview, start: Offset | None, end: Offset | None) -> list[Located]:
    """The batches that have records of clients with offsets in [start, end)."""
    batches: list[Located] = []
    for at, header in iter_headers(data):
        base_offset, _, _, _, _, attributes, delta, _, _, _, _, _, record_count = header
        if (
            not attributes & CONTROL_BIT
            and record_count
            and (start is None or base_offset + delta >= start)
            and (end is None or base_offset < end)
        ):
            batches.append((at, header))
    return batches


def _decode_plainly(
    data: BytesLike,
    batches: Sequence[Located],
    schema: pa.Schema,
    *,
    start: Offset | None,
    end: Offset | None,
    bytes_max: int,
) -> pa.RecordBatch:
    decoded = []
    for at, header in batches:
        records = [
            record
            for record in decode_batch(data, header, at, decompressed_bytes_max=bytes_max)
            if (start is None or record.offset >= start) and (end is None or record.offset < end)
        ]
        values: dict[str, Sequence[object]] = {
            "offset": [record.offset for record in records],
            "timestamp": [record.timestamp_ms for record in records],
            "timestamp_type": [int(header.is_log_append_time)] * len(records),
            "key": [record.key for record in records],
            "value": [record.value for record in records],
            "headers": [
                [{"key": key, "value": value} for key, value in record.headers]
                for record in records
            ],
        }
        try:
            arrays = [pa.array(values[field.name], field.type) for field in schema]
        except (OverflowError, ValueError) as error:
            raise CorruptBatch(at, f"an offset or a timestamp is over 64 bits: {error}") from error
        decoded.append(pa.record_batch(arrays, schema=schema))
    return pa.concat_batches(decoded)
