"""How far is the broker from what this machine can do?

A load client that costs next to nothing drives one connection, five requests in flight, and the
same client drives the bare loop: the least that a broker in Python must do with the same bytes.
Fetching is held to a bare `sendfile` of the same file over loopback. Broker and limit are measured
in turn, in pairs, so that a noisy neighbour disturbs both.
"""

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.anew import Anew
from benchmarks.harness import Row, in_pairs, row_of, row_of_pairs
from benchmarks.limits import transfer
from benchmarks.raw_client import (
    Load,
    batch_of,
    create_topic,
    fetch_load,
    produce_frame,
    produce_load,
)
from tidemark.protocol.records.header import read_header
from tidemark.testing.process import BrokerProcess, open_broker_process

RUNS = 5
Address = tuple[str, int]

# Bytes of a batch, bytes of its records, requests in a run.
_ONE_RECORD = (1_100, 1_000, 10_000)
_SMALL = (16_384, 1_000, 10_000)
_LARGE = (1_000_000, 1_000, 500)
_TAIL_REQUESTS = 200


def measure(directory: Path) -> Iterator[Row]:
    """The rows for produce and fetch at `flush=os`, and for produce at `flush=commit`.

    Each has a broker of its own, whose data is gone afterwards: dirty pages of one question would
    be written while the next one is measured.
    """
    for number, question in enumerate(_QUESTIONS):
        folder = directory / f"limits-{number}"
        folder.mkdir()
        with open_broker_process(folder / "data") as broker, bare_loop(folder / "bare") as bare:
            yield question(address_of(broker), bare, folder)
        shutil.rmtree(folder)


def _requests(
    address: Address,
    folder: Path,
    case: str,
    shape: tuple[int, int, int],
    *,
    aim: float | None,
    connections: int = 1,
) -> Row:
    run = _producer(address, folder, f"requests-{shape[0]}", "os", shape, connections=connections)
    run()
    many = "1 connection" if connections == 1 else f"{connections} connections"
    return row_of(
        "produce, flush=os",
        f"{case}, {many}, 5 in flight",
        "requests/s",
        [run().requests_per_second for _ in range(RUNS)],
        aim=aim,
    )


def _against_bare_loop(
    address: Address,
    bare: Address,
    folder: Path,
    flush: str,
    case: str,
    shape: tuple[int, int, int],
    *,
    aim: float | None,
) -> Row:
    batch_bytes, record_bytes, requests = shape
    run = _producer(address, folder, f"bare-{flush}-{batch_bytes}", flush, shape)
    frame = produce_frame("bare", batch_of(batch_bytes, record_bytes=record_bytes), acks=-1)

    def run_bare() -> Load:
        return produce_load(bare, frame, requests=requests, check=lambda _: None)

    return row_of_pairs(
        f"produce, flush={flush}",
        f"{case} requests, 1 connection, 5 in flight",
        "MB/s",
        in_pairs(lambda: _megabytes(run()), lambda: _megabytes(run_bare()), runs=RUNS),
        against="the bare loop",
        aim=aim,
    )


def _commit_against_os(address: Address, folder: Path) -> Row:
    """What it costs that a batch is synced before it is answered."""
    synced = _producer(address, folder, "synced", "commit", _LARGE)
    cached = _producer(address, folder, "cached", "os", _LARGE)
    return row_of_pairs(
        "produce, flush=commit beside flush=os",
        "1 MB requests, 1 connection, 5 in flight",
        "MB/s",
        in_pairs(lambda: _megabytes(synced()), lambda: _megabytes(cached()), runs=RUNS),
        against="flush=os",
        aim=0.6,
    )


_FETCHED: Final = "1 connection, 8 MB a fetch"
_AHEAD: Final = f"{_FETCHED}, the next asked for when an answer begins"


def _fetch(address: Address, data: Path, case: str, *, ahead: bool, aim: float | None) -> Row:
    size_bytes = _fill(address, "fetched", _LARGE[2])
    return row_of_pairs(
        "fetch",
        f"the same data, {case}",
        "MB/s",
        in_pairs(
            lambda: _fetched(address, "fetched", _LARGE[2], ahead=ahead),
            lambda: _sendfile(data, "fetched", size_bytes),
            runs=RUNS,
        ),
        against="loopback sendfile",
        aim=aim,
    )


