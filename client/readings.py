"""The partitions a consumer reads, each with the fetcher of the broker that it is fetched from:
the one that leads it now, or a nearer one that the leader has named."""

import math
from collections.abc import Collection, Iterable, Mapping

import trio

from tidemark.client.background import Signal
from tidemark.client.confirming import confirmed_ends
from tidemark.client.fetch_buffer import FetchBuffer, Reading
from tidemark.client.fetcher import BrokerFetcher, FetchSettings
from tidemark.client.lookups import list_offsets, resolve_starts
from tidemark.client.network import Network
from tidemark.client.offsets import End, Start
from tidemark.client.pace import Pace
from tidemark.client.pool import Pool
from tidemark.client.records import FetchedBatches
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId, Offset, TopicPartition


class Readings:
    """See the module. What arrives is in `buffer`."""

    def __init__(
        self, network: Network, pool: Pool, nursery: trio.Nursery, settings: FetchSettings
    ) -> None:
        self._network = network
        self._pool = pool
        self._nursery = nursery
        self._settings = settings
        self._fetchers: dict[NodeId, BrokerFetcher] = {}
        self._fetcher_of: dict[TopicPartition, BrokerFetcher] = {}
        self._stale = Signal()
        self._pace = Pace(network.settings.backoff, network.random)
        self.buffer = FetchBuffer()
        self.by_partition: dict[TopicPartition, Reading] = {}

    async def add(
        self, starts: Mapping[TopicPartition, Start], *, until_end: bool, is_held: bool = False
    ) -> None:
        """Read these too. With `until_end`, to where each ends now; with `is_held`, not before they
        are released.

        Raises `RequestError` if one does not exist. Cancelled, none is read.
        """
        if not starts:
            return
        offsets = await resolve_starts(self._network, starts, self._settings.isolation)
        ends = await self.ends(starts) if until_end else {}
        for topic_partition, offset in offsets.items():
            end = ends.get(topic_partition)
            reading = self.by_partition[topic_partition] = Reading(topic_partition, offset, end)
            reading.is_held = is_held
        self._pace.quicken()
        self.route()

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Read what was held."""
        for topic_partition in partitions:
            self.by_partition[topic_partition].is_held = False
        self.wake()

    def topics(self) -> set[str]:
        """Those whose metadata is needed."""
        return {topic_partition.topic for topic_partition in self.by_partition}

    async def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Where these end now, as certainly as the read level wants it."""
        if self._settings.level.is_confirmed:
            confirmed = await confirmed_ends(self._network, partitions)
            return {each: end.high_watermark for each, end in confirmed.items()}
        specs = dict.fromkeys(partitions, End())
        listed = await list_offsets(self._network, specs, self._settings.isolation)
        return {each: found.offset for each, found in listed.items()}

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no more."""
        for topic_partition in partitions:
            self.by_partition.pop(topic_partition, None)
            self._withdraw(topic_partition)

    def take(self) -> tuple[Reading, FetchedBatches] | None:
        """The oldest that has arrived and is still wanted. Raises what went wrong, which is tried
        again then."""
        before = self.buffer.buffered_bytes
        try:
            taken = self.buffer.take(self._is_wanted)
        except Exception:
            self._stale.set()  # it may have no leader
            self.wake()
            raise
        # There is room, also where all that was there was of no use any more.
        if self.buffer.buffered_bytes < before:
            self.wake()
        return taken

    def _is_wanted(self, reading: Reading) -> bool:
        return self.by_partition.get(reading.topic_partition) is reading and not reading.is_paused

    def wake(self) -> None:
        """Something may be due for fetching again."""
        for fetcher in self._fetchers.values():
            fetcher.signal.set()

    def route(self) -> None:
        """Give every partition to the fetcher of the broker that leads it now, or that the leader
        has named."""
        is_any_sought = False
        for topic_partition, reading in self.by_partition.items():
            node_id = self._source(reading)
            if node_id is None:
                if self._withdraw(topic_partition):
                    self._pace.quicken()
                # Of one that has failed there is nothing to be learned until it is asked for.
                is_any_sought |= not reading.is_failed
                continue
            fetcher = self._fetchers.get(node_id) or self._start_fetcher(node_id)
            if fetcher.readings.get(topic_partition) is not reading:
                self._withdraw(topic_partition)
                fetcher.readings[topic_partition] = reading
                self._fetcher_of[topic_partition] = fetcher
                fetcher.signal.set()
        if is_any_sought:
            self._stale.set()
        else:
            self._pace.found()

    def _source(self, reading: Reading) -> NodeId | None:
        """Whom to fetch a partition from."""
        view = self._network.view
        if reading.replica is not None:
            if reading.replica in view.brokers and trio.current_time() < reading.replica_until:
                return reading.replica
            reading.replica = None
        leader = view.leader(reading.topic_partition)
        return None if leader is None else leader.node_id

    def _withdraw(self, topic_partition: TopicPartition) -> bool:
        """Whether anybody fetched it."""
        fetcher = self._fetcher_of.pop(topic_partition, None)
        if fetcher is None:
            return False
        fetcher.readings.pop(topic_partition, None)
        return True

    def _start_fetcher(self, node_id: NodeId) -> BrokerFetcher:
        fetcher = self._fetchers[node_id] = BrokerFetcher(
            node_id, self._network, self._pool, self._settings, self.buffer, self.route
        )
        self._nursery.start_soon(fetcher.fetch_until_cancelled)
        return fetcher

    async def find_leaders_until_cancelled(self) -> None:
        """Ask for metadata while something has no leader, and tell the reader when for too long."""
        while True:
            await self._stale.wait()
            await self._network.try_refresh()
            await self._pace.pause()
            self._check_leaderless(trio.current_time())

    def _check_leaderless(self, now: float) -> None:
        patience = self._network.settings.retry_timeout_seconds
        for topic_partition, reading in self.by_partition.items():
            if topic_partition in self._fetcher_of or reading.is_failed:
                continue
            if reading.failing_since == math.inf:
                reading.failing_since = now
            if now - reading.failing_since < patience:
                self._stale.set()
                continue
            try:
                self._network.leader(topic_partition)
            except RequestError as error:
                self.buffer.fail(reading, error)
