"""Rows as Spark's Kafka source has them, as Arrow batches of exactly the types Spark expects.

Spark compares the types of the first batch with its own to the letter: another unit or time zone,
a large or a dictionary type, or a field that cannot be null is refused.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidemark.protocol.errors import ConfigError
from tidemark.protocol.records.columns import HEADERS_TYPE
from tidemark.protocol.types import TopicPartition
from tidemark.protocol.values import dataclass

_HEADERS: Final = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_MILLISECONDS_MAX: Final = (2**63 - 1) // 1000
ROWS_BYTES: Final = 1 << 20
"""Spark is quickest with Arrow batches of about this size."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of Spark's, and how it is made."""

    type: DataType
    arrow_type: pa.DataType
    source: str | None  # the decoded column it is made of; None if it is the same in every row


COLUMNS: Final[Mapping[str, Column]] = {
    "key": Column(BinaryType(), pa.binary(), "key"),
    "value": Column(BinaryType(), pa.binary(), "value"),
    "topic": Column(StringType(), pa.string(), None),
    "partition": Column(IntegerType(), pa.int32(), None),
    "offset": Column(LongType(), pa.int64(), "offset"),
    "timestamp": Column(TimestampType(), _TIMESTAMP, "timestamp"),
    "timestampType": Column(IntegerType(), pa.int32(), "timestamp_type"),
    "headers": Column(_HEADERS, HEADERS_TYPE, "headers"),
}


def full_schema(*, include_headers: bool) -> StructType:
    """All columns; `headers` only where it is asked for, because it costs a third more."""
    return StructType(
        [
            StructField(name, column.type)
            for name, column in COLUMNS.items()
            if include_headers or name != "headers"
        ]
    )


def projection(schema: StructType) -> tuple[str, ...]:
    """The columns of a schema, which may be any of those there are, in any order.

    There is no other way to leave columns unread: Spark does not tell a Python source which it
    needs. Raises `ConfigError` for a column or a type that is not there.
    """
    for field in schema.fields:
        column = COLUMNS.get(field.name)
        if column is None or column.type != field.dataType:
            known = ", ".join(
                f"{name} {known.type.simpleString()}" for name, known in COLUMNS.items()
            )
            raise ConfigError(
                f"the source tidemark has no column {field.name}"
                f" {field.dataType.simpleString()}; it has {known}"
            )
    return tuple(schema.fieldNames())


class RowMaker:
    """Makes Spark's rows of one partition from decoded columns."""

    def __init__(self, topic_partition: TopicPartition, names: tuple[str, ...]) -> None:
        self._names = names
        self._schema = pa.schema([pa.field(name, COLUMNS[name].arrow_type) for name in names])
        self._constants = {"topic": topic_partition.topic, "partition": topic_partition.partition}
        self._repeated: dict[str, pa.Array] = {}
        sources = [source for name in names if (source := COLUMNS[name].source)]
        self.sources = tuple(sources) or ("offset",)
        """The decoded columns that are needed; there is one at least, for the number of rows."""

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that was decoded with the columns `sources`."""
        arrays = [self._array(name, batch) for name in self._names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(self, name: str, batch: pa.RecordBatch) -> pa.Array:
        source = COLUMNS[name].source
        if source is None:
            return self._constant(name, batch.num_rows)
        match name:
            case "timestamp":
                return _times(batch[source])
            case "headers":
                return _headers(batch[source])
            case _:
                return batch[source]

    def _constant(self, name: str, count: int) -> pa.Array:
        """A slice of an array that is kept, for it is the same for every batch."""
        repeated = self._repeated.get(name)
        if repeated is None or len(repeated) < count:
            value = pa.scalar(self._constants[name], COLUMNS[name].arrow_type)
            repeated = self._repeated[name] = pa.repeat(value, count)
        return repeated[:count]


def _times(milliseconds: pa.Array) -> pa.Array:
    """In Spark's microseconds; null where 64 bits cannot hold these, 292,000 years from 1970.

    A producer may have written anything: such a record is neither shown at another time nor
    allowed to end a stream for good.
    """
    try:
        return milliseconds.cast(_TIMESTAMP)
    except pa.ArrowInvalid:
        known = [
            time if time is not None and abs(time) <= _MILLISECONDS_MAX else None
            for time in milliseconds.cast(pa.int64()).to_pylist()
        ]
        return pa.array(known, milliseconds.type).cast(_TIMESTAMP)


def _headers(lists: pa.Array) -> pa.Array:
    """Null where a record has none, as in Spark's own source."""
    # A mask is taken with offsets that are not a slice, so these are made anew; the pairs stay.
    offsets = pc.add(lists.offsets, pa.scalar(0, pa.int32()))
    has_none = pc.equal(pc.list_value_length(lists), 0)
    return pa.ListArray.from_arrays(offsets, lists.values, lists.type, mask=has_none)


def in_pieces(batch: pa.RecordBatch, bytes_max: int) -> Iterator[pa.RecordBatch]:
    """The batch in slices of about `bytes_max`; compressed fetches may grow tenfold."""
    pieces = max(1, round(batch.nbytes / bytes_max))
    rows = max(1, -(-batch.num_rows // pieces))
    for start in range(0, batch.num_rows, rows):
        yield batch[start : start + rows]
