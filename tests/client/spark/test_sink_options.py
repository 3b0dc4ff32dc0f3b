import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidemark.client.spark.sink_options import SinkOptions, check_rows, read_sink_options
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.records.compression import Compression

BROKER = {"kafka.bootstrap.servers": "h:1"}


def read(**more: str) -> SinkOptions:
    return read_sink_options({**BROKER, **more})


def test_settings_of_java_s_producer_are_passed_through() -> None:
    options = read(
        topic="t",
        checkpointLocation="/somewhere",
        includeHeaders="true",
        **{
            "kafka.compression.type": "zstd",
            "kafka.acks": "1",
            "kafka.delivery.timeout.ms": "5000",
            "kafka.client.id": "me",
            "kafka.linger.ms": "5",
        },
    )
    assert (options.topic, options.compression, options.acks) == ("t", Compression.ZSTD, 1)
    assert (options.delivery_timeout_seconds, options.client.client_id) == (5, "me")
    default = read()
    assert (default.topic, default.compression, default.acks) == (None, Compression.NONE, "all")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": "t"}, "sink tidemark has no option topics; did you mean topic"),
        ({"kafka.acks": "2"}, "kafka.acks is all, 1 or 0"),
        ({"kafka.compression.type": "rar"}, "kafka.compression.type is none, gzip"),
        ({"kafka.enable.idempotence": "false"}, "kafka.enable.idempotence cannot be false"),
        ({"kafka.value.serializer": "x"}, "not supported by the sink"),
        ({"kafka.partitioner.class": "x"}, "not supported by the sink"),
        ({"kafka.sasl.login.class": "x"}, "not supported by the sink"),
        ({"batchBytes": "0"}, "batchBytes is a whole number above 0"),
    ],
    ids=str,
)
def test_what_cannot_be_honoured_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(**options)


HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


def rows(**columns: DataType) -> StructType:
    return StructType([StructField(name, type_) for name, type_ in columns.items()])


@pytest.mark.parametrize(
    "schema",
    [
        rows(value=BinaryType()),
        rows(value=StringType(), key=StringType(), topic=StringType(), partition=IntegerType()),
        rows(value=BinaryType(), headers=HEADERS, offset=LongType(), timestamp=TimestampType()),
    ],
    ids=StructType.simpleString,
)
def test_rows_that_can_be_records_are_let_pass(schema: StructType) -> None:
    check_rows(schema, read(topic="t"))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (rows(key=BinaryType()), "needs a column value, binary or string; there are key"),
        (
            rows(value=IntegerType()),
            r"column value is int, not binary or a string; cast it, as in CAST\(value AS STRING",
        ),
        (
            rows(value=BinaryType(), partition=StringType()),
            r"column partition is string, .* CAST\(partition AS INT",
        ),
        (
            rows(value=BinaryType(), headers=MapType(StringType(), BinaryType())),
            "column headers is map<string,binary>, not arr",
        ),
        (rows(value=BinaryType(), topic=BinaryType()), "column topic is binary, not a string"),
        (rows(value=BinaryType()), "set the option topic, or have a column topic"),
    ],
    ids=str,
)
def test_rows_that_cannot_be_records_are_refused(schema: StructType, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_rows(schema, read())
