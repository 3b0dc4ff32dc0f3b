"""The file of a segment that is gone, kept for the next one of the same log.

To write over pages and blocks that are there takes half as long as to find new ones, and to sync
them as long again: nothing has to be recorded of where they are, or of how long the file is. So
where a log loses segments as it gains others, each new one is written over an old one.

It is longer than its segment then, and behind the segment's end is what was there before. A start
finds the end nonetheless:

* Batches there have smaller offsets than any that could follow: the log had begun behind them when
  their file was kept. So a file is of no use to any other log, nor to this one once it has begun
  anew.
* A batch's CRC leaves out its first bytes, with the offset. Where a crash left no more than these
  of a new batch, they could continue as an old one that stood in the same place. Disks write whole
  sectors, so that takes one that ends between the offset and the CRC. Before a file is written
  over, each old batch that lies so has its CRC spoilt, durably. That is one in 25, and cheap where
  batches are large: only there a file is kept.

The file is cut to its segment when that is complete, and when the log is closed.

A file that is not in memory any more is not kept. Most batches end within a page, and the rest of
that page would have to be read from the disk first, by who appends: that takes several times as
long as a new page, and on a slow disk holds the whole broker up, batch after batch.

Whoever still reads the old segment reads that file: it waits until nobody has it open. That is not
enough where `sendfile` has sent something of it. The kernel sends the file's pages, and who has not
read them yet, a client that takes its time, would read the new segment in place of the old. Nobody
can tell when that is over: so only a file is kept from which nothing was ever sent.
"""

from struct import Struct
from threading import Lock
from typing import Final

from tidemark.partitions.storage.files import TEMPORARY_SUFFIX, File, Files, remove_if_there
from tidemark.partitions.storage.scan import iter_batches
from tidemark.partitions.storage.slices import Lender
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.values import dataclass

RECYCLED_NAME: Final = f"recycled{TEMPORARY_SUFFIX}"
"""A start removes it, as all that ends so."""
_CRC_POSITION: Final = 17
_CRC_END: Final = 21
_CRC: Final = Struct(">I")
_SAMPLED_BYTES: Final = 1 << 20
"""One byte of so many is asked for: what leaves the memory leaves it in the order that it came."""


@dataclass(frozen=True, slots=True)
class _Renamed:
    """Kept, but a crash may still bring back the name that it had: not to be touched yet."""

    lender: Lender


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Kept under its one name, to be prepared once nobody has it open."""

    lender: Lender


@dataclass(frozen=True, slots=True)
class _Offered:
    """Prepared: the next segment may be written over it."""

    file: File


@dataclass(frozen=True, slots=True)
class _GivenUp:
    """None will ever be: the path may be another log's by now."""


class RecycledFile:
    """Of one log, one at most. Any thread may use it."""

    # Of ten thousand logs hardly any ever has one, so they have no more than this.
    __slots__ = ("_directory", "_files", "_lock", "_step")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._lock = Lock()
        self._step: _Renamed | _Waiting | _Offered | _GivenUp | None = None
        """How far it has come; `None`: there is none."""

    @property
    def _path(self) -> str:
        return f"{self._directory}/{RECYCLED_NAME}"

    @property
    def is_waiting(self) -> bool:
        """Whether one is kept that is still to be prepared."""
        return isinstance(self._step, _Waiting)

    @property
    def is_offered(self) -> bool:
        """Whether there is one to be taken."""
        return isinstance(self._step, _Offered)

    def keep(self, path: str, lender: Lender) -> None:
        """Have the file at this path lose its name, and keep it if none is offered yet."""
        with self._lock:
            if isinstance(self._step, _Offered | _GivenUp):
                remove_if_there(self._files, path)
            elif self._files.exists(path):
                self._files.rename(path, self._path)
                self._step = _Renamed(lender)

    def settle(self) -> None:
        """That name is gone on the disk, too: what is kept may be prepared, and offered."""
        with self._lock:
            if isinstance(self._step, _Renamed):
                self._step = _Waiting(self._step.lender)

    def prepared(self, batch_bytes: int) -> File | None:
        """What was kept, with nothing in it that could be taken for a batch. Blocking.

        `None` while somebody has it open; and where something was sent from it, some of it is not
        in memory, or its batches have less than so many bytes on average, it is gone then. Raises
        `OSError`.
        """
        step = self._step
        if not isinstance(step, _Waiting):
            return None
        file = self._files.open_alone(self._path)
        if file is None:
            return None
        # Not before: what is to be sent has it open.
        may_be_used = not step.lender.is_lent and _is_in_memory(file)
        if not (may_be_used and _spoil(file, batch_bytes, self._files.sector_bytes)):
            self.drop()
            return None
        return file

    def offer(self, file: File) -> None:
        """That file may be written over from now on."""
        with self._lock:
            if not isinstance(self._step, _GivenUp):
                self._step = _Offered(file)

    def take(self, path: str) -> File | None:
        """The file, open and with another name; `None` if none is offered."""
        with self._lock:
            if not isinstance(self._step, _Offered):
                return None
            file, self._step = self._step.file, None
            try:
                self._files.rename(self._path, path)
            except FileNotFoundError:
                return None
            return file

    def drop(self) -> None:
        """Remove it, if there is one, offered or not."""
        with self._lock:
            if not isinstance(self._step, _GivenUp):
                self._step = None
                remove_if_there(self._files, self._path)

    def give_up(self) -> None:
        """Its path may be another log's from now on."""
        with self._lock:
            self._step = _GivenUp()


def spoilt(crc: int) -> int:
    """What an old batch has in place of its CRC."""
    return ~crc & 0xFFFFFFFF


def _is_in_memory(file: File) -> bool:
    return all(map(file.is_in_memory, range(0, file.size(), _SAMPLED_BYTES)))


def _spoil(file: File, batch_bytes: int, sector_bytes: int) -> bool:
    """Spoil the batches that could go on behind a new one's first bytes, durably; whether all are:
    `False` where they are small, or something is no batch."""
    size_bytes, count = file.size(), 0
    try:
        for position, header in iter_batches(file, 0, size_bytes):
            count += 1
            if count * batch_bytes > size_bytes:
                return False
            if position % sector_bytes + _CRC_END > sector_bytes:
                # Each by itself: a sync would write all that is there, which nobody wants any more.
                file.pwritev_synced((_CRC.pack(spoilt(header.crc)),), position + _CRC_POSITION)
    except CorruptBatch:
        return False
    return True
