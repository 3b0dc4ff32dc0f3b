"""How fast does a broker start, and how much memory does it hold, idle and loaded?"""

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.against_limits import address_of
from benchmarks.harness import Row, row_of
from benchmarks.machine import with_bytecode
from benchmarks.matrix.processes import used
from benchmarks.raw_client import batch_of, create_topic, produce_frame, produce_load
from tidemark.testing.process import BrokerProcess, open_broker_process

RUNS = 11


def measure(directory: Path) -> Iterator[Row]:
    """Start to the first acknowledged record, and resident memory."""
    environment = with_bytecode(directory / "bytecode")
    _first_ack(directory / "start", environment)
    yield row_of(
        "start to first acknowledged record",
        "empty directory, topic created on the way, flush=commit",
        "s",
        [_first_ack(directory / f"start-{n}", environment) for n in range(RUNS)],
        aim=0.6,
        at_most=True,
    )
    with open_broker_process(directory / "memory") as broker:
        time.sleep(2)
        yield _memory(broker, "idle", aim=60)
        create_topic(address_of(broker), "loaded", partitions=16, flush="os")
        frame = produce_frame("loaded", batch_of(1_000_000), acks=-1)
        produce_load(address_of(broker), frame, requests=1_000, connections=8)
        yield _memory(broker, "after 1 GB through 8 connections", aim=None)


def _first_ack(data_dir: Path, environment: dict[str, str]) -> float:
    """Seconds from starting the process to the answer to one record."""
    frame = produce_frame("first", batch_of(100, record_bytes=100), acks=-1)
    start = time.perf_counter()
    with BrokerProcess(data_dir, environment=environment) as broker:
        create_topic(address_of(broker), "first", flush="commit")
        produce_load(address_of(broker), frame, requests=0)  # its check is one acknowledged record
        return time.perf_counter() - start


def _memory(broker: BrokerProcess, case: str, *, aim: float | None) -> Row:
    return Row(
        question="resident memory",
        case=case,
        value=used([broker.pid]).resident_bytes / 1e6,
        unit="MB",
        aim=aim,
        at_most=True,
    )
