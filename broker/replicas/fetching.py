"""What one fetch request asks for: which partitions, in which order, within which limits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from tidemark.broker.replicas.fetch_sessions import Asked
from tidemark.broker.replicas.leadership import NOBODY, NotLeader
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_reads import READ_COMMITTED
from tidemark.partitions.storage.slices import EMPTY_SLICE, LogSlice
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import (
    NAMES_UNTIL,
    AbortedTransaction,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from tidemark.protocol.records.compression import Compression
from tidemark.protocol.records.header import iter_headers
from tidemark.protocol.types import NO_OFFSET, NodeId, Offset
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.node import Node

ANY_RACK: Final = "*"
"""The rack of a reader to whom every replica is near enough."""
_ZSTD_SINCE: Final = 10
_LEADER_SINCE: Final = 12
_UNKNOWN_LEADER: Final = LeaderIdAndEpoch()


class _Wanted(NamedTuple):
    """One partition to be read. A topic, and even a partition, may be listed twice (A8)."""

    topic: str | None
    """`None`: there is none with that id."""
    topic_id: UUID
    """All zeros where it was asked for by name."""
    asked: FetchPartition
    replica: Replica | None


@dataclass(slots=True)
class Reading:
    """What the partitions gave at one moment, in the order of the request."""

    slices: list[LogSlice]
    errors: list[RequestError | None]
    preferred: dict[int, NodeId]
    """Partitions that are to be fetched from another replica, by their place in the request."""
    is_enough: bool = False
    """Whether the fetch is to be answered with this rather than wait for more."""

    @property
    def has_moved(self) -> bool:
        """Whether a partition is led elsewhere."""
        return any(isinstance(error, NotLeader) for error in self.errors)

    def release(self) -> None:
        for each in self.slices:
            each.release()


class FetchPlan:
    """A fetch request with its replicas looked up: read as often as it takes, answered once.

    The limits are used up in the order of the request (F7), beginning with the `first` partition,
    which the caller varies: one that always has more must not starve those behind it.
    """

    def __init__(
        self,
        node: Node,
        request: FetchRequest,
        asked: Iterable[Asked],
        *,
        bytes_max: int,
        api_version: int,
        first: int,
        spread: int = 0,
    ) -> None:
        """`asked`: the partitions, which in a session the request does not name.
        `bytes_max`: what the request and the client's quota allow.

        `spread`: of the reader; readers with different ones are sent to different replicas.
        """
        self._node = node
        self._request = request
        self._api_version = api_version
        self._rack = request.rack_id if node.settings.replica_selector == "rack" else ""
        """Where the reader is, if it would read from a replica that is near."""
        self._lag_max_ms = node.settings.replica_read_lag_max_ms
        self.doubted: dict[Replica, bool] = {}
        """Partitions that are asked for beyond their end: a leader that is certain that it leads
        (true) says so, and one that is not may have been replaced by one that has more."""
        self._bytes_max = min(bytes_max, node.settings.fetch_max_bytes)
        self._topics = node.topics
        if api_version <= NAMES_UNTIL:
            find = node.topics.replica
            self._wanted = [
                _Wanted(topic, topic_id, partition, find(topic, partition.partition))
                for topic, topic_id, partition in asked
            ]
        else:
            self._wanted = [self._by_id(each) for each in asked]
        self._first = first
        self._spread = spread

    def _by_id(self, asked: Asked) -> _Wanted:
        _, topic_id, partition = asked
        topic = self._topics.by_id(topic_id)
        if topic is None:
            return _Wanted(None, topic_id, partition, None)
        replica = self._topics.replica(topic.name, partition.partition)
        return _Wanted(topic.name, topic_id, partition, replica)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be read at all."""
        return not self._wanted

    @property
    def replicas(self) -> list[Replica]:
        return [wanted.replica for wanted in self._wanted if wanted.replica is not None]

    def read(self) -> Reading:
        """Look at every partition. Slices not answered with have to be released."""
        count = len(self._wanted)
        reading = Reading([EMPTY_SLICE] * count, [None] * count, {})
        left, total = self._bytes_max, 0
        for step in range(count):
            at = (self._first + step) % count
            try:
                found = self._read_one(self._wanted[at], left, is_first=total == 0)
            except RequestError as error:
                reading.errors[at] = error
                reading.is_enough = True  # F8
                continue
            if not isinstance(found, LogSlice):
                self._node.metrics.reads.sent_on.inc()
                reading.preferred[at] = found
                reading.is_enough = True
                continue
            reading.slices[at] = found
            left -= len(found)
            total += len(found)
        reading.is_enough |= total >= self._request.min_bytes
        return reading

    def _read_one(self, wanted: _Wanted, left: int, *, is_first: bool) -> LogSlice | NodeId:
        """What there is at the offset; or who is to be asked for it."""
        topic, _, asked, replica = wanted
        if topic is None:
            raise RequestError(ErrorCode.UNKNOWN_TOPIC_ID)  # F16
        if replica is None:
            raise self._topics.why_not_here(topic, asked.partition)
        offset = Offset(asked.fetch_offset)
        if self._rack and not replica.is_leader:
            may_read = self._may_read_away(replica, asked)
        else:
            may_read = self._may_read(replica, asked)
        if not may_read:
            return EMPTY_SLICE
        if self._rack and replica.is_leader:
            nearest = self._nearest(replica, offset)
            if nearest is not None:
                return nearest
        bytes_max = max(0, min(left, asked.partition_max_bytes))
        if bytes_max == 0 and not is_first:
            return EMPTY_SLICE
        # KIP-74: the first batch is given whole, or its reader could never go on.
        found = replica.read(
            offset,
            bytes_max=bytes_max,
            at_least_one=is_first,
            isolation=self._request.isolation_level,
        )
        if self._api_version < _ZSTD_SINCE and _has_zstd(found):
            found.release()
            raise RequestError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)  # F15
        return found

    def _may_read(self, replica: Replica, asked: FetchPartition) -> bool:
        """At the leader: false while there is nothing to say yet. Raises `RequestError`."""
        replica.check_epoch(asked.current_leader_epoch)
        replica.check_leads()
        if not replica.is_serving:
            # What was committed before may not be known here yet; it soon is.
            return False
        if asked.fetch_offset > replica.log_end and not self.doubted.setdefault(replica, False):
            return False
        replica.check_offset(Offset(asked.fetch_offset))
        return True

    def _may_read_away(self, replica: Replica, asked: FetchPartition) -> bool:
        """At any other replica. What the reader has seen elsewhere will come here, too: it is
        never out of range at the end. Raises `RequestError`."""
        epoch = asked.current_leader_epoch
        if epoch < replica.epoch:
            replica.check_epoch(epoch)
        replica.check_fresh(self._lag_max_ms)
        if epoch > replica.epoch or asked.fetch_offset > replica.high_watermark:
            return False
        replica.check_offset(Offset(asked.fetch_offset))
        return True

    def _nearest(self, replica: Replica, offset: Offset) -> NodeId | None:
        """Who had better be asked than this broker, which leads (KIP-392); `None`: nobody."""
        brokers, rack = self._node.brokers, self._rack
        if rack != ANY_RACK and self._node.settings.broker_rack == rack:
            return None
        near = [
            node
            for node in replica.readers(offset, self._lag_max_ms)
            if rack == ANY_RACK or brokers.rack(node) == rack
        ]
        # Many readers of one partition are spread over those that are near.
        return near[self._spread % len(near)] if near else None

    def respond(self, reading: Reading) -> FetchResponse:
        """Partitions of one topic that follow each other come together, as they did."""
        topics: list[FetchableTopicResponse] = []
        answers: list[PartitionData] = []
        before: tuple[str | None, UUID] | None = None
        slices, errors, preferred = reading.slices, reading.errors, reading.preferred
        for at, wanted in enumerate(self._wanted):
            topic, topic_id, _, _ = wanted
            if before != (topic, topic_id):
                before, answers = (topic, topic_id), []
                topics.append(
                    FetchableTopicResponse(topic=topic or "", topic_id=topic_id, partitions=answers)
                )
            answers.append(self._answer(wanted, slices[at], errors[at], preferred.get(at, NOBODY)))
        return FetchResponse(responses=topics)

    def refuse(self, code: ErrorCode) -> FetchResponse:
        """No data for anybody, and `code` for every partition."""
        count = len(self._wanted)
        reading = Reading([EMPTY_SLICE] * count, [RequestError(code)] * count, {})
        return replace(self.respond(reading), error_code=code)

    def _answer(
        self, wanted: _Wanted, found: LogSlice, error: RequestError | None, preferred: NodeId
    ) -> PartitionData:
        """One partition's part. Its records are empty, never null: that breaks clients (F5)."""
        replica, leader = wanted.replica, _UNKNOWN_LEADER
        high_watermark = stable = log_start = NO_OFFSET
        if replica is not None and error is None:
            error = self._why_not_read(replica, wanted.asked)
        if replica is not None and (replica.is_serving or (self._rack and error is None)):
            high_watermark, log_start = replica.high_watermark, replica.log_start
            stable = replica.last_stable_offset
        if isinstance(error, NotLeader) and self._api_version >= _LEADER_SINCE:
            leader = LeaderIdAndEpoch(leader_id=error.leader, leader_epoch=error.epoch)
        if replica is not None and found:
            replica.sent(found, Offset(wanted.asked.fetch_offset))
        return PartitionData(
            partition_index=wanted.asked.partition,
            error_code=ErrorCode.NONE if error is None else error.code,
            high_watermark=high_watermark,
            last_stable_offset=stable,
            log_start_offset=log_start,
            current_leader=leader,
            aborted_transactions=self._aborted(replica, found, wanted.asked),
            preferred_read_replica=preferred,
            records=found,
        )

    def _aborted(
        self, replica: Replica | None, found: LogSlice, asked: FetchPartition
    ) -> Sequence[AbortedTransaction] | None:
        """What its reader has to leave out; null for who reads all that is there (A10)."""
        if self._request.isolation_level != READ_COMMITTED:
            return None
        if replica is None or not found:
            return ()
        return tuple(
            AbortedTransaction(producer_id=over.producer_id, first_offset=over.first_offset)
            for over in replica.aborted(found, Offset(asked.fetch_offset))
        )

    def _why_not_read(self, replica: Replica, asked: FetchPartition) -> RequestError | None:
        """Why there was nothing to read, where waiting has not helped."""
        if replica.is_serving:
            return None
        if not self._rack or replica.is_leader or not replica.is_available:
            return replica.why_not_serving()
        try:
            replica.check_epoch(asked.current_leader_epoch)
        except RequestError as error:
            return error
        return None


def _has_zstd(found: LogSlice) -> bool:
    """Only for clients from before zstd, which are few: this reads what it looks at."""
    return any(header.compression is Compression.ZSTD for _, header in iter_headers(found.read()))
