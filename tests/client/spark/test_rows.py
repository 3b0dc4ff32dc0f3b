import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from tidemark.client.spark.rows import RowMaker, full_schema, in_pieces, projection
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.records.columns import HEADERS_TYPE, decode_columns
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.protocol.types import Offset, TopicPartition

TP = TopicPartition("words", 3)
BATCH = encode_batch(
    [
        Record(value=b"a", key=b"k", timestamp_ms=1_700_000_000_001, headers=(("h", None),)),
        Record(timestamp_ms=-1),
    ],
    base_offset=Offset(7),
)


def rows(names: tuple[str, ...]) -> pa.RecordBatch:
    maker = RowMaker(TP, names)
    return maker.rows(decode_columns(BATCH, columns=maker.sources))


def test_the_columns_are_those_of_spark_s_kafka_source() -> None:
    assert full_schema(include_headers=True).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert "headers" not in full_schema(include_headers=False).fieldNames()


def test_the_types_are_to_the_letter_what_spark_compares_them_with() -> None:
    schema = full_schema(include_headers=True)
    assert rows(projection(schema)).schema.equals(
        to_arrow_schema(schema, timezone="UTC"), check_metadata=True
    )


def test_rows_hold_the_records() -> None:
    made = rows(projection(full_schema(include_headers=True)))
    made.validate(full=True)
    assert made.drop_columns(["timestamp"]).to_pylist() == [
        {
            "key": b"k",
            "value": b"a",
            "topic": "words",
            "partition": 3,
            "offset": 7,
            "timestampType": 0,
            "headers": [{"key": "h", "value": None}],
        },
        {
            "key": None,
            "value": None,
            "topic": "words",
            "partition": 3,
            "offset": 8,
            "timestampType": 0,
            "headers": None,
        },
    ]
    assert made["timestamp"].cast(pa.int64()).to_pylist() == [1_700_000_000_001_000, -1000]


def test_headers_are_null_where_there_are_none_in_a_part_of_a_batch_too() -> None:
    some, none = [{"key": "h", "value": b"v"}], list[dict[str, object]]()
    lists = pa.array([none, some, none, some * 2], HEADERS_TYPE)
    maker = RowMaker(TP, ("headers",))
    for start in range(4):
        made = maker.rows(pa.RecordBatch.from_arrays([lists], ["headers"])[start:])
        made.validate(full=True)
        assert made["headers"].to_pylist() == [None, some, None, some * 2][start:]


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_time_that_spark_cannot_hold_is_null_and_all_others_are_kept(sign: int) -> None:
    most = (2**63 - 1) // 1000
    times = [sign * time for time in (0, 1000, most, most + 1, 2**62)]
    batch = encode_batch([Record(timestamp_ms=time) for time in times], base_offset=Offset(0))
    maker = RowMaker(TP, ("timestamp",))
    (made,) = maker.rows(decode_columns(batch, columns=maker.sources)).columns
    micros = [time * 1000 if abs(time) <= most else None for time in times]
    assert made.cast(pa.int64()).to_pylist() == micros


@pytest.mark.parametrize("names", [("topic",), ("partition", "value"), ("timestamp",)])
def test_any_columns_in_any_order_may_be_asked_for(names: tuple[str, ...]) -> None:
    made = rows(names)
    assert tuple(made.schema.names) == names
    assert made.num_rows == 2


@pytest.mark.parametrize(
    "field",
    [StructField("value", StringType()), StructField("size", IntegerType())],
    ids=lambda field: field.name,
)
def test_a_schema_with_another_column_or_type_is_refused(field: StructField) -> None:
    with pytest.raises(ConfigError, match=f"no column {field.name}"):
        projection(StructType([field]))


def test_a_batch_that_grew_is_handed_out_in_pieces() -> None:
    batch = pa.record_batch({"value": [bytes(1000)] * 100})
    pieces = list(in_pieces(batch, 10_000))
    assert pa.concat_batches(pieces).equals(batch)
    assert all(piece.num_rows <= 10 for piece in pieces)
    assert [piece.num_rows for piece in in_pieces(batch, 1_000_000)] == [100]
