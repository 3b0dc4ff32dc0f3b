"""A whole topic, or a part of it, as one stream of Arrow batches."""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from tidemark.client.blocking import BlockingClient, KeptConnections, open_client
from tidemark.client.columns.reading import COLUMNS, FETCH_BYTES, read_columns
from tidemark.client.offsets import Isolation, Start, as_start
from tidemark.client.settings import ClientSettings
from tidemark.protocol.errors import ConfigError
from tidemark.protocol.records.columns import SCHEMA
from tidemark.protocol.types import Offset, TopicPartition
from tidemark.protocol.values import dataclass

TOPIC_SCHEMA: Final = pa.schema([pa.field("partition", pa.int32()), *SCHEMA])
"""The columns of a topic: those of a partition, and which one it is."""


@dataclass(frozen=True, slots=True)
class _Range:
    topic_partition: TopicPartition
    start: Offset
    end: Offset


def read_topic(
    bootstrap: str | Sequence[str],
    topic: str,
    *,
    start: Start | str | int = "beginning",
    end: Start | str | int = "end",
    partitions: Sequence[int] | None = None,
    columns: Sequence[str] = ("partition", *COLUMNS),
    settings: ClientSettings | None = None,
    fetch_bytes: int = FETCH_BYTES,
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> pa.RecordBatchReader:
    """The records from `start` to `end` (exclusive), one partition after the other.

    The places mean in each partition what they mean to a consumer; "end" is where it ended when
    this was called. Columns are `TOPIC_SCHEMA`'s; what is not asked for is not decoded. Raises
    `RequestError`, `OSError` and `ConfigError`; while it is read, also what `read_columns` raises.
    """
    schema = pa.schema([_field(name) for name in columns])
    settings = settings or ClientSettings()
    with open_client(bootstrap, settings=settings) as client:
        chosen = _partitions(client, topic, partitions)
        starts = client.run(
            client.admin.resolve_offsets,
            dict.fromkeys(chosen, as_start(start)),
            isolation=isolation,
        )
        ends = client.run(
            client.admin.resolve_offsets, dict.fromkeys(chosen, as_start(end)), isolation=isolation
        )
        # A place before the log start (an offset, so many before the end) is what there is.
        begins = client.run(client.admin.beginning_offsets, chosen)
        stops = client.run(client.admin.end_offsets, chosen, isolation=isolation)
    ranges = [_Range(tp, max(starts[tp], begins[tp]), min(ends[tp], stops[tp])) for tp in chosen]

    def batches() -> Iterator[pa.RecordBatch]:
        connections = KeptConnections()
        wanted = [name for name in columns if name != "partition"] or ["offset"]
        try:
            for one in ranges:
                for batch in read_columns(
                    bootstrap,
                    one.topic_partition,
                    one.start,
                    one.end,
                    columns=wanted,
                    settings=settings,
                    fetch_bytes=fetch_bytes,
                    isolation=isolation,
                    connections=connections,
                    patience_seconds=settings.retry_timeout_seconds,
                ):
                    yield _with_partition(batch, one.topic_partition.partition, schema)
        finally:
            connections.close()

    return pa.RecordBatchReader.from_batches(schema, batches())


def _field(name: str) -> pa.Field:
    if name not in TOPIC_SCHEMA.names:
        raise ConfigError(f"no column {name}; there are {', '.join(TOPIC_SCHEMA.names)}")
    return TOPIC_SCHEMA.field(name)


def _partitions(
    client: BlockingClient, topic: str, wanted: Sequence[int] | None
) -> list[TopicPartition]:
    there = client.run(client.admin.describe_topic, topic).partitions
    numbers = sorted(partition.partition for partition in there)
    if missing := sorted(set(wanted or ()) - set(numbers)):
        raise ConfigError(f"{topic} has {len(numbers)} partitions, no partition {missing[0]}")
    return [
        TopicPartition(topic, number) for number in numbers if wanted is None or number in wanted
    ]


def _with_partition(batch: pa.RecordBatch, partition: int, schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        pa.repeat(pa.scalar(partition, pa.int32()), batch.num_rows)
        if name == "partition"
        else batch[name]
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
