"""`tidemark bench`: what a cluster does with load, whoever made the brokers."""

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tidemark.cli.failures import advising
from tidemark.cli.numbers import Real, Whole
from tidemark.cli.output import Column, Form, Json, output_option, print_rows, progress
from tidemark.cli.pairs import config_option, parse_pairs
from tidemark.cli.session import Session, talks_to_brokers
from tidemark.protocol.errors import ErrorCode

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
    Column("p90_ms", wide=True),
    Column("p99_ms"),
    Column("p999_ms", "P99.9-MS"),
    Column("p9999_ms", "P99.99-MS"),
    Column("max_ms"),
)


@click.command()
@click.option(
    "--records",
    type=Whole(1, bits=64),
    default=1_000_000,
    show_default=True,
    help="How many to write and read.",
)
@click.option("--size", type=Whole(8), default=100, show_default=True, help="Bytes of each record.")
@click.option(
    "--partitions",
    type=Whole(1),
    default=1,
    show_default=True,
    help="Of the topic.",
)
@click.option(
    "--batch",
    type=Whole(1),
    default=16_384,
    show_default=True,
    help="Bytes of each record batch.",
)
@click.option(
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    show_default=True,
    help="How many replicas must have a batch: all in sync, the leader, none.",
)
@click.option(
    "--compression",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    default="none",
    show_default=True,
    help="Codec of the batches.",
)
@config_option("A config of the topic; repeatable.")
@click.option(
    "--against",
    metavar="HOST:PORT",
    help="Another broker, reached without -X: the same work on both in turn, side by side.",
)
@click.option(
    "--against-config",
    multiple=True,
    metavar="KEY=VALUE",
    callback=parse_pairs,
    help="A config of the topic there; repeatable.",
)
@click.option("--rounds", type=Whole(1), default=5, show_default=True, help="With --against.")
@click.option(
    "--rate",
    type=Real(0, min_open=True),
    help="Measure latency instead, at this many single records a second.",
)
@click.option("--keep", is_flag=True, help="Keep the topic at the end.")
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
    configs: dict[str, str],
    against: str | None,
    against_config: dict[str, str],
    rounds: int,
    rate: float | None,
    keep: bool,
    form: Form,
) -> None:
    """Measure throughput, or latency at a steady rate, on a topic of its own.

    Writes ready record batches and reads them back, so the figures are the brokers' and the
    network's more than this client's. Works against any Kafka cluster.

    With --against, another broker does the same in turn. HERE is that of --bootstrap, THERE the
    other one; TIMES is HERE divided by THERE, and NOISE is how far apart the rounds were.
    """
    from tidemark.cli.bench_against import COLUMNS, Side, in_turn, process_at
    from tidemark.client.load import Load
    from tidemark.protocol.records.compression import Compression

    def load() -> Load:
        return Load(
            topic=f"tidemark-bench-{uuid.uuid4().hex[:8]}",
            partitions=partitions,
            records=records,
            record_bytes=size,
            batch_bytes=batch,
            acks="all" if acks == "all" else 1 if acks == "1" else 0,
            compression=Compression[compression.upper()],
        )

    def rows(at: Session, configs: dict[str, str], option: str) -> list[dict[str, Json]]:
        smaller = "--batch" if rate is None and size <= batch else "--size"
        advice = (
            f"make {smaller} smaller, or have the topic take it with {option} "
            "max.message.bytes=BYTES"
        )
        with advising(ErrorCode.MESSAGE_TOO_LARGE, advice):
            return at.run(lambda client: _measure(client, load(), configs, rate=rate, keep=keep))

    if against is None:
        if against_config:
            raise click.UsageError("--against-config is for --against")
        print_rows(rows(session, configs, "-c"), _THROUGHPUT if rate is None else _LATENCY, form)
        return
    other = Session(against)
    here = Side(
        measure=lambda: _figures(rows(session, configs, "-c")), pid=process_at(session.bootstrap)
    )
    there = Side(
        measure=lambda: _figures(rows(other, against_config, "--against-config")),
        pid=process_at(against),
    )
    print_rows(in_turn(here, there, rounds), COLUMNS, form)


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


def _figures(rows: list[dict[str, Json]]) -> dict[tuple[str, str], float]:
    """What two brokers are compared by: rates, or latencies."""
    units = {"megabytes_per_second": "MB/s", "records_per_second": "records/s"}
    units |= {f"{name}_ms": f"{name} ms" for name in ("p50", "p99", "p999", "max")}
    return {
        (str(row["what"]), unit): float(str(row[key]))
        for row in rows
        for key, unit in units.items()
        if key in row
    }


def _throughput(what: str, measured: "Throughput") -> dict[str, Json]:
    return {
        "what": what,
        "records": measured.records,
        "seconds": round(measured.seconds, 3),
        "records_per_second": round(measured.records_per_second),
        "megabytes_per_second": round(measured.bytes_per_second / 1e6, 1),
    }


def _latency(what: str, seconds: Sequence[float]) -> dict[str, Json]:
    from tidemark.client.histogram import Histogram

    histogram = Histogram()
    for each in seconds:
        histogram.record(round(each * 1e9))
    percents = {"p50": 50, "p90": 90, "p99": 99, "p999": 99.9, "p9999": 99.99, "max": 100}
    found = {
        f"{name}_ms": round(histogram.percentile(percent) / 1e6, 3)
        for name, percent in percents.items()
    }
    return {"what": what, "records": histogram.total, **found}
