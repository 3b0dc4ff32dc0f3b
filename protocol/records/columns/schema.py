"""What a batch of records is in columns."""

from typing import Final

import pyarrow as pa

HEADERS_TYPE: Final = pa.list_(
    pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
)

SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC")),
        pa.field("timestamp_type", pa.int32()),  # 0: the producer's, 1: the broker's
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE),  # never null; empty where there are none
    ]
)
"""Every column that can be decoded, in the order they come unless asked for otherwise."""
