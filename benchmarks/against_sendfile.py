"""How near a fetch comes to sending the same file over loopback with nothing but `sendfile`.

A reader that waits for each answer before it asks again, as Kafka's clients do, and one that does
not; of what the disk has had for long, and of what was written a moment ago.

Neither begins with a connection that is new: a fetch's reader has had one answer before its clock
starts, and whoever only receives has had as much. Until then a connection finds out how much its
ends take at once.
"""

from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.anew import Anew
from benchmarks.harness import Row, in_pairs, row_of_pairs
from benchmarks.limits import transfer
from benchmarks.raw_client import batch_of, create_topic, fetch_load, produce_frame, produce_load
from tidemark.protocol.records.header import read_header

Address = tuple[str, int]
_FETCH_BYTES: Final = 8 << 20
_REQUESTS: Final = 500
_TAIL_REQUESTS: Final = 200


def _batch() -> bytes:
    return batch_of(1_000_000, record_bytes=1_000)


FETCHED: Final = "1 connection, 8 MB a fetch"
AHEAD: Final = f"{FETCHED}, the next asked for when an answer begins"


def fetch(address: Address, data: Path, case: str, *, ahead: bool, aim: float | None) -> Row:
    return _same_data(address, data, "fetch", case, ahead=ahead, aim=aim)


def fetch_when_asked(address: Address, data: Path) -> Row:
    """Beside a server that does nothing but to wait until it is asked, and to send: what a reader
    that waits could have at most."""
    question = "fetch: beside a bare server that is asked for each 8 MB"
    return _same_data(address, data, question, FETCHED, asked_bytes=_FETCH_BYTES)


def _same_data(
    address: Address,
    data: Path,
    question: str,
    case: str,
    *,
    ahead: bool = False,
    asked_bytes: int | None = None,
    aim: float | None = None,
) -> Row:
    with _topics(address, data, "fetched") as begin:
        topic = begin()
        size_bytes = _fill(address, topic, _REQUESTS)
        return row_of_pairs(
            question,
            f"the same data, {case}",
            "MB/s",
            in_pairs(
                lambda: _fetched(address, topic, _REQUESTS, ahead=ahead),
                lambda: _sendfile(data, topic, size_bytes, asked_bytes=asked_bytes),
            ),
            against="loopback sendfile" if asked_bytes is None else "loopback sendfile, asked for",
            aim=aim,
        )


def tail(address: Address, data: Path, case: str, *, ahead: bool, aim: float | None) -> Row:
    """What was written a moment ago, and no disk has yet; each time a topic of its own, for what
    is sent without a broker, too."""
    with _topics(address, data, "tail") as begin:

        def run() -> float:
            topic = begin()
            _fill(address, topic, _TAIL_REQUESTS)
            return _fetched(address, topic, _TAIL_REQUESTS, ahead=ahead)

        def limit() -> float:
            topic = begin()
            return _sendfile(data, topic, _fill(address, topic, _TAIL_REQUESTS))

        return row_of_pairs(
            "fetch",
            f"what was written a moment ago, {case}",
            "MB/s",
            in_pairs(run, limit),
            against="loopback sendfile",
            aim=aim,
        )


def _topics(address: Address, data: Path, name: str) -> Anew:
    host, port = address
    return Anew(f"{host}:{port}", data, name, partial(create_topic, address, flush="os"))


def _fill(address: Address, topic: str, requests: int) -> int:
    """Write so many large batches; how many bytes these are."""
    batch = _batch()
    produce_load(address, produce_frame(topic, batch, acks=-1), requests=requests - 1)
    return requests * len(batch)


def _fetched(address: Address, topic: str, requests: int, *, ahead: bool) -> float:
    end = requests * read_header(_batch()).record_count
    load = fetch_load(address, topic, end_offset=end, bytes_max=_FETCH_BYTES, ahead=ahead)
    return load.bytes_per_second / 1e6


def _sendfile(data: Path, topic: str, size_bytes: int, *, asked_bytes: int | None = None) -> float:
    """The very file that the broker sends from, without a broker."""
    (segment,) = (data / f"{topic}-0").glob("*.log")
    sent = transfer(segment, size_bytes, before_bytes=_FETCH_BYTES, asked_bytes=asked_bytes)
    return sent.bytes_per_second / 1e6
