"""The options of the source: Spark's Kafka source's names, checked before anything is asked.

Options arrive with lower-cased names. What cannot be honoured is refused, never ignored: an option
that is silently not applied shows as wrong rows.
"""

import logging
from collections.abc import Mapping
from dataclasses import field
from typing import Final

from tidemark.client.columns.reading import FETCH_BYTES
from tidemark.client.offsets import Isolation
from tidemark.client.read_levels import ReadLevel, read_level
from tidemark.client.settings import ClientSettings
from tidemark.client.spark.kafka_options import (
    KAFKA_HONOURED,
    check_kafka_option,
    read_bootstrap,
    read_client,
)
from tidemark.client.spark.places import Place, check_places, place_options, read_place
from tidemark.client.spark.selections import SELECTIONS, Selection, read_selection
from tidemark.client.spark.values import Options, refuse, refuse_unknown
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.values import dataclass

log = logging.getLogger(__name__)

MAX_TRIGGER_DELAY_SECONDS: Final = 15 * 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What to read, as a value that travels to the tasks."""

    bootstrap: str
    selection: Selection
    starting: Place
    ending: Place
    include_headers: bool = False
    fail_on_data_loss: bool = True
    min_partitions: int = 0
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_seconds: float = MAX_TRIGGER_DELAY_SECONDS
    filter_pushdown: bool = False
    batch_bytes: int = FETCH_BYTES
    offset_cache_ms: int = 100
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    level: ReadLevel = ReadLevel.COMMITTED
    client: ClientSettings = field(
        default_factory=lambda: ClientSettings(client_id="tidemark-spark")
    )


KNOWN: Final = (
    *SELECTIONS,
    "bootstrap",
    *place_options("starting"),
    *place_options("ending"),
    "startingOffsetsByTimestampStrategy",
    "includeHeaders",
    "failOnDataLoss",
    "minPartitions",
    "maxRecordsPerPartition",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "filterPushdown",
    "batchBytes",
    "offsetCacheMs",
    "readLevel",
    *KAFKA_HONOURED,
    "kafka.isolation.level",
    "kafka.max.partition.fetch.bytes",
)
# Of Spark's own source, without effect here: groups are only a label there, and retries are the
# client's, for as long as kafka.default.api.timeout.ms says.
WITHOUT_EFFECT: Final = (
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)
_KNOWN: Final = frozenset(name.lower() for name in KNOWN)
_WITHOUT_EFFECT: Final = frozenset(name.lower() for name in WITHOUT_EFFECT)


def read_options(given: Mapping[str, str], *, streaming: bool | None = None) -> SourceOptions:
    """The options as a value; `streaming` is None where it is not known yet which it will be.

    Raises `ConfigError`, which says what to do.
    """
    options = Options.of(given)
    _refuse_unknown(options)
    level = _level(options)
    chosen = SourceOptions(
        bootstrap=read_bootstrap(options),
        selection=read_selection(options),
        starting=read_place(options, "starting", default="latest" if streaming else "earliest"),
        ending=read_place(options, "ending", default="latest"),
        include_headers=options.boolean("includeHeaders", default=False),
        fail_on_data_loss=options.boolean("failOnDataLoss", default=True),
        min_partitions=options.count("minPartitions") or 0,
        max_records_per_partition=options.count("maxRecordsPerPartition"),
        max_offsets_per_trigger=options.count("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=options.count("minOffsetsPerTrigger"),
        max_trigger_delay_seconds=_max_trigger_delay(options),
        filter_pushdown=options.boolean("filterPushdown", default=False),
        batch_bytes=options.count("batchBytes")
        or options.count("kafka.max.partition.fetch.bytes")
        or FETCH_BYTES,
        offset_cache_ms=options.count("offsetCacheMs") or 100,
        isolation=_isolation(options),
        level=level,
        client=read_client(options, rack=level.rack_to_name(options.text("kafka.client.rack"))),
    )
    _check_limits(chosen)
    if streaming is not None:
        check_places(options, chosen.starting, chosen.ending, streaming=streaming)
    return chosen


def _refuse_unknown(options: Options) -> None:
    for name in options.given:
        if name in _WITHOUT_EFFECT:
            log.info("the option %s has no effect with the source tidemark", name)
        elif name not in _KNOWN:
            if not name.startswith("kafka."):
                refuse_unknown(name, (*KNOWN, *WITHOUT_EFFECT), "source")
            check_kafka_option(name, "source")


def _max_trigger_delay(options: Options) -> float:
    seconds = options.seconds("maxTriggerDelay")
    return MAX_TRIGGER_DELAY_SECONDS if seconds is None else seconds


def _check_limits(chosen: SourceOptions) -> None:
    least, most = chosen.min_offsets_per_trigger, chosen.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise ConfigError(
            f"the option minOffsetsPerTrigger, {least}, is above maxOffsetsPerTrigger, {most}"
        )


def _isolation(options: Options) -> Isolation:
    name = options.text("kafka.isolation.level") or "read_uncommitted"
    try:
        return Isolation[name.upper()]
    except KeyError:
        refuse("kafka.isolation.level", "read_uncommitted or read_committed", name)


def _level(options: Options) -> ReadLevel:
    level = options.text("readLevel")
    try:
        return read_level(level, options.text("kafka.client.rack"))
    except ValueError:
        refuse("readLevel", ", ".join(ReadLevel), str(level))
