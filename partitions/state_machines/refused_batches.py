"""Batches that a leader has refused, though their idempotent producers did nothing wrong.

A producer has several requests on the way. If the first is refused because the disk is full, say,
and there is room again when the second comes, that one has a gap before it. To call it out of order
would be true, and harmful: librdkafka then begins a new epoch for *all* its partitions, and what it
has to send again on another one, because an answer was lost, is stored twice (librdkafka#4953). So
who follows a batch that was just refused is refused for the same reason: as if both had come a
moment earlier. Kafka takes a log whose disk fails out of service, to the same effect.

The same holds for a producer that the partition does not know yet. Any sequence of it may come
first, so without this its second batch would be taken, and its first would not be any more.
"""

from __future__ import annotations

from typing import Final

from tidemark.partitions.state_machines.producer_entry import APART_MAX, SEQUENCE_MASK
from tidemark.partitions.state_machines.producers import FRESH, ProducerTable
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import ProducerId
from tidemark.protocol.values import dataclass

ON_THE_WAY_MS: Final = 5_000
"""What comes later was sent when its producer knew of the refusal: the producer has given the
refused batch up, and is to be told that it is missing."""
PRODUCERS_MAX: Final = 1_000
NOT_THE_PRODUCERS_FAULT: Final = frozenset(
    {
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Refusals after which every client sends the same batch again."""


@dataclass(frozen=True, slots=True)
class _Refused:
    header: BatchHeader
    error: RequestError
    at_ms: int


class RefusedBatches:
    """The first of each producer's, by one leader in one epoch."""

    def __init__(self) -> None:
        self._refused: dict[ProducerId, _Refused] = {}

    def note(
        self, header: BatchHeader, error: RequestError, table: ProducerTable, now_ms: int
    ) -> None:
        """A batch was refused. One that follows a batch refused before changes nothing."""
        if header.producer_id < 0 or error.code not in NOT_THE_PRODUCERS_FAULT:
            return
        if self._predecessor(header, table, now_ms) is not None:
            return
        producer_id = ProducerId(header.producer_id)
        self._refused.pop(producer_id, None)
        if len(self._refused) >= PRODUCERS_MAX:
            del self._refused[next(iter(self._refused))]
        self._refused[producer_id] = _Refused(header, error, now_ms)

    def check(self, header: BatchHeader, table: ProducerTable, now_ms: int) -> None:
        """Raises `RequestError`, as for its predecessor, if that is missing because of us."""
        refused = self._predecessor(header, table, now_ms)
        if refused is not None:
            raise RequestError(refused.error.code, refused.error.message)

    def _predecessor(
        self, header: BatchHeader, table: ProducerTable, now_ms: int
    ) -> _Refused | None:
        """The refused batch that this one follows, if it is still missing."""
        refused = self._refused.get(ProducerId(header.producer_id))
        if refused is None or header.producer_epoch != refused.header.producer_epoch:
            return None
        ahead = (header.base_sequence - refused.header.base_sequence) & SEQUENCE_MASK
        # Also by a clock that was put back since: else this went on until it is there again.
        is_late = abs(now_ms - refused.at_ms) > ON_THE_WAY_MS
        if is_late or not 0 < ahead <= APART_MAX or not _is_missing(refused.header, table):
            return None
        return refused


def _is_missing(header: BatchHeader, table: ProducerTable) -> bool:
    try:
        return table.check(header) is FRESH
    except RequestError:
        return False
