"""How far is the broker from what this machine can do?

A load client that costs next to nothing drives one connection, five requests in flight, and the
same client drives the bare loop: the least that a broker in Python must do with the same bytes.
Fetching is held to a bare `sendfile` of the same file over loopback. Broker and limit are measured
in turn, in many short pairs, so that a noisy neighbour or a slow minute disturbs both.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.against_sendfile import AHEAD, FETCHED, fetch, fetch_when_asked, tail
from benchmarks.anew import Anew
from benchmarks.calm import open_calm_broker
from benchmarks.harness import PAIRS, Row, in_pairs, row_of, row_of_pairs
from benchmarks.kept_short import KeptShort
from benchmarks.raw_client import (
    Load,
    batch_of,
    create_topic,
    produce_frame,
    produce_load,
)
from tidemark.testing.process import BrokerProcess

Address = tuple[str, int]
Bare = Mapping[str, Address]
"""The bare loop by `flush`: with `commit` it syncs what it answers. And so the one whose disk has a
thread, by `pipeline os` and `pipeline commit`."""
_PIPELINE: Final = "benchmarks.bare_pipeline"


class Limit(NamedTuple):
    """What the broker is held to."""

    flush: str
    loop: str
    """Which, of the bare loops."""
    name: str
    added: str = ""
    """To the case, where another limit has the same."""


_OS: Final = Limit("os", "os", "the bare loop")
_COMMIT: Final = Limit("commit", "commit", "the bare loop, synced")
_COMMIT_WITH_THREAD: Final = Limit(
    "commit", "pipeline commit", "the bare loop whose disk has a thread", ", beside the pipeline"
)

_IN_FLIGHT: Final = 5
"""As many as idempotent clients allow."""
_SEVERAL: Final = 20
_PRODUCERS: Final = 4
_DEEP: Final = 100
"""Clients that are not idempotent have hardly a limit: librdkafka's default is a million."""

# Bytes of a batch, bytes of its records, requests in a run: about a fifth of a second of them.
_ONE_RECORD = (1_100, 1_000, 3_000)
_MANY_OF_ONE_RECORD = (1_100, 1_000, 15_000)
_ONE_RECORD_OF_MANY = (1_100, 1_000, 6_000)
_SMALL = (16_384, 1_000, 2_500)
_SMALL_SYNCED = (16_384, 1_000, 500)
# Longer, for a log is synced in the background a few times a second: on a quick host, 500 MB had
# nothing of that. Nearly a segment, so that there is always an old one's file to write over.
_LARGE = (1_000_000, 1_000, 1_000)
_LARGE_BYTES: Final = 1_000_000
"""Of a request: what so many write is gigabytes, and hangs on the pages that it is written to."""


def measure(directory: Path) -> Iterator[Row]:
    """The rows for produce and fetch at `flush=os`, and for produce at `flush=commit`.

    The broker is one that has settled in, and of each question nothing is left: dirty pages of one
    would be written while the next one is measured.
    """
    folder = directory / "limits"
    with (
        open_calm_broker(folder) as broker,
        bare_loop(folder / "bare") as cached,
        bare_loop(folder / "bare-synced", "--sync") as synced,
        bare_loop(folder / "pipeline", module=_PIPELINE) as cached_over,
        bare_loop(folder / "pipeline-synced", "--sync", module=_PIPELINE) as synced_over,
    ):
        bare = {
            "os": cached,
            "commit": synced,
            "pipeline os": cached_over,
            "pipeline commit": synced_over,
        }
        for question in _QUESTIONS:
            yield question(address_of(broker), bare, folder)


def _requests(
    address: Address,
    folder: Path,
    case: str,
    shape: tuple[int, int, int],
    *,
    aim: float | None,
    connections: int = 1,
    in_flight: int = _IN_FLIGHT,
) -> Row:
    many = "1 connection" if connections == 1 else f"{connections} connections"
    with _producer(
        address, folder, "os", shape, connections=connections, in_flight=in_flight
    ) as run:
        run()
        return row_of(
            "produce, flush=os",
            f"{case}, {many}, {in_flight} in flight",
            "requests/s",
            [run().requests_per_second for _ in range(PAIRS)],
            aim=aim,
        )


def _against(
    limit: Limit,
    address: Address,
    bare: Bare,
    folder: Path,
    *,
    case: str,
    shape: tuple[int, int, int],
    aim: float | None = None,
    is_new: bool = False,
) -> Row:
    batch_bytes, record_bytes, requests = shape
    frame = produce_frame("bare", batch_of(batch_bytes, record_bytes=record_bytes), acks=-1)
    with _producer(address, folder, limit.flush, shape, is_new=is_new) as run:
        return row_of_pairs(
            f"produce, flush={limit.flush}" + (", a new topic" if is_new else ""),
            f"{case} requests, 1 connection, {_IN_FLIGHT} in flight{limit.added}",
            "MB/s",
            in_pairs(
                lambda: _megabytes(run()),
                lambda: _bare(bare[limit.loop], frame, requests),
                at_rest=True,
            ),
            against=limit.name,
            aim=aim,
        )


def _bare(bare: Address, frame: bytes, requests: int) -> float:
    return _megabytes(produce_load(bare, frame, requests=requests, check=lambda _: None))


