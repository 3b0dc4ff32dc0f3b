"""Reading the journal back: the chain of blocks, where it ends, and whether it should have.

A crash may leave anything behind the last sync: blocks torn, missing, or there though one before
them is not. All of that is a *torn tail*, and is not part of the journal. Each block says up to
where the journal was on the disk when it was written. So a bad block that some other block
vouches for is no torn tail but *damage*, and records that were promised to be durable may be gone.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from tidemark.partitions.storage.files import File, Files
from tidemark.partitions.storage.journal.blocks import (
    MAGIC,
    PAGE_BYTES,
    Header,
    Lsn,
    decode_header,
    decode_table,
    is_sound,
    table_end,
)
from tidemark.partitions.storage.journal.names import journal_files, was_damaged
from tidemark.partitions.storage.journal.records import RecordKind
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.values import dataclass

_CHUNK_BYTES: Final = 1024 * 1024


class Extent(NamedTuple):
    """Where a payload lies, to be read again without being kept in memory."""

    file: File
    position: int
    length: int

    def read(self) -> bytes:
        return self.file.pread(self.length, self.position)


class StoredRecord(NamedTuple):
    """A record of the journal. Its payload keeps the whole block in memory: let go of it."""

    key: PartitionKey
    kind: RecordKind
    payload: memoryview
    is_sound: bool
    """Whether the payload is what was written. Where not, it was damaged after it was durable."""
    place: Extent


@dataclass(frozen=True, slots=True)
class _Block:
    """A block whose header and table are sound."""

    path: str
    file: File
    position: int
    header: Header
    head: bytes
    """Header and table."""

    @property
    def end(self) -> Lsn:
        return Lsn(self.header.lsn + self.header.pages)

    def records(self) -> list[StoredRecord]:
        data = self.file.pread(self.header.size_bytes, self.position)
        view = memoryview(data)
        return [
            StoredRecord(
                key,
                kind,
                view[at : at + length],
                at + length <= len(data) and crc32c(view[at : at + length]) == crc,
                Extent(self.file, self.position + at, length),
            )
            for key, kind, at, length, crc in decode_table(self.header, self.head)
        ]


class ReadJournal:
    """A journal as the last process left it. `records` gives what there is from `start` on."""

    def __init__(
        self, files: Files, path: str, owner: UUID, start: Lsn, *, former_owner: UUID | None = None
    ) -> None:
        """Find the blocks of all files. Blocking: every page is looked at.

        Of blocks by `former_owner` nothing is read; but they are a journal's.
        """
        self._start = start
        self.paths = [f"{path}/{name}" for name in journal_files(files, path)]
        readers = [(path, files.open_reader(path)) for path in self.paths]
        blocks = [block for reader in readers for block in _blocks(*reader, owner)]
        former = (
            block
            for reader in readers
            if former_owner is not None
            for block in _blocks(*reader, former_owner)
        )
        self.is_missing = not blocks and not was_damaged(files, path) and not any(former)
        """There is not one block of this directory's, of whatever age."""
        self.synced_lsn = max((block.header.synced_lsn for block in blocks), default=start)
        """All before was once on the disk."""
        self.next_lsn = max((block.end for block in blocks), default=start)
        """No block, whole or torn or of old, reaches up to here."""
        self._by_lsn: dict[Lsn, list[_Block]] = {}
        for block in blocks:
            if block.header.record_count and block.header.lsn >= start:
                self._by_lsn.setdefault(block.header.lsn, []).append(block)
        self.block_count = 0
        """Blocks read, when `records` is through; also the following."""
        self.cut_bytes = 0
        self.damage: list[str] = []
        """A sentence for each place where something durable is not as it was."""
        self.is_torn_apart = False
        """A block is missing, and nobody knows whose records were in it."""
        self._files, self._directory = files, path
        self._unsynced: list[_Block] = []
        """Those that were read, and that no block vouches for."""

    def records(self) -> Iterator[StoredRecord]:
        """All records in order, those that are damaged too; not those of a torn tail."""
        lsn = self._start
        while True:
            block, records = self._read(lsn)
            is_whole = block is not None and all(record.is_sound for record in records)
            if not is_whole and lsn >= self.synced_lsn:
                break
            if not is_whole:
                self._note_damage(lsn, block, records)
            if block is None:
                lsn = min(found for found in (*self._by_lsn, self.synced_lsn) if found > lsn)
                continue
            self.block_count += 1
            if lsn >= self.synced_lsn:
                self._unsynced.append(block)
            yield from records
            lsn = block.end
        tail = [blocks[0] for found, blocks in self._by_lsn.items() if found >= lsn]
        self.cut_bytes = sum(block.header.size_bytes for block in tail)

    def make_durable(self) -> None:
        """Have on the disk what was read, so that what is done about it may be. Blocking.

        After a crash of the process alone, the last blocks may be in the page cache only. They are
        written again, for a sync may have failed: then they count as written, and are not. Raises
        `OSError`.
        """
        by_path: dict[str, list[_Block]] = {}
        for block in self._unsynced:
            by_path.setdefault(block.path, []).append(block)
        for path, blocks in by_path.items():
            file = self._files.open(path)
            for block in blocks:
                size_bytes = block.header.size_bytes
                file.pwrite(file.pread(size_bytes, block.position), block.position)
            file.sync()
        if by_path:
            self._files.sync_directory(self._directory)

    def _read(self, lsn: Lsn) -> tuple[_Block | None, Sequence[StoredRecord]]:
        """The block at `lsn`: the whole one, where the disk was full and half of one was left
        before it was written to another file."""
        found: tuple[_Block | None, Sequence[StoredRecord]] = (None, ())
        for block in self._by_lsn.get(lsn, ()):
            found = block, block.records()
            if all(record.is_sound for record in found[1]):
                break
        return found

    def _note_damage(self, lsn: Lsn, block: _Block | None, records: Sequence[StoredRecord]) -> None:
        if block is None:
            self.is_torn_apart = True
            self.damage.append(
                f"block {lsn} is not there, though it was synced: the journal was, up to block "
                f"{self.synced_lsn}"
            )
            return
        for record in records:
            if not record.is_sound:
                self.damage.append(f"{block.path} is corrupt at byte {record.place.position}")


def _blocks(path: str, file: File, owner: UUID) -> Iterator[_Block]:
    """All blocks in a file, of whatever age, whose header and table are sound."""
    for chunk_position in range(0, file.size(), _CHUNK_BYTES):
        chunk = file.pread(_CHUNK_BYTES, chunk_position)
        for at in range(0, len(chunk), PAGE_BYTES):
            if chunk[at : at + len(MAGIC)] == MAGIC:
                block = _block_at(path, file, chunk_position + at, owner)
                if block is not None:
                    yield block


def _block_at(path: str, file: File, position: int, owner: UUID) -> _Block | None:
    found = decode_header(owner, file.pread(PAGE_BYTES, position))
    if found is None:
        return None
    header, crc = found
    if position + table_end(header) > file.size():
        return None
    head = file.pread(table_end(header), position)
    return _Block(path, file, position, header, head) if is_sound(crc, head) else None
