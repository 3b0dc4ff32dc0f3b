"""What readers may see of transactions, found out anew from the committed log, and compared."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.records.control import read_marker
from tidemark.protocol.records.header import BatchHeader, iter_headers
from tidemark.protocol.records.records import decode_batch
from tidemark.protocol.types import READ_COMMITTED, Offset, ProducerId
from tidemark.testing.checkers.violation import require
from tidemark.testing.simulator.transactions.asking import Found, Read

_READ_BYTES: Final = 1 << 20


class Ended(NamedTuple):
    """A transaction in a partition, and its marker."""

    producer_id: ProducerId
    first_offset: Offset
    marker_offset: Offset
    is_commit: bool


class CommittedTransactions:
    """One partition's, as the committed part of its log says: nothing is cut from that."""

    def __init__(self) -> None:
        self.end_offset = Offset(0)
        """Below it everything was seen."""
        self.committed_values: set[str] = set()
        """Of what is compacted: all that was committed, whether anybody has read it in time."""
        self._opened: dict[ProducerId, Offset] = {}
        self._ended: list[Ended] = []
        self._values: dict[ProducerId, list[str]] = {}

    def take(self, data: bytes, *, is_compacted: bool = False) -> None:
        """Batches that are committed, those that are known already among them."""
        for at, header in iter_headers(data):
            if header.next_offset <= self.end_offset:
                continue  # what begins below and ends above is a gap that compaction has left
            self.end_offset = header.next_offset
            producer_id = ProducerId(header.producer_id)
            if header.is_control:
                self._end(header, data, at)
            elif header.is_transactional and header.record_count:
                self._opened.setdefault(producer_id, header.base_offset)
                if is_compacted:
                    records = decode_batch(data, header, at)
                    values = [(record.value or b"").decode() for record in records]
                    self._values.setdefault(producer_id, []).extend(values)

    def _end(self, header: BatchHeader, data: bytes, at: int) -> None:
        marker = read_marker(data, header, at)
        producer_id = ProducerId(header.producer_id)
        first = self._opened.pop(producer_id, None)
        values = self._values.pop(producer_id, [])
        if marker is not None and marker.is_commit:
            self.committed_values.update(values)
        if marker is not None and first is not None:
            self._ended.append(Ended(producer_id, first, header.base_offset, marker.is_commit))

    def stable_below(self, high_watermark: Offset) -> Offset:
        """The last stable offset of who knows so much to be committed."""
        undecided = [first for first in self._opened.values() if first < high_watermark]
        undecided += [
            each.first_offset
            for each in self._ended
            if each.first_offset < high_watermark <= each.marker_offset
        ]
        return min([high_watermark, *undecided])

    def aborted_of(self, header: BatchHeader) -> tuple[ProducerId, Offset] | None:
        """The aborted transaction that a batch is in."""
        return next(
            (
                (each.producer_id, each.first_offset)
                for each in self._ended
                if not each.is_commit
                and each.producer_id == header.producer_id
                and each.first_offset <= header.base_offset < each.marker_offset
            ),
            None,
        )

    def aborted(self, start: Offset, end: Offset) -> Iterator[tuple[ProducerId, Offset]]:
        """Those that have records from `start` up to `end`."""
        return (
            (each.producer_id, each.first_offset)
            for each in self._ended
            if not each.is_commit and each.marker_offset >= start and each.first_offset < end
        )


class TransactionJudge:
    """Of all partitions."""

    def __init__(self, compacted: Collection[PartitionKey] = ()) -> None:
        """`compacted`: where records may go before anybody has read them."""
        self._compacted = compacted
        self._partitions: dict[PartitionKey, CommittedTransactions] = {}

    def committed(self, replica: Replica) -> None:
        """A leader knows of more that is committed."""
        known = self._partitions.setdefault(replica.key, CommittedTransactions())
        while known.end_offset < replica.high_watermark:
            found = replica.read(known.end_offset, bytes_max=_READ_BYTES, at_least_one=True)
            known.take(found.read(), is_compacted=replica.key in self._compacted)

    def values(self, key: PartitionKey) -> set[str]:
        """All that was ever committed in a compacted partition, by transactions."""
        known = self._partitions.get(key)
        return set() if known is None else known.committed_values

    def check_read(self, replica: Replica, read: Read, found: Found) -> None:
        """A consumer is about to be given that."""
        if read.isolation != READ_COMMITTED:
            return
        self.committed(replica)
        known = self._partitions[replica.key]
        stable = max(known.stable_below(replica.high_watermark), replica.log_start)
        what = f"read_committed reads up to {found.end_offset}, and {stable} is stable"
        require(
            found.end_offset == stable,
            "readers of what is committed stop at the first open transaction",
            replica.name,
            what,
        )
        self._check_told(known, replica.name, read, found)

    @staticmethod
    def _check_told(known: CommittedTransactions, name: str, read: Read, found: Found) -> None:
        headers = [header for _, header in iter_headers(found.records)]
        if not headers:
            return
        due = {*known.aborted(read.offset, headers[-1].next_offset)}
        told = {*found.aborted}
        what = f"of {headers[-1]} and before these were aborted: {sorted(due)}; told {sorted(told)}"
        require(told <= due, "readers are told only of what was aborted", name, what)
        # Of a transaction whose records are gone by compaction, a broker need not know any more.
        silent = due - told
        read_on = any(
            known.aborted_of(header) in silent
            for header in headers
            if header.is_transactional and not header.is_control and header.record_count
        )
        require(not read_on, "readers are told what was aborted", name, what)
