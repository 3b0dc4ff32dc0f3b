"""The journal's format: blocks in fixed-size files.

All that is written at once is one *block*. It begins on a page of 4096 bytes, so that a write that
a crash tears never touches a sector that was synced before. Its *lsn* is the number of that page,
counted from the first page the directory's journal ever wrote: the next block's lsn is this one's
and its pages, in whichever file it lies.

| at | field         | type     | |
|---:|---------------|----------|-|
|  0 | magic         | 4 bytes  | `TMJ1` |
|  4 | crc           | uint32   | CRC32C of the rest of the header and the table |
|  8 | owner         | 16 bytes | a secret of the directory's: no client's bytes look like a block |
| 24 | lsn           | uint64   | |
| 32 | synced_lsn    | uint64   | when this was written, all below was on the disk |
| 40 | record_count  | uint32   | 0: a note of what was synced, overwritten by the next block |
| 44 | payload_bytes | uint32   | |
| 48 | table         | 32 bytes for each record | |
|    | payloads      |          | in the table's order, then zeros to the end of the page |

An entry of the table:

| at | field     | type     | |
|---:|-----------|----------|-|
|  0 | topic id  | 16 bytes | |
| 16 | partition | int32    | |
| 20 | kind      | uint8, 3 bytes unused | |
| 24 | length    | uint32   | of the payload |
| 28 | crc       | uint32   | CRC32C of the payload |

So damage to a payload is known to be that partition's alone. Files are written over again and
again; what an earlier use left has a smaller lsn, and is not where its lsn is due.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple, NewType
from uuid import UUID

from tidemark.partitions.storage.journal.records import JournalRecord, RecordKind
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.crc32c import crc32c
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import BytesLike

Lsn = NewType("Lsn", int)
"""A page of the journal, counted from the first it ever wrote."""

PAGE_BYTES: Final = 4096
MAGIC: Final = b"TMJ1"
FIRST_LSN: Final = Lsn(1)

_HEADER: Final = Struct(">4sI16sQQII")
_CHECKED: Final = Struct(">16sQQII")
_CHECKED_AT: Final = _HEADER.size - _CHECKED.size
_ENTRY: Final = Struct(">16siB3xII")
_ZEROS: Final = bytes(PAGE_BYTES)
_KINDS: Final = frozenset(map(int, RecordKind))


class Header(NamedTuple):
    """A block's header, its CRC checked."""

    lsn: Lsn
    synced_lsn: Lsn
    record_count: int
    payload_bytes: int

    @property
    def table_bytes(self) -> int:
        return self.record_count * _ENTRY.size

    @property
    def size_bytes(self) -> int:
        """Without the zeros that fill the last page."""
        return _HEADER.size + self.table_bytes + self.payload_bytes

    @property
    def pages(self) -> int:
        return pages_of(self.size_bytes)


class Entry(NamedTuple):
    """One record, as the table has it; `at` is where its payload begins in the block."""

    key: PartitionKey
    kind: RecordKind
    at: int
    length: int
    crc: int


def pages_of(size_bytes: int) -> int:
    return -(-size_bytes // PAGE_BYTES)


def block_bytes(records: Sequence[JournalRecord]) -> int:
    """How long a block of these records is, without the zeros at its end."""
    payloads = sum(len(record.payload) for record in records)
    return _HEADER.size + len(records) * _ENTRY.size + payloads


def encode(
    owner: UUID, lsn: Lsn, synced_lsn: Lsn, records: Sequence[JournalRecord]
) -> list[BytesLike]:
    """A block in parts, payloads as they are; together they are whole pages."""
    table = b"".join(
        [
            _ENTRY.pack(key.topic_id.bytes, key.partition, kind, len(payload), crc32c(payload))
            for key, kind, payload in records
        ]
    )
    payload_bytes = sum(len(record.payload) for record in records)
    checked = _CHECKED.pack(owner.bytes, lsn, synced_lsn, len(records), payload_bytes)
    crc = crc32c(table, crc32c(checked)) if table else crc32c(checked)
    parts: list[BytesLike] = [b"".join((MAGIC, crc.to_bytes(4, "big"), checked, table))]
    parts += [record.payload for record in records if len(record.payload)]
    fill = -(_HEADER.size + len(table) + payload_bytes) % PAGE_BYTES
    if fill:
        parts.append(_ZEROS[:fill])
    return parts


def decode_header(owner: UUID, data: bytes) -> tuple[Header, int] | None:
    """The header that `data` begins with and its CRC, which is to be taken of the table too.

    `None` for what is no header of this directory's.
    """
    if not data.startswith(MAGIC) or len(data) < _HEADER.size:
        return None
    _, crc, owner_bytes, *fields = _HEADER.unpack_from(data)
    if owner_bytes != owner.bytes:
        return None
    lsn, synced_lsn, record_count, payload_bytes = fields
    return Header(Lsn(lsn), Lsn(synced_lsn), record_count, payload_bytes), crc


def is_sound(crc: int, header_and_table: bytes) -> bool:
    return crc == crc32c(memoryview(header_and_table)[_CHECKED_AT:])


def decode_table(header: Header, header_and_table: bytes) -> list[Entry]:
    """The records' entries. Raises `StorageError` for a kind that this release does not know."""
    entries, at = [], _HEADER.size + header.table_bytes
    table = memoryview(header_and_table)[_HEADER.size :]
    for topic_id, partition, kind, length, crc in _ENTRY.iter_unpack(table):
        key = PartitionKey(UUID(bytes=topic_id), partition)
        if kind not in _KINDS:
            raise StorageError(
                f"a journal record is of kind {kind}: a newer Tidemark has written it"
            )
        entries.append(Entry(key, RecordKind(kind), at, length, crc))
        at += length
    return entries


def table_end(header: Header) -> int:
    """Where the payloads begin in the block."""
    return _HEADER.size + header.table_bytes
