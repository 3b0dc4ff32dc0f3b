"""What this machine can do at most, with no broker: what the other figures are held to.

* *loopback sendfile*: a process sends a file from the page cache, not paced, and this one receives
  it;
* *sync latency*: appending and overwriting 4 KB and syncing it, on the disk under `directory`.

The third limit, the bare loop, is `bare_loop`'s.
"""

import multiprocessing
import os
import resource
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import Row
from tidemark.broker.network.same_machine import send_unpaced_if_near
from tidemark.client.load import percentile

_CHUNK_BYTES = 1 << 20
_ASKED = b"?"
_SYNCS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """One file through loopback."""

    bytes_per_second: float
    cpu_seconds_per_byte: float
    """Of the sender."""


def sendfile_transfers(directory: Path, *, size_bytes: int, runs: int) -> Sequence[Transfer]:
    path = directory / "sendfile"
    size_bytes -= size_bytes % _CHUNK_BYTES
    with path.open("wb", buffering=0) as file:
        for _ in range(size_bytes // _CHUNK_BYTES):
            file.write(bytes(_CHUNK_BYTES))
    transfers = [transfer(path, size_bytes) for _ in range(runs + 1)]
    path.unlink()
    return transfers[1:]  # the first one warmed the cache


def transfer(
    path: Path, size_bytes: int, *, before_bytes: int = 0, asked_bytes: int | None = None
) -> Transfer:
    """The first `size_bytes` of a file, once; `before_bytes` of it come before the clock starts.
    With `asked_bytes` the sender waits to be asked for each so many."""
    before = _children_seconds()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        context = multiprocessing.get_context("fork")
        sizes = (before_bytes, size_bytes)
        pieces = asked_bytes or before_bytes + size_bytes
        sender = context.Process(target=_send, args=(path, listener.getsockname(), sizes, pieces))
        sender.start()
        connection, _ = listener.accept()
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        with connection:
            _receive_in_pieces(connection, buffer, before_bytes, pieces)
            start = time.perf_counter()
            _receive_in_pieces(connection, buffer, size_bytes, pieces)
            seconds = time.perf_counter() - start
        sender.join()
    return Transfer(
        bytes_per_second=size_bytes / seconds,
        cpu_seconds_per_byte=(_children_seconds() - before) / (before_bytes + size_bytes),
    )


def _receive_in_pieces(
    connection: socket.socket, buffer: memoryview, left: int, piece_bytes: int
) -> None:
    while left:
        connection.sendall(_ASKED)
        size_bytes = min(left, piece_bytes)
        _receive(connection, buffer, size_bytes)
        left -= size_bytes


def _receive(connection: socket.socket, buffer: memoryview, left: int) -> None:
    while left:
        received = connection.recv_into(buffer[:left])
        if not received:
            raise ConnectionError("the sender has failed")
        left -= received


def _children_seconds() -> float:
    """What processes of this one have used that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _send(path: Path, address: tuple[str, int], sizes: Sequence[int], piece_bytes: int) -> None:
    """So many bytes of it, each time from its start; no more than a piece without being asked."""
    with socket.create_connection(address) as connection, path.open("rb") as file:
        send_unpaced_if_near(connection)
        for size_bytes in sizes:
            offset = end = 0
            while offset < size_bytes:
                if offset == end:
                    connection.recv(len(_ASKED))
                    end = min(offset + piece_bytes, size_bytes)
                count = min(end - offset, _CHUNK_BYTES)
                offset += os.sendfile(connection.fileno(), file.fileno(), offset, count)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncLatency:
    """Milliseconds for 4 KB and one `fdatasync`."""

    append_p50: float
    append_p99: float
    overwrite_p50: float
    overwrite_p99: float

    def rows(self, question: str) -> Sequence[Row]:
        """Its rows in a table, under that question."""
        return [
            Row(question=question, case=case, value=value, unit="ms", runs=_SYNCS)
            for case, value in (
                ("append 4 KB, p50", self.append_p50),
                ("append 4 KB, p99", self.append_p99),
                ("overwrite 4 KB, p50", self.overwrite_p50),
                ("overwrite 4 KB, p99", self.overwrite_p99),
            )
        ]


def sync_latency(directory: Path, *, samples: int = _SYNCS) -> SyncLatency:
    """How long a synced write takes here, at the end of a growing file and over a written one."""
    path = directory / "sync"
    block = os.urandom(4096)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:

        def timed(write: Callable[[int], object]) -> list[float]:
            taken = []
            for number in range(samples):
                start = time.perf_counter()
                write(number)
                os.fdatasync(descriptor)
                taken.append((time.perf_counter() - start) * 1e3)
            return sorted(taken)

        append = timed(lambda number: os.pwrite(descriptor, block, number * 4096))
        overwrite = timed(lambda number: os.pwrite(descriptor, block, number * 4096))
    finally:
        os.close(descriptor)
        path.unlink()
    return SyncLatency(
        append_p50=percentile(append, 0.5),
        append_p99=percentile(append, 0.99),
        overwrite_p50=percentile(overwrite, 0.5),
        overwrite_p99=percentile(overwrite, 0.99),
    )
