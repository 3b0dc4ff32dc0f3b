"""Fetches ahead of the reader: one task for each broker that something is fetched from.

Each keeps one fetch under way as long as there is room for what it may bring, so that the broker
and the network work while the caller does. What arrives is handed to `FetchBuffer`; only where a
batch ends is looked at, nothing is decoded here.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import trio

from tidemark.client.background import Signal
from tidemark.client.codes import check, error_code
from tidemark.client.confirming import confirm_once
from tidemark.client.descriptions import ConfirmedEnd
from tidemark.client.fetch_buffer import FetchBuffer, Reading
from tidemark.client.limits import require_whole
from tidemark.client.lookups import resolve_starts
from tidemark.client.network import Network, address_of
from tidemark.client.offsets import Isolation, Start
from tidemark.client.pool import Pool
from tidemark.client.read_levels import ReadLevel
from tidemark.client.reading import corrupt_at, next_offset
from tidemark.client.records import FetchedBatches
from tidemark.client.retries import may_pass
from tidemark.protocol.errors import CorruptBatch, ErrorCode, RequestError
from tidemark.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidemark.protocol.types import NO_EPOCH, NodeId, Offset, TopicPartition
from tidemark.protocol.values import dataclass

LEADER_SECONDS: Final = 5.0
"""For so long the leader is read from after a nearer replica was of no use."""


def _is_due(reading: Reading) -> bool:
    """Whether there certainly is more to be read."""
    return reading.confirmed is not None and reading.fetch_offset < reading.confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """What a fetch asks for; see `Client.consumer`."""

    min_bytes: int = 1
    max_wait_ms: int = 500
    fetch_bytes: int = 50 * 1024 * 1024
    partition_bytes: int = 1024 * 1024
    prefetch_bytes: int = 16 * 1024 * 1024
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    reset: Start | None = None
    """Where to go on when a position is out of range; None raises."""
    level: ReadLevel = ReadLevel.COMMITTED
    rack: str | None = None
    """Where the reader is."""

    def __post_init__(self) -> None:
        require_whole("fetch_min_bytes", self.min_bytes)
        require_whole("fetch_max_wait_ms", self.max_wait_ms)
        require_whole("fetch_bytes", self.fetch_bytes, least=1)
        require_whole("partition_bytes", self.partition_bytes, least=1)
        require_whole("prefetch_bytes", self.prefetch_bytes, least=1, most=sys.maxsize)


class BrokerFetcher:
    """See the module."""

    def __init__(
        self,
        node_id: NodeId,
        network: Network,
        pool: Pool,
        settings: FetchSettings,
        buffer: FetchBuffer,
        route: Callable[[], None],
    ) -> None:
        """`route` is called when a partition is to be fetched from another broker."""
        self.node_id = node_id
        self.readings: dict[TopicPartition, Reading] = {}
        self._network = network
        self._pool = pool
        self._settings = settings
        self._buffer = buffer
        self._route = route
        self._rack = settings.level.rack_to_name(settings.rack)
        self.signal = Signal()
        """Something may have become due: a partition, room in the buffer."""

    async def fetch_until_cancelled(self) -> None:
        """The fetcher's task."""
        while True:
            readings, wake_at = self._due(trio.current_time())
            if readings:
                await self._fetch(readings)
            else:
                await self.signal.wait_until(wake_at)

    def _due(self, now: float) -> tuple[list[Reading], float]:
        """What to fetch now; without any, when to look again."""
        due: list[Reading] = []
        wake_at = math.inf
        if self._buffer.buffered_bytes >= self._settings.prefetch_bytes:
            return due, wake_at
        for reading in self.readings.values():
            if reading.is_paused or reading.is_held or reading.is_failed or reading.is_fetched:
                continue
            if reading.buffered_bytes >= 2 * self._settings.partition_bytes:
                continue
            if reading.not_before > now:
                wake_at = min(wake_at, reading.not_before)
            else:
                due.append(reading)
        return due, wake_at

    async def _fetch(self, readings: list[Reading]) -> None:
        if self._settings.level.is_confirmed:
            readings = await self._confirmed(readings)
            if not readings:
                return
        sessions = {
            reading.topic_partition: (reading, reading.session, reading.fetch_offset)
            for reading in readings
        }
        try:
            address = address_of(self._network.broker(self.node_id))
            connection = await self._pool.connection(address)
            response = await connection.request(
                self._request(readings),
                FetchResponse,
                patience_seconds=self._settings.max_wait_ms / 1000,
            )
            check(response.error_code, f"fetch from broker {self.node_id}")
        except (OSError, RequestError) as error:
            await self._failed(readings, error)
            return
        for topic in response.responses:
            for partition in topic.partitions:
                topic_partition = TopicPartition(topic.topic, partition.partition_index)
                asked = sessions.get(topic_partition)
                if asked is None:
                    continue
                reading, session, offset = asked
                # It may have been away, and another broker has brought what is here.
                is_next = (reading.session, reading.fetch_offset) == (session, offset)
                if is_next and self.readings.get(topic_partition) is reading:
                    await self._arrived(reading, offset, partition)

    async def _confirmed(self, readings: list[Reading]) -> list[Reading]:
        """Those of which it is known how far they must be read before they have been read to the
        end; asks where that is not known any more."""
        unsure = {
            reading.topic_partition: reading
            for reading in readings
            if reading.confirmed is None or reading.fetch_offset >= reading.confirmed
        }
        if not unsure:
            return readings
        for topic_partition, answer in (await confirm_once(self._network, unsure)).items():
            reading = unsure[topic_partition]
            if isinstance(answer, ConfirmedEnd):
                reading.confirmed = answer.high_watermark
            else:
                readings = [each for each in readings if each is not reading]
                await self._failed([reading], answer)
        return readings

    def _rack_now(self, readings: Iterable[Reading]) -> str:
        """What to say of the reader's rack; nothing while something is to come from the leader,
        whoever is nearer."""
        now = trio.current_time()
        return "" if any(reading.leader_until > now for reading in readings) else self._rack

    def _request(self, readings: Sequence[Reading]) -> FetchRequest:
        topics: dict[str, list[FetchPartition]] = {}
        for reading in readings:
            topic_partition = reading.topic_partition
            known = self._network.view.partition(topic_partition)
            topics.setdefault(topic_partition.topic, []).append(
                FetchPartition(
                    partition=topic_partition.partition,
                    current_leader_epoch=known.leader_epoch if known is not None else NO_EPOCH,
                    fetch_offset=reading.fetch_offset,
                    partition_max_bytes=self._settings.partition_bytes,
                )
            )
        return FetchRequest(
            max_wait_ms=self._settings.max_wait_ms,
            min_bytes=self._settings.min_bytes,
            max_bytes=self._settings.fetch_bytes,
            isolation_level=self._settings.isolation,
            rack_id=self._rack_now(readings),
            topics=[
                FetchTopic(topic=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )

    async def _arrived(self, reading: Reading, offset: Offset, data: PartitionData) -> None:
        code = error_code(data.error_code)
        if code is not ErrorCode.NONE and reading.replica == self.node_id:
            # The leader knows better, also what is out of range: a replica may have less.
            self._go_back(reading)
        elif code is ErrorCode.NONE and data.preferred_read_replica >= 0:
            self._go_near(reading, NodeId(data.preferred_read_replica))
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
            await self._out_of_range(reading, data)
        elif code is not ErrorCode.NONE:
            await self._failed([reading], RequestError(code, str(reading.topic_partition)))
        else:
            reading.recovered()
            # Another replica may know of less than the one before.
            known = reading.high_watermark or Offset(0)
            reading.high_watermark = max(Offset(data.high_watermark), known)
            if data.records is not None and len(data.records):
                self._keep(reading, offset, data)
            elif reading.replica == self.node_id and _is_due(reading):
                # What is committed has not come to that replica in all the time of a fetch.
                self._go_back(reading)

    def _go_near(self, reading: Reading, replica: NodeId) -> None:
        until = trio.current_time() + self._network.settings.metadata_max_age_seconds
        if replica not in self._network.view.brokers:
            reading.go_back(trio.current_time() + LEADER_SECONDS)
            return
        reading.go_near(replica, until)
        self._route()

    def _go_back(self, reading: Reading) -> None:
        reading.go_back(trio.current_time() + LEADER_SECONDS)
        self._route()

    def _keep(self, reading: Reading, offset: Offset, data: PartitionData) -> None:
        records = data.records
        assert isinstance(records, bytes | memoryview)
        try:
            following = next_offset(records)
        except CorruptBatch as error:
            # What is before it is good; then it is the first of what is fetched next.
            records = memoryview(records)[: error.at]
            following = next_offset(records)
            if following is None or following[0] <= offset:
                self._buffer.fail(reading, corrupt_at(reading.topic_partition, offset, error))
                return
        if following is None:
            # Since Kafka 0.10.1 the first batch always comes whole, however large it is.
            what = f"{reading.topic_partition} at {offset}: {len(records)} bytes and no whole batch"
            self._buffer.fail(reading, RequestError(ErrorCode.RECORD_LIST_TOO_LARGE, what))
            return
        # Served: the others come first in the next request.
        self.readings[reading.topic_partition] = self.readings.pop(reading.topic_partition)
        reading.fetch_offset = max(following[0], offset)
        aborted = tuple(
            (transaction.producer_id, Offset(transaction.first_offset))
            for transaction in data.aborted_transactions or ()
        )
        self._buffer.put(
            reading,
            FetchedBatches(
                reading.topic_partition,
                offset,
                reading.fetch_offset,
                Offset(data.high_watermark),
                following[1],
                memoryview(records),
                aborted,
                Offset(data.log_start_offset),
                Offset(data.last_stable_offset),
            ),
        )

    async def _out_of_range(self, reading: Reading, data: PartitionData) -> None:
        if self._settings.reset is None:
            bounds = (
                f" (the log is from {data.log_start_offset} to {data.high_watermark})"
                if data.log_start_offset >= 0
                else ""
            )
            what = f"{reading.topic_partition} has no offset {reading.fetch_offset}{bounds}"
            self._buffer.fail(reading, RequestError(ErrorCode.OFFSET_OUT_OF_RANGE, what))
            return
        session = reading.session
        try:
            starts = {reading.topic_partition: self._settings.reset}
            offsets = await resolve_starts(self._network, starts, self._settings.isolation)
        except (OSError, RequestError) as error:
            await self._failed([reading], error)
            return
        if reading.session == session:
            reading.jump(offsets[reading.topic_partition])
            self._buffer.changed.set()  # it may be at its end by that

    async def _failed(self, readings: list[Reading], error: OSError | RequestError) -> None:
        """Try these again later, or tell the reader if that is no use or has lasted too long."""
        now = trio.current_time()
        settings = self._network.settings
        for reading in readings:
            if reading.replica == self.node_id and not isinstance(error, RequestError):
                self._go_back(reading)
                continue
            reading.failing_since = min(reading.failing_since, now)
            has_lasted = now - reading.failing_since
            if not may_pass(error) or has_lasted > settings.retry_timeout_seconds:
                self._buffer.fail(reading, error)
            else:
                reading.not_before = now + settings.backoff.delay(
                    reading.failures, self._network.random
                )
                reading.failures += 1
        await self._network.heed(error)
