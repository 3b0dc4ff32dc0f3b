"""What one fetch request asks for: which partitions, in which order, within which limits.

How it is answered is `fetch_answers`'.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from tidemark.broker.replicas.fetch_sessions import Asked, Remembered
from tidemark.broker.replicas.leadership import NotLeader
from tidemark.broker.replicas.replica import Replica
from tidemark.partitions.storage.slices import EMPTY_SLICE, LogSlice
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.fetch import NAMES_UNTIL, FetchPartition, FetchRequest
from tidemark.protocol.types import NodeId, Offset
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from tidemark.broker.node import Node

ANY_RACK: Final = "*"
"""The rack of a reader to whom every replica is near enough."""
_ZSTD_SINCE: Final = 10


class Wanted(NamedTuple):
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
    still: list[bool]
    """Where there was nothing, because the reader is where all that is committed ends."""
    is_enough: bool = False
    """Whether the fetch is to be answered with this rather than wait for more."""

    @property
    def has_moved(self) -> bool:
        """Whether a partition is led elsewhere."""
        return any(isinstance(error, NotLeader) for error in self.errors)

    def release(self) -> None:
        for each in self.slices:
            each.release()


class ReadingPlan:
    """A fetch request with its replicas looked up: read as often as it takes.

    The limits are used up in the order of the request (F7), beginning with the `first` partition,
    which the caller varies: one that always has more must not starve those behind it.
    """

    def __init__(
        self,
        node: Node,
        request: FetchRequest,
        asked: Sequence[Asked],
        remembered: Sequence[Remembered] | None = None,
        *,
        bytes_max: int,
        api_version: int,
        first: int,
        spread: int = 0,
    ) -> None:
        """`asked`: the partitions; in a session it does not name them all, and what is
        `remembered` of them goes along, in the same order.
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
                Wanted(topic, topic_id, partition, find(topic, partition.partition))
                for topic, topic_id, partition in asked
            ]
        else:
            self._wanted = list(self._by_id(asked))
        self._remembered = remembered
        self._first = first
        self._spread = spread

    def _by_id(self, asked: Sequence[Asked]) -> Iterator[Wanted]:
        topics = self._topics
        known: UUID | None = None
        name: str | None = None
        for _, topic_id, partition in asked:
            if topic_id != known:
                topic, known = topics.by_id(topic_id), topic_id
                name = None if topic is None else topic.name
            replica = None if name is None else topics.replica(name, partition.partition)
            yield Wanted(name, topic_id, partition, replica)

    def __len__(self) -> int:
        """How many partitions it is for."""
        return len(self._wanted)

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
        reading = Reading([EMPTY_SLICE] * count, [None] * count, {}, [False] * count)
        left, total = self._bytes_max, 0
        for step in range(count):
            at = (self._first + step) % count
            _, _, asked, replica = wanted = self._wanted[at]
            if (
                replica is not None
                and not self._rack
                and replica.has_reader_wait(asked.fetch_offset, asked.current_leader_epoch)
            ):
                reading.still[at] = True
                continue
            try:
                found = self._read_one(wanted, left, is_first=total == 0)
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
            size_bytes = len(found)
            left -= size_bytes
            total += size_bytes
        reading.is_enough |= total >= self._request.min_bytes or (
            total > 0 and self._holds_back(reading)
        )
        return reading

    def _holds_back(self, reading: Reading) -> bool:
        """Whether a partition has more than it gave: the next batch would be over a limit, or it is
        in another segment. Waiting would bring no more."""
        isolation = self._request.isolation_level
        for found, (_, _, asked, replica) in zip(reading.slices, self._wanted, strict=True):
            if replica is not None and (found or replica.is_serving):
                end_offset = found.end_offset if found else asked.fetch_offset
                if end_offset < replica.end_for(isolation):
                    return True
        return False

    def _read_one(self, wanted: Wanted, left: int, *, is_first: bool) -> LogSlice | NodeId:
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
        if self._api_version < _ZSTD_SINCE and replica.has_zstd(found):
            found.release()
            raise RequestError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)  # F15
        return found

    def _may_read(self, replica: Replica, asked: FetchPartition) -> bool:
        """At the leader: false while there is nothing to say yet, and where it is `doubted`, which
        is noted. Raises `RequestError`."""
        if replica.is_readable(asked.fetch_offset, asked.current_leader_epoch):
            return True
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
        replica.check_fresh(asked.fetch_offset, self._request.isolation_level, self._lag_max_ms)
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
