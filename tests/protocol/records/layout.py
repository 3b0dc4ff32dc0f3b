"""The batch format declared once more, with construct: slow, readable, and not our own code."""

import construct as c

HEADER = c.Struct(
    "base_offset" / c.Int64sb,
    "batch_length" / c.Int32sb,
    "partition_leader_epoch" / c.Int32sb,
    "magic" / c.Int8sb,
    "crc" / c.Int32ub,
    "attributes" / c.Int16sb,
    "last_offset_delta" / c.Int32sb,
    "base_timestamp" / c.Int64sb,
    "max_timestamp" / c.Int64sb,
    "producer_id" / c.Int64sb,
    "producer_epoch" / c.Int16sb,
    "base_sequence" / c.Int32sb,
    "record_count" / c.Int32sb,
)

NULLABLE_BYTES = c.Struct(
    "length" / c.ZigZag, "data" / c.If(c.this.length >= 0, c.Bytes(c.this.length))
)

RECORD = c.Prefixed(
    c.ZigZag,
    c.Struct(
        "attributes" / c.Const(0, c.Int8sb),
        "timestamp_delta" / c.ZigZag,
        "offset_delta" / c.ZigZag,
        "key" / NULLABLE_BYTES,
        "value" / NULLABLE_BYTES,
        "headers"
        / c.PrefixedArray(
            c.ZigZag,
            c.Struct("key" / c.PascalString(c.ZigZag, "utf8"), "value" / NULLABLE_BYTES),
        ),
        c.Terminated,
    ),
)

UNCOMPRESSED_BATCH = c.Struct(
    "header" / HEADER, "records" / RECORD[c.this.header.record_count], c.Terminated
)
