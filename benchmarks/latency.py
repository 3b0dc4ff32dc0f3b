"""How long does a record take, at low and at medium load, with acks=all?

Single records at a steady rate; the time counts from when a record was due. *Acknowledged* is the
producer's answer, *delivered* the arrival at a consumer that waits at the end of the log.
"""

from collections.abc import Iterator
from pathlib import Path

import trio

from benchmarks.harness import Row
from tidemark.client import open_client
from tidemark.client.load import Latencies, Load, make_topic, percentile, steady
from tidemark.testing.process import open_broker_process

LOADS = {"low load (100/s)": 100.0, "medium load (1,500/s)": 1_500.0}
SECONDS = 6


def measure(directory: Path) -> Iterator[Row]:
    """p50, p99 and p99.9 for each flush mode and load."""
    with open_broker_process(directory / "latency") as broker:
        for flush in ("os", "commit"):
            for name, rate in LOADS.items():
                latencies = trio.run(_steady, broker.bootstrap, flush, rate)
                yield from _rows(f"{name}, flush={flush}, acks=all", latencies)


async def _steady(bootstrap: str, flush: str, rate: float) -> Latencies:
    load = Load(topic=f"latency-{flush}-{rate:.0f}", partitions=1, records=int(rate * SECONDS))
    async with open_client(bootstrap) as client:
        await make_topic(client, load, {"flush": flush})
        return await steady(client, load, rate=rate)


def _rows(case: str, latencies: Latencies) -> Iterator[Row]:
    for what, values in (
        ("acknowledged", latencies.acknowledged),
        ("delivered", latencies.delivered),
    ):
        for name, fraction in (("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)):
            yield Row(
                question=f"latency: {what}, {name}",
                case=case,
                value=percentile(values, fraction) * 1e3,
                unit="ms",
                runs=len(values),
            )
