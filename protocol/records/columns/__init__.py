"""Record batches to and from Arrow columns, with numpy; needs the extra `columns`."""

from tidemark.protocol.extras import needs_extra

with needs_extra("columns", "numpy", "pyarrow"):
    from tidemark.protocol.records.columns.decode import BYTES_MAX, decode_columns
    from tidemark.protocol.records.columns.encode import encode_columns
    from tidemark.protocol.records.columns.schema import HEADERS_TYPE, SCHEMA

__all__ = ["BYTES_MAX", "HEADERS_TYPE", "SCHEMA", "decode_columns", "encode_columns"]