def _tail(address: Address, data: Path, case: str, *, ahead: bool, aim: float | None) -> Row:
    """What was written a moment ago, and no disk has yet; each time a topic of its own, for what
    is sent without a broker, too."""
    topics = (f"tail-{number}" for number in itertools.count())

    def run() -> float:
        topic = next(topics)
        _fill(address, topic, _TAIL_REQUESTS)
        return _fetched(address, topic, _TAIL_REQUESTS, ahead=ahead)

    def limit() -> float:
        topic = next(topics)
        return _sendfile(data, topic, _fill(address, topic, _TAIL_REQUESTS))

    return row_of_pairs(
        "fetch",
        f"what was written a moment ago, {case}",
        "MB/s",
        in_pairs(run, limit, runs=RUNS),
        against="loopback sendfile",
        aim=aim,
    )


def _fill(address: Address, topic: str, requests: int) -> int:
    """Make a topic with so many large batches; how many bytes these are."""
    batch = batch_of(_LARGE[0], record_bytes=_LARGE[1])
    create_topic(address, topic, flush="os")
    produce_load(address, produce_frame(topic, batch, acks=-1), requests=requests - 1)
    return requests * len(batch)


def _fetched(address: Address, topic: str, requests: int, *, ahead: bool) -> float:
    end = requests * read_header(batch_of(_LARGE[0], record_bytes=_LARGE[1])).record_count
    return _megabytes(fetch_load(address, topic, end_offset=end, bytes_max=8 << 20, ahead=ahead))


def _sendfile(data: Path, topic: str, size_bytes: int) -> float:
    """The very file that the broker sends from, without a broker."""
    (segment,) = (data / f"{topic}-0").glob("*.log")
    return transfer(segment, size_bytes).bytes_per_second / 1e6


def _megabytes(load: Load) -> float:
    return load.bytes_per_second / 1e6


_QUESTIONS: Final[Sequence[Callable[[Address, Address, Path], Row]]] = (
    lambda broker, _, to: _requests(broker, to, "one 1 KB record", _ONE_RECORD, aim=30_000),
    lambda broker, _, to: _requests(
        broker, to, "one 1 KB record", _ONE_RECORD, aim=15_000, connections=100
    ),
    lambda broker, _, to: _requests(broker, to, "16 KB", _SMALL, aim=None),
    lambda broker, bare, to: _against_bare_loop(broker, bare, to, "os", "1 MB", _LARGE, aim=0.8),
    lambda broker, bare, to: _against_bare_loop(broker, bare, to, "os", "16 KB", _SMALL, aim=0.6),
    lambda broker, _, to: _commit_against_os(broker, to),
    lambda broker, bare, to: _against_bare_loop(
        broker, bare, to, "commit", "1 MB", _LARGE, aim=None
    ),
    lambda broker, bare, to: _against_bare_loop(
        broker, bare, to, "commit", "16 KB", _SMALL, aim=None
    ),
    lambda broker, _, to: _fetch(broker, to / "data", _FETCHED, ahead=False, aim=0.85),
    lambda broker, _, to: _fetch(broker, to / "data", _AHEAD, ahead=True, aim=0.85),
    lambda broker, _, to: _tail(broker, to / "data", _FETCHED, ahead=False, aim=0.85),
    lambda broker, _, to: _tail(broker, to / "data", _AHEAD, ahead=True, aim=0.85),
)


def _producer(
    address: Address,
    folder: Path,
    topic: str,
    flush: str,
    shape: tuple[int, int, int],
    *,
    connections: int = 1,
) -> Callable[[], Load]:
    batch_bytes, record_bytes, requests = shape
    batch = batch_of(batch_bytes, record_bytes=record_bytes)
    host, port = address
    begin = Anew(f"{host}:{port}", folder, topic, partial(create_topic, address, flush=flush))

    def run() -> Load:
        frame = produce_frame(begin(), batch, acks=-1)
        return produce_load(address, frame, requests=requests, connections=connections)

    return run


def address_of(broker: BrokerProcess) -> Address:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


@contextmanager
def bare_loop(path: Path) -> Iterator[Address]:
    """The bare loop in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bare_loop", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield "127.0.0.1", int(process.stdout.readline())
        finally:
            process.kill()
