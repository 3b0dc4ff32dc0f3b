"""The options of the sink, and what a row to be written must be; checked on the driver."""

from collections.abc import Mapping
from typing import Final, Literal

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    NullType,
    ShortType,
    StringType,
    StructType,
)

from tidemark.client.columns.writing import BATCH_BYTES
from tidemark.client.settings import ClientSettings
from tidemark.client.spark.kafka_options import (
    KAFKA_HONOURED,
    check_kafka_option,
    read_bootstrap,
    read_client,
)
from tidemark.client.spark.values import Options, refuse, refuse_unknown
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.values import dataclass

_ACKS: Final[dict[str, Literal["all", 0, 1]]] = {"all": "all", "-1": "all", "1": 1, "0": 0}


TRANSACTION_TIMEOUT_SECONDS: Final = 15 * 60.0
"""As long as brokers allow by default: what is open for longer is aborted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """Where to write, and how, as a value that travels to the tasks."""

    bootstrap: str
    topic: str | None
    compression: Compression = Compression.NONE
    acks: Literal["all", 0, 1] = "all"
    batch_bytes: int = BATCH_BYTES
    delivery_timeout_seconds: float = 120.0
    exactly_once: bool = False
    transactional_id: str = "tidemark-spark"
    """What all transactional ids begin with."""
    transaction_timeout_seconds: float = TRANSACTION_TIMEOUT_SECONDS
    client: ClientSettings


SINK_KNOWN: Final = (
    "bootstrap",
    "topic",
    "batchBytes",
    "exactlyOnce",
    *KAFKA_HONOURED,
    "kafka.acks",
    "kafka.compression.type",
    "kafka.delivery.timeout.ms",
    "kafka.enable.idempotence",
    "kafka.transaction.timeout.ms",
    "kafka.transactional.id",
)
# Spark's own, and one of the source's that is often left standing: a column headers is written.
_WITHOUT_EFFECT: Final = frozenset(
    ("checkpointlocation", "path", "queryname", "outputmode", "includeheaders")
)
_KNOWN: Final = frozenset(name.lower() for name in SINK_KNOWN)


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    """The options as a value. Raises `ConfigError`, which says what to do."""
    options = Options.of(given)
    for name in options.given:
        if name not in _KNOWN and name not in _WITHOUT_EFFECT:
            if not name.startswith("kafka."):
                refuse_unknown(name, SINK_KNOWN, "sink")
            check_kafka_option(name, "sink")
    acks = (options.text("kafka.acks") or "all").lower()
    if acks not in _ACKS:
        refuse("kafka.acks", "all, 1 or 0", acks)
    if not options.boolean("kafka.enable.idempotence", default=True) and _ACKS[acks] == "all":
        raise ConfigError(
            "the option kafka.enable.idempotence cannot be false: with kafka.acks all, batches that"
            " are sent again are stored once; leave it out"
        )
    exactly_once = options.boolean("exactlyOnce", default=False)
    _check_transactions(options, exactly_once=exactly_once, acks=_ACKS[acks])
    transaction_ms = options.count("kafka.transaction.timeout.ms")
    timeout_ms = options.count("kafka.delivery.timeout.ms") or 120_000
    return SinkOptions(
        bootstrap=read_bootstrap(options),
        topic=options.text("topic"),
        compression=_compression(options),
        acks=_ACKS[acks],
        batch_bytes=options.count("batchBytes") or BATCH_BYTES,
        delivery_timeout_seconds=timeout_ms / 1000,
        exactly_once=exactly_once,
        transactional_id=options.text("kafka.transactional.id") or "tidemark-spark",
        transaction_timeout_seconds=TRANSACTION_TIMEOUT_SECONDS
        if transaction_ms is None
        else transaction_ms / 1000,
        client=read_client(options),
    )


def _check_transactions(
    options: Options, *, exactly_once: bool, acks: Literal["all", 0, 1]
) -> None:
    if exactly_once and acks != "all":
        raise ConfigError("the option exactlyOnce needs kafka.acks all; leave kafka.acks out")
    for name in ("kafka.transactional.id", "kafka.transaction.timeout.ms"):
        if name in options and not exactly_once:
            raise ConfigError(
                f"the option {name} is for transactions: set exactlyOnce to true as well, or leave"
                " it out"
            )


def _compression(options: Options) -> Compression:
    name = options.text("kafka.compression.type") or "none"
    try:
        return Compression[name.upper()]
    except KeyError:
        known = ", ".join(each.name.lower() for each in Compression)
        refuse("kafka.compression.type", known, name)


_BYTES: Final = (BinaryType, StringType, NullType)
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)


def check_rows(schema: StructType, options: SinkOptions) -> None:
    """Refuse rows that cannot be records. Columns of other names do not count, as in Spark's."""
    types = {field.name: field.dataType for field in schema.fields}
    if "value" not in types:
        raise ConfigError(
            "the sink tidemark needs a column value, binary or string; there are"
            f" {', '.join(types)}"
        )
    for name in ("key", "value"):
        _check(types, name, _BYTES, "binary or a string")
    _check(types, "topic", (StringType,), "a string")
    _check(types, "partition", _WHOLE, "an int")
    if "headers" in types and not _is_headers(types["headers"]):
        raise ConfigError(
            f"the column headers is {types['headers'].simpleString()}, not"
            " array<struct<key:string,value:binary>>"
        )
    if "topic" not in types and options.topic is None:
        raise ConfigError("where to? set the option topic, or have a column topic")


def _check(
    types: Mapping[str, DataType], name: str, fitting: tuple[type[DataType], ...], what: str
) -> None:
    if name in types and not isinstance(types[name], fitting):
        raise ConfigError(
            f"the column {name} is {types[name].simpleString()}, not {what}; cast it, as in"
            f" CAST({name} AS {'INT' if name == 'partition' else 'STRING'})"
        )


def _is_headers(type_: DataType) -> bool:
    return (
        isinstance(type_, ArrayType)
        and isinstance(type_.elementType, StructType)
        and type_.elementType.fieldNames() == ["key", "value"]
        and all(isinstance(field.dataType, _BYTES) for field in type_.elementType.fields)
    )
