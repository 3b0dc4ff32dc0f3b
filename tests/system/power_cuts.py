"""Power is cut while segments are written over the files of old ones, on a real file system.

What is read afterwards is what was last written at its offset, and with `flush=commit` all of what
was acknowledged: nothing that an older segment had in the file, or a former end of this log.

`unshare --mount python -m tests.system.power_cuts FLUSH SEED CUTS`, as root: what others mount and
keep is another namespace's then.
"""

import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

from tests.chaos.disks import Disk, open_disks
from tests.system.attacks import Peer, batch
from tidemark.protocol.errors import ErrorCode
from tidemark.testing.process import BrokerProcess

TOPIC: Final = "short"
SEGMENT_BYTES: Final = 2_000_000
PAGE_BYTES: Final = 4096
SECONDS_BETWEEN: Final = 0.025
"""Segments follow each other no faster than retention is looked at, so each has an old file."""


class PoweredBroker(BrokerProcess):
    """Whose log is not on the disk."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(disk.path / "data")
        self._log_path = disk.path.parent / "broker.log"


class Written:
    """What was sent, by offset: one batch of one record each."""

    def __init__(self, *, is_synced: bool) -> None:
        self._is_synced = is_synced
        self._numbers: dict[int, int] = {}
        """Of what was last sent for an offset."""
        self._count = 0
        self._end = 0
        """Up to here it was acknowledged."""

    def produce_until(self, peer: Peer, stopped: threading.Event) -> None:
        """Raises when the broker is gone."""
        while not stopped.is_set():
            self._count += 1
            self._numbers[self._end] = self._count
            assert peer.produce(TOPIC, batch(self.value(self._count))) is ErrorCode.NONE
            self._end += 1
            time.sleep(SECONDS_BETWEEN)

    def check(self, peer: Peer) -> None:
        """All that is there. What comes next is sent for the offsets behind it."""
        end = peer.fetch(TOPIC).high_watermark
        assert end <= self._end + 1
        assert not self._is_synced or end >= self._end
        self._end = end
        for record in peer.records_below(TOPIC, end):
            assert record.value == self.value(self._numbers[record.offset]), record.offset

    def value(self, number: int) -> bytes:
        """Of the record of this number."""
        size = Random(number // 40 % 5).randrange(70_000, 300_000)  # many of one size
        return number.to_bytes(8, "big") * (size // 8)


def write_some_pages(folder: Path, rng: Random) -> None:
    """Any pages of the segments reach the disk, in any order, before the power goes."""
    for path in folder.glob("*.log"):
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY)
            try:
                for _ in range(rng.randrange(8)):
                    at = rng.randrange(SEGMENT_BYTES // PAGE_BYTES) * PAGE_BYTES
                    length = rng.choice((1, 2, 40)) * PAGE_BYTES
                    os.posix_fadvise(file, at, length, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


def lose_power(broker: PoweredBroker, disk: Disk, written: Written, rng: Random) -> int:
    """While it is written to; how many files had been used again by then."""
    stopped, inodes, count = threading.Event(), dict[int, str](), 0
    folder = broker.data_dir / f"{TOPIC}-0"

    def produce() -> None:
        with suppress(OSError, EOFError, AssertionError), Peer(broker.bootstrap) as peer:
            written.produce_until(peer, stopped)

    thread = threading.Thread(target=produce)
    thread.start()
    until = time.monotonic() + rng.uniform(0.5, 1.5)
    while time.monotonic() < until:
        for path in folder.glob("*.log"):
            with suppress(FileNotFoundError):
                inode = path.stat().st_ino
                count += inodes.setdefault(inode, path.name) != path.name
                inodes[inode] = path.name
        time.sleep(0.02)
    write_some_pages(folder, rng)
    disk.cut_power()
    broker.kill()
    stopped.set()
    thread.join()
    disk.restore()
    return count


def main(flush: str, seed: int, cuts: int) -> int:
    """How many files had been used again when the power went. Raises `AssertionError`."""
    rng, used_again = Random(seed), 0
    with tempfile.TemporaryDirectory() as directory, open_disks(Path(directory), [1]) as disks:
        disk = disks[1]
        assert disk.can_fail
        broker, written = PoweredBroker(disk), Written(is_synced=flush == "commit")
        with broker:
            with Peer(broker.bootstrap) as peer:
                size = str(SEGMENT_BYTES)
                peer.create_topic(TOPIC, flush=flush, segment_bytes=size, retention_bytes=size)
            for _ in range(cuts):
                used_again += lose_power(broker, disk, written, rng)
                broker.start()
                with Peer(broker.bootstrap) as peer:
                    written.check(peer)
            assert broker.stop() == 0
    return used_again


if __name__ == "__main__":
    print(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), "files used again")
