"""Bits that turn over in what a broker has stored, while it is down."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from struct import Struct
from typing import Final, NamedTuple

from tests.chaos.brokers import TIDEMARK, ChaosCluster
from tests.chaos.faults.fault import WRONG, any_broker, wait_until
from tidemark.partitions.storage.journal.blocks import MAGIC, PAGE_BYTES

_REPAIR_SECONDS: Final = 20.0
_FIELDS: Final = Struct(">QQII")
_FIELDS_END: Final = 48
_ENTRY_BYTES: Final = 32
_NEWEST_BLOCKS: Final = 20
_NOTICED: Final = re.compile("is corrupt at byte|is not there, though it was synced")
_AROUND_BYTES: Final = 64


@contextmanager
def flip_in_segment(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """`tidemark log verify` has to find it; nobody may be given it; in the end it is put right.

    A broker that does not read a batch again does not notice. Clients do, by the CRC.
    """
    broker = any_broker(cluster, rng)
    broker.kill_if_running()
    path = _any_file(broker.data_dir.glob("*-*/*.log"), rng)
    if path is None:
        yield "no segment to damage"
        cluster.start_missing()
        return
    flip = Flip(path, rng.randrange(path.stat().st_size), rng.randrange(8))
    said = f"{flip} of {broker.node}"
    if not _is_found(path.parent):
        said = f"{WRONG}{said}: not found by log verify"
    broker.spawn()
    try:
        yield said
    finally:
        broker.kill_if_running()
        flip.undo()
        cluster.start_missing()


@contextmanager
def flip_in_journal(cluster: ChaosCluster, rng: Random) -> Iterator[str]:
    """It stays: a broker that has lost promises says so, and is repaired by the others."""
    broker = any_broker(cluster, rng)
    broker.kill_if_running()
    blocks = _newest_blocks(broker.data_dir / "journal")
    if not blocks:
        yield "no journal to damage"
        cluster.start_missing()
        return
    said_before = len(broker.log)
    block = rng.choice(blocks)
    flip = Flip(block.path, block.position + rng.randrange(block.size_bytes), rng.randrange(8))
    broker.spawn()
    wait_until(lambda: broker.is_ready, _REPAIR_SECONDS)
    is_noticed = _NOTICED.search(broker.log, said_before) is not None
    yield f"{flip} of {broker.node}: " + ("noticed" if is_noticed else "of no meaning any more")
    cluster.start_missing()


class _Block(NamedTuple):
    """A block of the journal; see `partitions/storage/journal/blocks.py`."""

    lsn: int
    synced_lsn: int
    path: Path
    position: int
    size_bytes: int


def _newest_blocks(journal: Path) -> list[_Block]:
    """The last that were synced for certain: one behind them may be taken for a torn tail."""
    found = []
    for path in sorted(journal.glob("*.journal")):
        data = path.read_bytes()
        for position in range(0, len(data), PAGE_BYTES):
            if data.startswith(MAGIC, position):
                lsn, synced_lsn, records, payload_bytes = _FIELDS.unpack_from(data, position + 24)
                size_bytes = _FIELDS_END + _ENTRY_BYTES * records + payload_bytes
                found.append(_Block(lsn, synced_lsn, path, position, size_bytes))
    synced = max((block.synced_lsn for block in found), default=0)
    newest = sorted(block for block in found if block.lsn < synced)
    return newest[-_NEWEST_BLOCKS:]


class Flip:
    """A bit that has turned over."""

    def __init__(self, path: Path, at: int, bit: int) -> None:
        self._path = path
        self._at = at
        self._start = max(0, at - _AROUND_BYTES)
        before = self._around()
        damaged = bytearray(before)
        damaged[at - self._start] ^= 1 << bit
        self._before, self._damaged = before, bytes(damaged)
        self._write(self._damaged)

    def __str__(self) -> str:
        return f"a bit of {self._path.parent.name}/{self._path.name} at {self._at}"

    def undo(self) -> None:
        """Unless the broker has written there meanwhile, and so put it right itself."""
        if self._path.exists() and self._around() == self._damaged:
            self._write(self._before)

    def _around(self) -> bytes:
        with self._path.open("rb") as file:
            file.seek(self._start)
            return file.read(2 * _AROUND_BYTES)

    def _write(self, data: bytes) -> None:
        with self._path.open("r+b") as file:
            file.seek(self._start)
            file.write(data)


def _any_file(found: Iterable[Path], rng: Random) -> Path | None:
    files = sorted(path for path in found if path.stat().st_size)
    return rng.choice(files) if files else None


def _is_found(directory: Path) -> bool:
    command = [*TIDEMARK, "log", "verify", str(directory)]
    return (
        subprocess.run(command, capture_output=True, check=False, process_group=0).returncode != 0
    )