def _commit_against_os(
    address: Address, folder: Path, *, connections: int = 1, in_flight: int = _IN_FLIGHT
) -> Row:
    """What it costs that a batch is synced before it is answered.

    All that came during one sync goes into the next. With five in flight that is two or three of
    them, for the rest are being received, or answered: so the disk is idle a part of the time.
    """
    many = "1 connection" if connections == 1 else f"{connections} connections"
    load = partial(
        _producer, address, folder, shape=_LARGE, connections=connections, in_flight=in_flight
    )
    with load(flush="commit") as synced, load(flush="os") as cached:
        return row_of_pairs(
            "produce, flush=commit beside flush=os",
            f"1 MB requests, {many}, {in_flight} in flight",
            "MB/s",
            in_pairs(lambda: _megabytes(synced()), lambda: _megabytes(cached()), at_rest=True),
            against="flush=os",
            aim=0.6,
        )


def _pipeline_commit_against_os(bare: Bare) -> Row:
    """What the disk leaves of it, where nothing but this is done."""
    batch_bytes, record_bytes, requests = _LARGE
    frame = produce_frame("bare", batch_of(batch_bytes, record_bytes=record_bytes), acks=-1)
    return row_of_pairs(
        "produce, flush=commit beside flush=os: the bare loop whose disk has a thread",
        "1 MB requests, 1 connection, 5 in flight",
        "MB/s",
        in_pairs(
            lambda: _bare(bare["pipeline commit"], frame, requests),
            lambda: _bare(bare["pipeline os"], frame, requests),
            at_rest=True,
        ),
        against="the same without syncs",
    )


def _megabytes(load: Load) -> float:
    return load.bytes_per_second / 1e6


_QUESTIONS: Final[Sequence[Callable[[Address, Bare, Path], Row]]] = (
    lambda broker, _, to: _requests(broker, to, "one 1 KB record", _ONE_RECORD, aim=30_000),
    lambda broker, _, to: _requests(
        broker, to, "one 1 KB record", _MANY_OF_ONE_RECORD, aim=30_000, in_flight=_DEEP
    ),
    lambda broker, _, to: _requests(
        broker, to, "one 1 KB record", _ONE_RECORD_OF_MANY, aim=15_000, connections=100
    ),
    lambda broker, _, to: _requests(broker, to, "16 KB", _SMALL, aim=None),
    partial(_against, _OS, case="one 1 KB record", shape=_ONE_RECORD),
    partial(_against, _OS, case="1 MB", shape=_LARGE, aim=0.8),
    partial(_against, _OS, case="16 KB", shape=_SMALL, aim=0.6),
    partial(_against, _OS, case="1 MB", shape=_LARGE, is_new=True),
    lambda broker, _, to: _commit_against_os(broker, to),
    lambda broker, _, to: _commit_against_os(broker, to, in_flight=_SEVERAL),
    lambda broker, _, to: _commit_against_os(broker, to, connections=_PRODUCERS),
    lambda _broker, bare, _to: _pipeline_commit_against_os(bare),
    partial(_against, _COMMIT_WITH_THREAD, case="1 MB", shape=_LARGE),
    partial(_against, _COMMIT, case="1 MB", shape=_LARGE),
    partial(_against, _COMMIT, case="1 MB", shape=_LARGE, is_new=True),
    partial(_against, _COMMIT, case="16 KB", shape=_SMALL_SYNCED),
    lambda broker, _, to: fetch(broker, to / "data", FETCHED, ahead=False, aim=0.85),
    lambda broker, _, to: fetch_when_asked(broker, to / "data"),
    lambda broker, _, to: fetch(broker, to / "data", AHEAD, ahead=True, aim=0.85),
    lambda broker, _, to: tail(broker, to / "data", FETCHED, ahead=False, aim=0.85),
    lambda broker, _, to: tail(broker, to / "data", AHEAD, ahead=True, aim=0.85),
)


@contextmanager
def _producer(
    address: Address,
    folder: Path,
    flush: str,
    shape: tuple[int, int, int],
    *,
    connections: int = 1,
    in_flight: int = _IN_FLIGHT,
    is_new: bool = False,
) -> Iterator[Callable[[], Load]]:
    """Loads of a topic, to be called. Large requests go to one whose retention keeps up, unless
    each load is to have a new one."""
    batch_bytes, record_bytes, requests = shape
    batch = batch_of(batch_bytes, record_bytes=record_bytes)

    def run(topic: str) -> Load:
        frame = produce_frame(topic, batch, acks=-1)
        return produce_load(
            address, frame, requests=requests, connections=connections, in_flight=in_flight
        )

    bootstrap, make = "{}:{}".format(*address), partial(create_topic, address, flush=flush)
    if batch_bytes >= _LARGE_BYTES and not is_new:
        with KeptShort(bootstrap, f"short-{flush}", make) as topic:
            topic.warmed(lambda name: run(name).size_bytes)
            yield lambda: run(topic())
        return
    with Anew(bootstrap, folder, f"flush-{flush}", make) as begin:
        yield lambda: run(begin())


def address_of(broker: BrokerProcess) -> Address:
    host, _, port = broker.bootstrap.rpartition(":")
    return host, int(port)


@contextmanager
def bare_loop(path: Path, *options: str, module: str = "benchmarks.bare_loop") -> Iterator[Address]:
    """The bare loop in a process of its own."""
    command = [sys.executable, "-m", module, str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield "127.0.0.1", int(process.stdout.readline())
        finally:
            process.kill()
