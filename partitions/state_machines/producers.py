"""Which batches of producers a partition has already taken, and what it knows of transactions.

A producer numbers the records it sends to a partition. The table remembers, for each producer, the
number that comes next and the last five batches, and so tells a fresh batch from a retry of one
that is already in the log, and both from one whose predecessor is missing.

`check` decides, `append` records: between them the batch is written, and a batch that could not be
written was never appended here; so do `check_marker` and `append_marker` for the end of a
transaction. The table is a function of the log: feeding the headers of all its batches, and its
markers, in order gives the same answers. After a truncation, build it anew that way.
"""

from collections import OrderedDict
from collections.abc import ItemsView, Sequence
from itertools import islice
from typing import Final

from tidemark.partitions.state_machines import producer_snapshots
from tidemark.partitions.state_machines.open_transactions import OpenTransactions
from tidemark.partitions.state_machines.producer_entry import (
    BATCHES_KEPT,
    FRESH,
    SEQUENCE_MASK,
    Duplicate,
    Fresh,
    Producer,
    SentBatch,
    check_epoch,
    check_slowly,
)
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.control import Marker
from tidemark.protocol.records.header import (
    CONTROL_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Fields,
    header_of,
)
from tidemark.protocol.types import NO_EPOCH, Offset, ProducerId

__all__ = ["BATCHES_KEPT", "FRESH", "Duplicate", "Fresh", "ProducerTable"]

# Of thousands of idle partitions, which share them: nothing is ever put in.
_NO_PRODUCERS: Final[OrderedDict[int, Producer]] = OrderedDict()
_NO_TRANSACTIONS: Final = OpenTransactions()
_NOBODY: Final = -1
_NO_PRODUCER: Final = Producer(NO_EPOCH)
NOT_PLAIN: Final = TRANSACTIONAL_BIT | CONTROL_BIT
"""Attributes that a batch outside of any transaction has none of."""


