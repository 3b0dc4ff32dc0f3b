"""Bits that flip on a disk: where, so that it has to be noticed.

What was promised to be on the disk is not as it was. A journal's last blocks cannot be told from
what a crash has torn, for no block after them says that they were synced: those are spared.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple
from uuid import UUID

from tidemark.partitions.storage.journal.blocks import PAGE_BYTES, Header, decode_header
from tidemark.partitions.storage.journal.names import journal_files
from tidemark.partitions.storage.names import LOG_SUFFIX
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import Offset
from tidemark.testing.memory_files import MemoryFiles

_BITS: Final = 8


class _Block(NamedTuple):
    path: str
    position: int
    header: Header


def rot_journal(files: MemoryFiles, path: str, owner: UUID, start: int, rng: Random) -> bool:
    """Flip a bit of a block from `start` on that another one says was synced.

    Whether there was one. What the journal's own reader takes for damage is not asked.
    """
    blocks = _blocks(files, path, owner)
    synced = max((block.header.synced_lsn for block in blocks), default=0)
    vouched = [
        block
        for block in blocks
        if block.header.record_count
        and start <= block.header.lsn
        and block.header.lsn + block.header.pages <= synced
    ]
    if not vouched:
        return False
    block = rng.choice(vouched)
    position = block.position + rng.randrange(block.header.size_bytes)
    files.flip_bit(block.path, position, rng.randrange(_BITS))
    return True


@dataclass(frozen=True, slots=True)
class RottenBit:
    """One in a segment; the byte is not written any more, so it can be put back as it was."""

    key: PartitionKey
    path: str
    position: int
    bit: int
    value: int
    """Of its byte, as it is now."""

    def restore(self, files: MemoryFiles) -> None:
        """From a copy, if the file is still there."""
        if not files.exists(self.path):
            return
        if files.open_reader(self.path).pread(1, self.position) == bytes((self.value,)):
            files.flip_bit(self.path, self.position, self.bit)


def rot_segment(
    files: MemoryFiles, directory: str, key: PartitionKey, end: Offset, rng: Random
) -> RottenBit | None:
    """Flip a bit of a segment that is full and that lies below `end`: nobody writes to it again.

    `None` if there is none.
    """
    names = sorted(name for name in files.sizes(directory) if name.endswith(LOG_SUFFIX))
    full = [
        f"{directory}/{name}"
        for name, following in pairwise(names)
        if int(following.removesuffix(LOG_SUFFIX)) <= end
    ]
    if not full:
        return None
    path = rng.choice(full)
    file = files.open_reader(path)
    if not file.size():
        return None
    position, bit = rng.randrange(file.size()), rng.randrange(_BITS)
    files.flip_bit(path, position, bit)
    return RottenBit(key, path, position, bit, file.pread(1, position)[0])


def _blocks(files: MemoryFiles, path: str, owner: UUID) -> list[_Block]:
    """All that look like blocks of this directory's, of whatever age."""
    found = []
    for name in journal_files(files, path):
        file = files.open_reader(f"{path}/{name}")
        for position in range(0, file.size(), PAGE_BYTES):
            decoded = decode_header(owner, file.pread(PAGE_BYTES, position))
            if decoded is not None:
                found.append(_Block(f"{path}/{name}", position, decoded[0]))
    return found
