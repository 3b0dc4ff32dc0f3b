"""How fast is a compacted topic cleaned, and what do producers feel of it?

1 GB of 1 KB records, of which a tenth are the last of their keys. While it is cleaned another topic
is written to, 100 records a second: the time of an acknowledgement then is held against the same in
the seconds before.
"""

from __future__ import annotations

import os
import random
import statistics
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import trio

from benchmarks.harness import Row
from tidemark.client import Client, Producer, open_client
from tidemark.client.load import percentile
from tidemark.protocol.records.records import Record, encode_batch
from tidemark.testing.process import BrokerProcess, open_broker_process

RUNS: Final = 3
RECORDS: Final = 1_000_000
RECORD_BYTES: Final = 1000
LIVE: Final = 0.1
BATCH_RECORDS: Final = 16
TOPIC: Final = "compacted"
RATE: Final = 100.0
IDLE_SECONDS: Final = 8.0
LOOK_SECONDS: Final = 0.5
NEVER_MS: Final = 10**15
AIM_MB_S: Final = 60.0
_CONFIG: Final = {
    "cleanup.policy": "compact",
    "flush": "os",
    "segment.bytes": str(64 << 20),
    "min.compaction.lag.ms": str(NEVER_MS),
}


def measure(directory: Path) -> Iterator[Row]:
    """The rate of a run, and the 99th percentile of an acknowledgement before and in it."""
    settings = {"log.cleaner.backoff.ms": "200"}
    found = []
    for number in range(RUNS):
        with open_broker_process(directory / f"compacting-{number}", settings=settings) as broker:
            found.append(trio.run(_one_run, broker))
    rates, idle, busy = zip(*found, strict=True)
    case = f"{RECORDS * RECORD_BYTES // 10**9} GB of 1 KB records, {LIVE:.0%} live keys"
    yield Row(
        question="compaction",
        case=case,
        value=statistics.median(rates),
        unit="MB/s",
        runs=RUNS,
        aim=AIM_MB_S,
    )
    for what, values in (("before it", idle), ("while it runs", busy)):
        yield Row(
            question=f"produce latency, {RATE:.0f}/s, flush=commit: acknowledged, p99",
            case=what,
            value=statistics.median(values) * 1e3,
            unit="ms",
            runs=RUNS,
        )
    yield Row(
        question="produce latency, p99, of that before it",
        case="while it runs",
        value=statistics.median(b / i for b, i in zip(busy, idle, strict=True)),
        unit="times",
        runs=RUNS,
        aim=2.0,
        at_most=True,
    )


async def _one_run(broker: BrokerProcess) -> tuple[float, float, float]:
    """MB/s, and p99 before and in the run in seconds."""
    async with open_client(broker.bootstrap) as client:
        await client.admin.create_topic(TOPIC, partitions=1, configs=_CONFIG)
        await client.admin.create_topic("beside", partitions=1)
        await _fill(client)
        async with client.producer(linger_ms=0) as producer:
            await _acknowledged(producer, seconds=2.0)
            idle: list[float] = []
            for _ in range(round(IDLE_SECONDS / LOOK_SECONDS)):
                before = _compacted(broker)  # a scrape is felt, too
                idle += await _acknowledged(producer, seconds=LOOK_SECONDS)
            await client.admin.alter_configs(TOPIC, {"min.compaction.lag.ms": "0"})
            busy: list[float] = []
            while (now := _compacted(broker)) == before:
                busy += await _acknowledged(producer, seconds=LOOK_SECONDS)
        seconds, size_bytes = now[0] - before[0], now[1] - before[1]
    return size_bytes / seconds / 1e6, percentile(idle, 0.99), percentile(busy, 0.99)


async def _fill(client: Client) -> None:
    """Every key is in its turn written again, in an order that is no order."""
    rng, value = random.Random(1), os.urandom(RECORD_BYTES)
    keys = int(RECORDS * LIVE)
    now_ms = time.time_ns() // 1_000_000
    async with client.producer(idempotent=False) as producer:
        for _ in range(RECORDS // BATCH_RECORDS):
            records = [
                Record(key=b"key-%08d" % rng.randrange(keys), value=value, timestamp_ms=now_ms)
                for _ in range(BATCH_RECORDS)
            ]
            await producer.send_batch(TOPIC, 0, encode_batch(records))
        await producer.flush()


async def _acknowledged(producer: Producer, *, seconds: float) -> list[float]:
    """How long single records took, counted from when each was due."""
    times: list[float] = []

    async def send(due: float) -> None:
        delivery = await producer.send("beside", b"x" * 100, partition=0)
        await delivery.wait()
        times.append(trio.current_time() - due)

    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        for number in range(int(seconds * RATE)):
            due = start + number / RATE
            await trio.sleep_until(due)
            nursery.start_soon(send, due)
    return times


def _compacted(broker: BrokerProcess) -> tuple[float, float]:
    """The seconds and the bytes of all runs that have ended."""
    with urllib.request.urlopen(f"http://{broker.http}/metrics", timeout=10) as page:
        lines = dict(line.decode().rsplit(None, 1) for line in page if not line.startswith(b"#"))
    return (
        float(lines["tidemark_compaction_duration_seconds_sum"]),
        float(lines["tidemark_compaction_read_bytes_total"]),
    )
