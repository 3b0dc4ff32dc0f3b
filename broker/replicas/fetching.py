"""What one fetch request asks for: which partitions, in which order, within which limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from tidemark.broker.replicas.leadership import NotLeader
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.storage.slices import EMPTY_SLICE, LogSlice
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import NO_OFFSET, Offset

if TYPE_CHECKING:
    from tidemark.broker.node import Node

READ_COMMITTED: Final = 1
_ZSTD_SINCE: Final = 10
_LEADER_SINCE: Final = 12
_UNKNOWN_LEADER: Final = LeaderIdAndEpoch()


class _Wanted(NamedTuple):
    """One partition of the request. A topic, and even a partition, may be listed twice (A8)."""

    topic: str
    asked: FetchPartition
    replica: Replica | None


@dataclass(slots=True)
class Reading:
    """What the partitions gave at one moment, in the order of the request."""

    slices: list[LogSlice]
    errors: list[RequestError | None]
    is_enough: bool = False
    """Whether the fetch is to be answered with this rather than wait for more."""

    def release(self) -> None:
        for each in self.slices:
            each.release()


class FetchPlan:
    """A fetch request with its replicas looked up: read as often as it takes, answered once.

    The limits are used up in the order of the request (F7), beginning with the `first` partition,
    which the caller varies: one that always has more must not starve those behind it.
    """

    def __init__(self, node: Node, request: FetchRequest, *, api_version: int, first: int) -> None:
        self._request = request
        self._api_version = api_version
        self._bytes_max = min(request.max_bytes, node.settings.fetch_max_bytes)
        self._topics = node.topics
        self._wanted = [
            _Wanted(topic.topic, asked, node.topics.replica(topic.topic, asked.partition))
            for topic in request.topics
            for asked in topic.partitions
        ]
        self._first = first

    @property
    def replicas(self) -> list[Replica]:
        return [wanted.replica for wanted in self._wanted if wanted.replica is not None]

    def read(self) -> Reading:
        """Look at every partition. Slices not answered with have to be released."""
        count = len(self._wanted)
        reading = Reading([EMPTY_SLICE] * count, [None] * count)
        left, total = self._bytes_max, 0
        for step in range(count):
            at = (self._first + step) % count
            try:
                found = self._read_one(self._wanted[at], left, is_first=total == 0)
            except RequestError as error:
                reading.errors[at] = error
                reading.is_enough = True  # F8
                continue
            reading.slices[at] = found
            left -= len(found)
            total += len(found)
        reading.is_enough |= total >= self._request.min_bytes
        return reading

    def _read_one(self, wanted: _Wanted, left: int, *, is_first: bool) -> LogSlice:
        topic, asked, replica = wanted
        if replica is None:
            raise self._topics.why_not_here(topic, asked.partition)
        offset = Offset(asked.fetch_offset)
        replica.check_epoch(asked.current_leader_epoch)
        replica.check_leads()
        if not replica.is_serving:
            # What was committed before may not be known here yet; it soon is.
            return EMPTY_SLICE
        replica.check_offset(offset)
        bytes_max = max(0, min(left, asked.partition_max_bytes))
        if bytes_max == 0 and not is_first:
            return EMPTY_SLICE
        # KIP-74: the first batch is given whole, or its reader could never go on.
        found = replica.read(offset, bytes_max=bytes_max, at_least_one=is_first)
        if self._api_version < _ZSTD_SINCE and _has_zstd(found):
            found.release()
            raise RequestError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)  # F15
        return found

    def respond(self, reading: Reading) -> FetchResponse:
        answers = iter(zip(self._wanted, reading.slices, reading.errors, strict=True))
        return FetchResponse(
            responses=[
                FetchableTopicResponse(
                    topic=topic.topic,
                    partitions=[self._answer(*next(answers)) for _ in topic.partitions],
                )
                for topic in self._request.topics
            ]
        )

    def refuse(self, code: ErrorCode) -> FetchResponse:
        """No data for anybody, and `code` for every partition."""
        count = len(self._wanted)
        reading = Reading([EMPTY_SLICE] * count, [RequestError(code)] * count)
        return replace(self.respond(reading), error_code=code)

    def _answer(
        self, wanted: _Wanted, found: LogSlice, error: RequestError | None
    ) -> PartitionData:
        """One partition's part. Its records are empty, never null: that breaks clients (F5)."""
        replica, leader = wanted.replica, _UNKNOWN_LEADER
        high_watermark = log_start = NO_OFFSET
        if replica is not None and replica.is_serving:
            high_watermark, log_start = replica.high_watermark, replica.log_start
        elif replica is not None and error is None:
            error = replica.why_not_serving()
        if isinstance(error, NotLeader) and self._api_version >= _LEADER_SINCE:
            leader = LeaderIdAndEpoch(leader_id=error.leader, leader_epoch=error.epoch)
        if replica is not None and found:
            replica.sent(found, Offset(wanted.asked.fetch_offset))
        return PartitionData(
            partition_index=wanted.asked.partition,
            error_code=ErrorCode.NONE if error is None else error.code,
            high_watermark=high_watermark,
            # No transactions: all that is committed is decided (F11).
            last_stable_offset=high_watermark,
            log_start_offset=log_start,
            current_leader=leader,
            aborted_transactions=() if self._request.isolation_level == READ_COMMITTED else None,
            records=found,
        )


def _has_zstd(found: LogSlice) -> bool:
    """Only for clients from before zstd, which are few: this reads what it looks at."""
    return any(header.compression is Compression.ZSTD for _, header in iter_headers(found.read()))
