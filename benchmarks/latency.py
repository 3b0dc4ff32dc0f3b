"""How long does a record take, at low and at medium load, with acks=all?

Single records at a steady rate; the time counts from when a record was due. *Acknowledged* is the
producer's answer, *delivered* the arrival at a consumer that waits at the end of the log.
"""

from collections.abc import Iterator
from pathlib import Path

import trio

from benchmarks.calm import wait_calm
from benchmarks.harness import Row
from benchmarks.matrix.measured import histogram_of, latency_rows
from tidemark.client import open_client
from tidemark.client.load import Latencies, Load, make_topic, steady
from tidemark.testing.process import open_broker_process

LOADS = {"low load (100/s)": 100.0, "medium load (1,500/s)": 1_500.0}
RUNS = 3
SECONDS = 3


def measure(directory: Path) -> Iterator[Row]:
    """p50, p99 and the like for each flush mode and load."""
    with open_broker_process(directory / "latency") as broker:
        wait_calm([broker.pid])
        for flush in ("os", "commit"):
            for name, rate in LOADS.items():
                runs = [trio.run(_steady, broker.bootstrap, flush, rate, n) for n in range(RUNS)]
                case = f"{name}, flush={flush}, acks=all"
                for what in ("acknowledged", "delivered"):
                    histograms = [histogram_of(getattr(run, what)) for run in runs]
                    yield from latency_rows(f"latency: {what}", case, histograms)


async def _steady(bootstrap: str, flush: str, rate: float, run: int) -> Latencies:
    topic = f"latency-{flush}-{rate:.0f}-{run}"
    load = Load(topic=topic, partitions=1, records=int(rate * SECONDS))
    async with open_client(bootstrap) as client:
        await make_topic(client, load, {"flush": flush})
        return await steady(client, load, rate=rate)
