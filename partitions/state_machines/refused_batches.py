"""Batches that a broker has refused, or lost, though their idempotent producers did nothing wrong.

A producer has several requests on the way. If the first is refused because the disk is full, say,
and there is room again when the second comes, that one has a gap before it. To call it out of order
would be true, and harmful: librdkafka then begins a new epoch for *all* its partitions, and what it
has to send again on another one, because an answer was lost, is stored twice (librdkafka#4953). So
who follows a batch that was just refused is refused for the same reason: as if both had come a
moment earlier. Kafka takes a log whose disk fails out of service, to the same effect.

Leaders change, too, while requests are on the way. Who does not lead refuses the first, and has
come to lead when the second comes; or it has taken the first, which was cut from its log because
another broker led meanwhile, and leads again. Kafka calls the second one out of order then.

What was refused may have been stored since, here or by another leader. So nothing is concluded from
a refusal by itself: a batch is refused only if the partition's table still awaits the one before
it. It had a gap before it anyway, then, or it is of a producer that the table does not know. Any
sequence of such a producer may come first, so without this its second batch would be taken, and its
first would not be any more.

And it is refused once. Every client sends again in order what was refused. So a batch that comes
again, and the one before it has not, is of a producer that has given that one up, and is told at
once that there is a gap.

Transactions are as a whole or not at all, so nothing of them is doubled by a new epoch. There it is
harmful to be refused: librdkafka gives up what waits to be sent again when a transaction is
aborted, but not what is on the way, which waits in vain once it is refused, until the transaction
times out. So in a transaction only the refusals of the same leader count, and not for long.

All of this is in memory: nobody else has to know it, and after a start nothing is on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from tidemark.partitions.state_machines.producer_entry import (
    APART_MAX,
    BATCHES_KEPT,
    SEQUENCE_MASK,
    SentBatch,
)
from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import TRANSACTIONAL_BIT, BatchHeader
from tidemark.protocol.types import NO_EPOCH, Epoch, ProducerId

ON_THE_WAY_MS: Final = 60_000
"""What comes later was sent when its producer knew of the refusal: the producer has given the
refused batch up, and is to be told that it is missing. What was sent before and is on its way where
a link was cut comes as long again after the cut as that has lasted, for TCP waits ever longer
between its attempts; and librdkafka waits so long for an answer (`socket.timeout.ms`)."""
IN_A_TRANSACTION_MS: Final = 5_000
PRODUCERS_MAX: Final = 1_000
NOT_THE_PRODUCERS_FAULT: Final = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Refusals after which every client sends the same batch again."""


class _Refused(NamedTuple):
    """Made of numbers alone: an error would keep the request alive that it was raised for."""

    epoch: int
    first: int
    code: ErrorCode
    at_ms: int
    led_in: Epoch
    """The leader epoch in which this broker led, or -1."""

    def is_of(self, header: BatchHeader) -> bool:
        return (self.epoch, self.first) == (header.producer_epoch, header.base_sequence)

    def is_before(self, header: BatchHeader) -> bool:
        """Whether the batch is a later one of the same epoch."""
        ahead = (header.base_sequence - self.first) & SEQUENCE_MASK
        return self.epoch == header.producer_epoch and 0 < ahead <= APART_MAX

    def counts_for(self, header: BatchHeader, now_ms: int, led_in: Epoch) -> bool:
        if header.attributes & TRANSACTIONAL_BIT:
            return self.led_in == led_in and not self.is_late(now_ms, IN_A_TRANSACTION_MS)
        return not self.is_late(now_ms)

    def is_late(self, now_ms: int, at_most_ms: int = ON_THE_WAY_MS) -> bool:
        # Also by a clock that was put back since: else this went on until it is there again.
        return abs(now_ms - self.at_ms) > at_most_ms


class RefusedBatches:
    """The last few of each producer's, by one replica, whoever leads meanwhile."""

    def __init__(self) -> None:
        # Who was refused last stands last; so do their batches.
        self._refused: dict[ProducerId, tuple[_Refused, ...]] = {}

    def __len__(self) -> int:
        return len(self._refused)

    def note(self, header: BatchHeader, code: ErrorCode, now_ms: int, led_in: Epoch) -> None:
        """A batch was refused. `led_in`: in which epoch this broker leads, -1 if it does not."""
        if (
            header.producer_id >= 0
            and header.base_sequence >= 0
            and code in NOT_THE_PRODUCERS_FAULT
        ):
            producer_id = ProducerId(header.producer_id)
            refused = _Refused(header.producer_epoch, header.base_sequence, code, now_ms, led_in)
            self._keep(producer_id, refused, now_ms)

    def note_cut(self, batches: Iterable[SentBatch], cut_at_ms: int, now_ms: int) -> None:
        """Batches were cut from the log. Who waits for them was told that another broker leads."""
        for producer_id, epoch, first in batches:
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
            refused = _Refused(epoch, first, code, cut_at_ms, NO_EPOCH)
            self._keep(producer_id, refused, now_ms)

    def _keep(self, producer_id: ProducerId, refused: _Refused, now_ms: int) -> None:
        kept = self._refused.get(producer_id, ())
        if kept and kept[0].epoch > refused.epoch:
            return
        self._refused.pop(producer_id, None)
        self._make_place(now_ms)
        epoch, first, *_ = refused
        kept = (*(each for each in kept if each.epoch == epoch and each.first != first), refused)
        if len(kept) > BATCHES_KEPT:
            # There are no more on the way: the earliest has been acknowledged.
            earliest = min(kept, key=lambda each: (each.first - first + APART_MAX) & SEQUENCE_MASK)
            kept = tuple(each for each in kept if each is not earliest)
        self._refused[producer_id] = kept

    def check(self, header: BatchHeader, table: ProducerTable, now_ms: int, led_in: Epoch) -> None:
        """Raises `RequestError`, as for its predecessor, if that is missing because of us; then
        this one is to be noted, too."""
        producer_id = ProducerId(header.producer_id)
        for each in reversed(self._refused.get(producer_id, ())):
            if each.is_of(header):
                return  # It was refused since, and comes again without the one before it.
            if (
                each.is_before(header)
                and each.counts_for(header, now_ms, led_in)
                and table.would_take(SentBatch(producer_id, each.epoch, each.first))
            ):
                raise RequestError(
                    each.code,
                    f"a batch of producer {producer_id} that comes before this one was refused, "
                    "or lost with the lead, and is to be sent again first",
                )

    def expire(self, now_ms: int) -> None:
        """Forget what is too long ago to count."""
        for producer_id, kept in list(self._refused.items()):
            if all(each.is_late(now_ms) for each in kept):
                del self._refused[producer_id]

    def _make_place(self, now_ms: int) -> None:
        while self._refused:
            producer_id, kept = next(iter(self._refused.items()))
            if len(self._refused) < PRODUCERS_MAX and not kept[-1].is_late(now_ms):
                return
            del self._refused[producer_id]
