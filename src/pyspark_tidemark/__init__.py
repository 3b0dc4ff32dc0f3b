"""`spark.read.format("tidemark")` without an import: PySpark looks for packages of such a name.

It imports each `pyspark_*` package it finds, in a process of its own, so this one is light: what
the source needs is imported when it is used. The source itself is in `tidemark.client.spark`.
"""

from typing import TYPE_CHECKING

from tidemark.protocol.extras import needs_extra

with needs_extra("spark", "numpy", "py4j", "pyarrow", "pyspark"):
    from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from tidemark.client.spark.batch import BatchReader
    from tidemark.client.spark.sink import BatchWriter, StreamWriter
    from tidemark.client.spark.stream import StreamReader

__all__ = ["DefaultSource"]


class DefaultSource(DataSource):
    """Topics of a Kafka-compatible cluster as rows."""

    @classmethod
    def name(cls) -> str:
        return "tidemark"

    def schema(self) -> "StructType":
        # Options are checked here, where an error surfaces at load(): one in streamReader() is
        # followed by another, confusing one.
        from tidemark.client.spark.options import read_options
        from tidemark.client.spark.rows import full_schema

        return full_schema(include_headers=read_options(self.options).include_headers)

    def reader(self, schema: "StructType") -> "BatchReader":
        from tidemark.client.spark.batch import BatchReader, FilteringReader
        from tidemark.client.spark.options import read_options
        from tidemark.client.spark.rows import projection

        options = read_options(self.options, streaming=False)
        kind = FilteringReader if options.filter_pushdown else BatchReader
        return kind(options, projection(schema))

    def streamReader(self, schema: "StructType") -> "StreamReader":
        from tidemark.client.spark.options import read_options
        from tidemark.client.spark.rows import projection
        from tidemark.client.spark.stream import StreamReader

        return StreamReader(read_options(self.options, streaming=True), projection(schema))

    def writer(self, schema: "StructType", overwrite: bool) -> "BatchWriter":
        from tidemark.client.spark.sink import BatchWriter
        from tidemark.client.spark.sink_options import check_rows, read_sink_options
        from tidemark.protocol.errors import ConfigError

        if overwrite:
            raise ConfigError('a topic cannot be written over: use mode("append")')
        options = read_sink_options(self.options)
        check_rows(schema, options)
        return BatchWriter(options)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "StreamWriter":
        from tidemark.client.spark.sink import StreamWriter
        from tidemark.client.spark.sink_options import check_rows, read_sink_options

        # `overwrite` is Spark's word for the output mode complete: each batch is appended whole.
        options = read_sink_options(self.options)
        check_rows(schema, options)
        return StreamWriter(options)
