"""How near a fetch comes to sending the same file over loopback with nothing but `sendfile`.

A reader that waits for each answer before it asks again, as Kafka's clients do, and one that does
not; of what the disk has had for long, and of what was written a moment ago.
"""

import itertools
from pathlib import Path
from typing import Final

from benchmarks.harness import Row, in_pairs, row_of_pairs
from benchmarks.limits import transfer
from benchmarks.raw_client import batch_of, create_topic, fetch_load, produce_frame, produce_load
from tidemark.protocol.records.header import read_header

Address = tuple[str, int]
_RUNS: Final = 5
_REQUESTS: Final = 500
_TAIL_REQUESTS: Final = 200


def _batch() -> bytes:
    return batch_of(1_000_000, record_bytes=1_000)


FETCHED: Final = "1 connection, 8 MB a fetch"
AHEAD: Final = f"{FETCHED}, the next asked for when an answer begins"


def fetch(address: Address, data: Path, case: str, *, ahead: bool, aim: float | None) -> Row:
    size_bytes = _fill(address, "fetched", _REQUESTS)
    return row_of_pairs(
        "fetch",
        f"the same data, {case}",
        "MB/s",
        in_pairs(
            lambda: _fetched(address, "fetched", _REQUESTS, ahead=ahead),
            lambda: _sendfile(data, "fetched", size_bytes),
            runs=_RUNS,
        ),
        against="loopback sendfile",
        aim=aim,
    )


def tail(address: Address, data: Path, case: str, *, ahead: bool, aim: float | None) -> Row:
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
        in_pairs(run, limit, runs=_RUNS),
        against="loopback sendfile",
        aim=aim,
    )


def _fill(address: Address, topic: str, requests: int) -> int:
    """Make a topic with so many large batches; how many bytes these are."""
    batch = _batch()
    create_topic(address, topic, flush="os")
    produce_load(address, produce_frame(topic, batch, acks=-1), requests=requests - 1)
    return requests * len(batch)


def _fetched(address: Address, topic: str, requests: int, *, ahead: bool) -> float:
    end = requests * read_header(_batch()).record_count
    load = fetch_load(address, topic, end_offset=end, bytes_max=8 << 20, ahead=ahead)
    return load.bytes_per_second / 1e6


def _sendfile(data: Path, topic: str, size_bytes: int) -> float:
    """The very file that the broker sends from, without a broker."""
    (segment,) = (data / f"{topic}-0").glob("*.log")
    return transfer(segment, size_bytes).bytes_per_second / 1e6
