"""What the journal need not say at once: that large batches lie synced in the segments.

They are found there without it: a start checks a log from where the last record leaves off, and
what was synced is sound. With the record it need not check that far, and what is not sound there
is no torn tail but damage. So a few groups may go without a write and a sync of their own, and the
next block says it of all of them. It is as with a journal's last block: until something follows
that says it was synced, its damage looks like a tear.

Nothing but that may wait. What else a group has comes behind what was put off, in one block.
"""

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.storage.journal.records import JournalRecord, RecordKind
from tidemark.partitions.storage.state_db import PartitionKey

GROUPS_MAX: Final = 8
"""So many groups wait; those of which a start would take damage for a torn tail."""
_SYNCED: Final = RecordKind.SYNCED


class PutOff:
    """The newest such record of each partition."""

    __slots__ = ("_groups", "_newest")

    def __init__(self) -> None:
        self._newest: dict[PartitionKey, JournalRecord] = {}
        self._groups = 0

    def take_in(self, records: Sequence[JournalRecord]) -> bool:
        """Put a group's records off, if they may wait and no more than a few wait already."""
        if not records or self._groups >= GROUPS_MAX:
            return False
        if any(record.kind is not _SYNCED for record in records):
            return False
        for record in records:
            self._newest[record.key] = record
        self._groups += 1
        return True

    def before(self, records: Sequence[JournalRecord]) -> Sequence[JournalRecord]:
        """What is to be written in place of these: what was put off first."""
        return [*self._newest.values(), *records] if self._newest else records

    def clear(self) -> None:
        """All of it is written."""
        if self._newest:
            self._newest = {}
            self._groups = 0
