"""`tidemark bench`: what a cluster does with load, whoever made the brokers."""

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tidemark.cli.output import Column, Form, Json, output_option, print_rows, progress
from tidemark.cli.session import Session, talks_to_brokers

if TYPE_CHECKING:
    from tidemark.client import Client
    from tidemark.client.load import Load, Throughput

_THROUGHPUT = (
    Column("what"),
    Column("records"),
    Column("seconds"),
    Column("records_per_second", "RECORDS/S"),
    Column("megabytes_per_second", "MB/S"),
)
_LATENCY = (
    Column("what"),
    Column("records"),
    Column("p50_ms"),
    Column("p99_ms"),
    Column("p999_ms", "P99.9-MS"),
    Column("max_ms"),
)


@click.command()
@click.option("--records", type=click.IntRange(1), default=1_000_000, show_default=True)
@click.option("--size", type=click.IntRange(8), default=100, show_default=True, help="Bytes each.")
@click.option("--partitions", type=click.IntRange(1), default=1, show_default=True)
@click.option("--batch", type=click.IntRange(1), default=16_384, show_default=True, help="Bytes.")
@click.option("--acks", type=click.Choice(["all", "1", "0"]), default="all", show_default=True)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
)
@click.option("--config", "-c", multiple=True, metavar="KEY=VALUE", help="Of the topic.")
@click.option(
    "--rate",
    type=click.FloatRange(0, min_open=True),
    help="Measure latency instead, at this many single records a second.",
)
@click.option("--keep", is_flag=True, help="Leave the topic there.")
@output_option
@talks_to_brokers
@click.pass_obj
def bench(
    session: Session,
    records: int,
    size: int,
    partitions: int,
    batch: int,
    acks: str,
    compression: str,
    config: tuple[str, ...],
    rate: float | None,
    keep: bool,
    form: Form,
) -> None:
    """Measure throughput, or latency at a steady rate, on a topic of its own.

    Writes ready record batches and reads them back, so the figures are the brokers' and the
    network's more than this client's. Works against any Kafka cluster.
    """
    from tidemark.client.load import Load
    from tidemark.protocol.records.compression import Compression

    load = Load(
        topic=f"tidemark-bench-{uuid.uuid4().hex[:8]}",
        partitions=partitions,
        records=records,
        record_bytes=size,
        batch_bytes=batch,
        acks="all" if acks == "all" else 1 if acks == "1" else 0,
        compression=Compression[compression.upper()],
    )
    configs = dict(_key_and_value(text) for text in config)
    rows = session.run(lambda client: _measure(client, load, configs, rate=rate, keep=keep))
    print_rows(rows, _THROUGHPUT if rate is None else _LATENCY, form)


async def _measure(
    client: "Client", load: "Load", configs: dict[str, str], *, rate: float | None, keep: bool
) -> list[dict[str, Json]]:
    from tidemark.client.load import consume, make_topic, produce, steady

    await make_topic(client, load, configs)
    total = load.records * load.record_bytes
    try:
        if rate is not None:
            with progress("latency", total=total) as moved:
                latencies = await steady(client, load, rate=rate, progress=moved)
            return [
                _latency("acknowledged", latencies.acknowledged),
                _latency("delivered", latencies.delivered),
            ]
        with progress("produce", total=total) as moved:
            written = await produce(client, load, moved)
        with progress("consume", total=total) as moved:
            read = await consume(client, load, moved)
        return [_throughput("produce", written), _throughput("consume", read)]
    finally:
        if not keep:
            await client.admin.delete_topic(load.topic)


def _throughput(what: str, measured: "Throughput") -> dict[str, Json]:
    return {
        "what": what,
        "records": measured.records,
        "seconds": round(measured.seconds, 3),
        "records_per_second": round(measured.records_per_second),
        "megabytes_per_second": round(measured.bytes_per_second / 1e6, 1),
    }


def _latency(what: str, ordered: Sequence[float]) -> dict[str, Json]:
    from tidemark.client.load import percentile

    def at(fraction: float) -> float:
        return round(percentile(ordered, fraction) * 1e3, 3)

    return {
        "what": what,
        "records": len(ordered),
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
        "p999_ms": at(0.999),
        "max_ms": at(1.0),
    }


def _key_and_value(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--config")
    return key, value