class ProducerTable:
    """The producers of one partition, at most `producers_max`: the least recently heard give way.

    A producer that gave way or expired is unknown, and an unknown producer's next batch is
    accepted whatever its sequence: a long-lived idle producer must not fail for good. Transactions
    give way to nothing: what readers may see hangs on them.
    """

    __slots__ = (
        "_newest",
        "_newest_id",
        "_producers",
        "_producers_max",
        "awaited",
        "transactions",
    )

    def __init__(self, *, producers_max: int = 100_000) -> None:
        self.transactions = _NO_TRANSACTIONS
        self._producers = _NO_PRODUCERS
        self._producers_max = producers_max
        # Who was heard last, and so stands last among them: nearly always who is heard next.
        self._newest = _NO_PRODUCER
        self._newest_id = _NOBODY
        self.awaited: tuple[int, int, int] | None = None
        """To be read: the id, epoch and sequence of the batch that most likely comes next. One with
        these that is in no transaction is one that the table `is_awaiting`; `None`: ask it."""

    def __len__(self) -> int:
        return len(self._producers)

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self._producers) or bool(self.transactions)

    @property
    def producers(self) -> ItemsView[int, Producer]:
        """By their ids, the least recently heard first."""
        return self._producers.items()

    def check(self, header: BatchHeader) -> Fresh | Duplicate:
        """Whether to append the batch, or answer as its first arrival was.

        Raises `RequestError`: INVALID_PRODUCER_EPOCH for an epoch that a newer one has replaced,
        OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, DUPLICATE_SEQUENCE_NUMBER for a retry that is in
        the log but too old for its offset to be remembered, INVALID_TXN_STATE for a batch that is
        in no transaction while its producer has one open.
        """
        opened = self.transactions.opened
        if opened and header.producer_id in opened and not header.attributes & TRANSACTIONAL_BIT:
            raise RequestError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has a transaction open here, and this batch is in "
                "none",
            )
        producer = self._producers.get(header.producer_id)
        if (
            producer is not None
            and header.producer_epoch == producer.epoch
            and header.base_sequence == producer.next_sequence
        ):
            return FRESH
        return check_slowly(producer, header)

    def would_take(self, batch: SentBatch) -> bool:
        """Whether `check` takes such a batch for a new one, in a transaction or not."""
        producer_id, epoch, first = batch
        producer = self._producers.get(producer_id)
        if producer is None:
            return True
        if epoch == producer.epoch:
            return first == producer.next_sequence
        return epoch > producer.epoch and first == 0

    def sent_from(self, offset: Offset, *, producers_max: int) -> list[SentBatch]:
        """The batches from `offset` on that are remembered, each producer's in order: of no more
        producers than that, those heard last."""
        found: list[SentBatch] = []
        for producer_id, producer in islice(reversed(self._producers.items()), producers_max):
            for first, _, base_offset, _, _ in producer.batches:
                if base_offset >= offset:
                    found.append(SentBatch(ProducerId(producer_id), producer.epoch, first))
        return found

    def is_awaiting(self, header: Fields) -> bool:
        """Whether this batch is what comes next of its producer, and is plain: it is in no
        transaction, and its producer has none open."""
        _, _, _, _, _, attributes, _, _, _, producer_id, epoch, first, _ = header
        if attributes & NOT_PLAIN:
            return False
        if (producer_id, epoch, first) == self.awaited:
            return True
        producer = self._producers.get(producer_id)
        return (
            producer is not None
            and producer.next_sequence == first
            and producer.epoch == epoch
            and producer_id not in self.transactions.opened
        )

    def count_fresh(self, headers: Sequence[Fields]) -> int:
        """How many of these batches, from the first on, may be appended one behind the other.

        These are of one producer, or of none, and each is what comes next. Of the first that is
        not, `check` says whether it may be appended all the same, or what is wrong with it.
        """
        producer_id, epoch, sequence = headers[0][9:12]
        if producer_id >= 0 and not self.is_awaiting(headers[0]):
            return 0
        count = 0
        for _, _, _, _, _, attributes, delta, _, _, of, in_epoch, first, _ in headers:
            if of != producer_id or attributes & NOT_PLAIN:
                break
            if of >= 0:
                if in_epoch != epoch or first != sequence:
                    break
                sequence = (sequence + delta + 1) & SEQUENCE_MASK
            count += 1
        return count

    def check_epoch(self, producer_id: ProducerId, epoch: int) -> None:
        """For a batch of the broker's own in a producer's transaction, which has no sequence."""
        producer = self._producers.get(producer_id)
        if producer is not None:
            check_epoch(producer, producer_id, epoch)

    def append(
        self, header: BatchHeader, base_offset: Offset, *, heard_ms: int | None = None
    ) -> None:
        """Take in a batch that lies in the log at `base_offset`, and is no marker.

        `heard_ms` is when it came, for `expire`; a replay does not know and goes by the batch's
        own time. Batches without a producer are ignored, so every header of a log can be fed.
        """
        # Unpacked in one go: this runs for every batch.
        _, _, _, _, _, attributes, delta, _, timestamp_ms, producer_id, epoch, first, _ = header
        if producer_id < 0:
            return
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._add(producer_id, epoch)
        elif epoch != producer.epoch:
            producer = self._replace(producer_id, producer, epoch)
        self._heard(producer_id, producer)
        producer.heard_ms = timestamp_ms if heard_ms is None else heard_ms
        if attributes & TRANSACTIONAL_BIT:
            assert not attributes & CONTROL_BIT, "what a marker says is not in its header"
            if self.transactions is _NO_TRANSACTIONS:
                self.transactions = OpenTransactions()
            self.transactions.append(ProducerId(producer_id), base_offset, producer.heard_ms)
        if first < 0:  # A coordinator wrote it for the producer.
            return
        if first != producer.next_sequence:
            producer.appended = 0
        producer.take(first, delta, base_offset, timestamp_ms)

    def append_awaited(
        self,
        producer_id: int,
        epoch: int,
        first: int,
        delta: int,
        base_offset: Offset,
        timestamp_ms: int,
        heard_ms: int,
    ) -> None:
        """Take in a batch as `append` does, which the table `is_awaiting`; what of its header
        matters here."""
        if producer_id != self._newest_id:
            self._heard(producer_id, self._producers[producer_id])
        producer = self._newest
        # As `Producer.take` does, without a call.
        last = (first + delta) & SEQUENCE_MASK
        producer.batches.append((first, last, base_offset, base_offset + delta, timestamp_ms))
        producer.next_sequence = sequence = (last + 1) & SEQUENCE_MASK
        producer.appended += delta + 1
        producer.heard_ms = heard_ms
        self.awaited = (producer_id, epoch, sequence)

    def append_run(self, headers: Sequence[Fields], base_offset: Offset, *, heard_ms: int) -> None:
        """Take in batches as `append` does, that lie one behind the other and are of one producer.

        Those of which there is more than one were counted by `count_fresh`.
        """
        if len(headers) == 1:
            self.append(header_of(headers[0]), base_offset, heard_ms=heard_ms)
            return
        producer_id, epoch = headers[0][9:11]
        if producer_id < 0:
            return
        if producer_id != self._newest_id:
            self._heard(producer_id, self._producers[producer_id])
        producer = self._newest
        producer.heard_ms = heard_ms
        # As `Producer.take` does, of all of them at once.
        sequence, offset, kept = producer.next_sequence, base_offset, producer.batches
        for _, _, _, _, _, _, delta, _, timestamp_ms, _, _, _, _ in headers:
            last, last_offset = (sequence + delta) & SEQUENCE_MASK, offset + delta
            kept.append((sequence, last, offset, last_offset, timestamp_ms))
            sequence, offset = (last + 1) & SEQUENCE_MASK, Offset(last_offset + 1)
        producer.appended += offset - base_offset
        producer.next_sequence = sequence
        self.awaited = (producer_id, epoch, sequence)

    def check_marker(
        self, producer_id: ProducerId, epoch: int, marker: Marker, *, raises_epoch: bool
    ) -> bool:
        """Whether a transaction's end has to be written; `False`: the log says all of it already.

        `raises_epoch`: the producer's protocol has each end raise the epoch. Raises `RequestError`:
        TRANSACTION_COORDINATOR_FENCED for one that a coordinator of a former epoch says,
        INVALID_PRODUCER_EPOCH for one that comes late: it must not end a later transaction.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return True
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise RequestError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {producer.coordinator_epoch} has ended a transaction of "
                f"producer {producer_id}, and this one is of epoch {marker.coordinator_epoch}",
            )
        check_epoch(producer, producer_id, epoch)
        is_open = producer_id in self.transactions.opened
        if is_open and raises_epoch and epoch == producer.epoch:
            raise RequestError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} has a transaction open in epoch {epoch}, and this marker "
                "ends the one before",
            )
        is_known = (epoch, marker.coordinator_epoch) == (producer.epoch, producer.coordinator_epoch)
        return is_open or not is_known

    def append_marker(
        self,
        header: BatchHeader,
        base_offset: Offset,
        marker: Marker,
        *,
        heard_ms: int | None = None,
    ) -> None:
        """Take in a marker that lies in the log at `base_offset`. `heard_ms` as in `append`."""
        producer_id, epoch = ProducerId(header.producer_id), header.producer_epoch
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._add(producer_id, epoch)
        elif epoch != producer.epoch:
            producer = self._replace(producer_id, producer, epoch)
        self._heard(producer_id, producer)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.heard_ms = header.max_timestamp if heard_ms is None else heard_ms
        self.transactions.end(producer_id, base_offset, is_commit=marker.is_commit)

    def expire(self, now_ms: int, *, idle_ms: int) -> int:
        """Forget the producers not heard for `idle_ms`; how many those were.

        Not those with an open transaction: its end is to be told from one of another epoch.
        """
        opened = self.transactions.opened
        idle = [
            producer_id
            for producer_id, producer in self._producers.items()
            if now_ms - producer.heard_ms >= idle_ms and producer_id not in opened
        ]
        for producer_id in idle:
            self._forget(producer_id)
        return len(idle)

    def forget_from(self, offset: Offset) -> None:
        """Forget the batches from `offset` on: they are not in the log, and will not be.

        A producer of which no other batch is remembered is unknown then.
        """
        self.transactions.forget_from(offset)
        self.awaited = None
        for producer_id, producer in list(self._producers.items()):
            while producer.batches and producer.batches[-1][2] >= offset:
                first, last, *_ = producer.batches.pop()
                producer.next_sequence = first
                producer.appended -= ((last - first) & SEQUENCE_MASK) + 1
                if not producer.batches:
                    self._forget(producer_id)

    def newest_epoch(self, producer_id: ProducerId) -> int | None:
        """The producer's epoch as this partition last saw it, or None if it is unknown."""
        producer = self._producers.get(producer_id)
        return None if producer is None else producer.epoch

    def encode(self) -> bytes:
        """A snapshot; the caller keeps the end offset it belongs to beside it."""
        return producer_snapshots.encode(self._producers, self.transactions)

    @classmethod
    def decode(cls, data: bytes, *, producers_max: int = 100_000) -> "ProducerTable":
        """The table of a snapshot. Raises `StorageError` if it is not one: then replay the log."""
        table = cls(producers_max=producers_max)
        producers, table.transactions = producer_snapshots.decode(data)
        if producers:
            table._producers = OrderedDict(producers[-producers_max:])
        return table

    def _add(self, producer_id: int, epoch: int) -> Producer:
        if self._producers is _NO_PRODUCERS:
            self._producers = OrderedDict()
        elif len(self._producers) >= self._producers_max:
            self._producers.popitem(last=False)
        producer = self._producers[producer_id] = Producer(epoch)
        return producer

    def _replace(self, producer_id: int, old: Producer, epoch: int) -> Producer:
        """The producer in another epoch, whose sequences begin anew."""
        producer = self._producers[producer_id] = Producer(epoch, old.coordinator_epoch)
        return producer

    def _heard(self, producer_id: int, producer: Producer) -> None:
        self._producers.move_to_end(producer_id)
        self._newest, self._newest_id = producer, producer_id
        # Not known any more: who takes in what was awaited sets it anew.
        self.awaited = None

    def _forget(self, producer_id: int) -> None:
        del self._producers[producer_id]
        self._newest, self._newest_id = _NO_PRODUCER, _NOBODY
        self.awaited = None
