"""Consuming from a thread without trio; see the package for what it is for."""

from collections.abc import Iterator, Mapping
from operator import length_hint

from tidemark.client.blocking.portal import Portal
from tidemark.client.consumer import Consumer
from tidemark.client.coordinator import GroupMembership
from tidemark.client.descriptions import CommittedOffset
from tidemark.client.offsets import Start
from tidemark.client.records import ConsumerRecord, FetchedBatches
from tidemark.protocol.types import Offset, TopicPartition


class BlockingConsumer:
    """Made by `BlockingClient.consumer`; see `Consumer`. Iterate over it, or call `fetch`.

    A loop gets its records many at a time, which is quicker, and counts only those that it was
    given: a loop that is left is gone on with by the next, and positions and commits do not run
    ahead. Automatic commits, though, leave out all of a row until its last one is done with.
    """

    def __init__(self, consumer: Consumer, portal: Portal) -> None:
        self._consumer = consumer
        self._portal = portal
        self._crossed: list[ConsumerRecord] = []
        self._rest = iter(self._crossed)
        """Those of them that no loop was given yet."""
        self._batches: Iterator[FetchedBatches | None] = iter(())
        """What `fetch_batches` was not given yet, and has come."""

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while True:
            yield from self._rest
            if not self._cross()[0]:
                return

    def take_back(self) -> None:
        """Have the consumer count only those that a loop was given; the loop goes on with the
        others."""
        self._portal.run_sync(self._take_back)

    def _take_back(self) -> None:
        """In the client's thread, as all that changes what has crossed: nothing comes meanwhile,
        whichever thread waits for it."""
        if self._crossed:
            self._consumer.take_back(self._crossed[-1], length_hint(self._rest))
        for fetched in self._batches:
            if fetched is not None:
                self._consumer.take_back_batches(fetched)

    def _give_up(self) -> None:
        """Have the consumer hand out anew what no loop was given. In the client's thread."""
        self._take_back()
        _exhaust(self._rest)  # a loop may hold it
        self._crossed = []

    def fetch(self) -> list[ConsumerRecord]:
        """As `Consumer.fetch`."""
        records, rest = self._cross()
        _exhaust(rest)
        return records

    def _cross(self) -> tuple[list[ConsumerRecord], Iterator[ConsumerRecord]]:
        """Have the next records here, none of which any loop was given yet."""

        async def fetch() -> tuple[list[ConsumerRecord], Iterator[ConsumerRecord]]:
            self._give_up()
            # There, so that they are known to have come, whatever interrupts who waits for them.
            self._crossed = records = await self._consumer.fetch()
            self._rest = rest = iter(records)
            return records, rest

        return self._portal.run(fetch)

    def fetch_batches(self) -> FetchedBatches | None:
        """As `Consumer.fetch_batches`."""

        async def fetch() -> Iterator[FetchedBatches | None]:
            self._give_up()
            self._batches = crossed = iter([await self._consumer.fetch_batches()])  # as in _cross
            return crossed

        while True:
            for fetched in self._portal.run(fetch):
                return fetched
            # Another thread has had it taken back.

    @property
    def group_membership(self) -> GroupMembership:
        """As `Consumer.group_membership`."""
        return self._portal.run_sync(lambda: self._consumer.group_membership)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """As `Consumer.assignment`."""
        return self._portal.run_sync(lambda: self._consumer.assignment)

    def position(self, topic_partition: TopicPartition) -> Offset:
        """As `Consumer.position`."""
        self.take_back()
        return self._portal.run_sync(self._consumer.position, topic_partition)

    def seek(self, topic_partition: TopicPartition, start: Start | str | int) -> None:
        """As `Consumer.seek`."""
        self._portal.run_sync(self._give_up)
        self._portal.run(self._consumer.seek, topic_partition, start)

    def pause(self, *partitions: TopicPartition) -> None:
        """As `Consumer.pause`."""
        self._portal.run_sync(self._give_up)
        self._portal.run_sync(self._consumer.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """As `Consumer.resume`."""
        self._portal.run_sync(self._consumer.resume, *partitions)

    def commit(self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None) -> None:
        """As `Consumer.commit`."""
        self.take_back()
        self._portal.run(self._consumer.commit, offsets)

    def committed(self) -> dict[TopicPartition, CommittedOffset]:
        """As `Consumer.committed`."""
        return self._portal.run(self._consumer.committed)

    def beginning_offsets(self) -> dict[TopicPartition, Offset]:
        """As `Consumer.beginning_offsets`."""
        return self._portal.run(self._consumer.beginning_offsets)

    def end_offsets(self) -> dict[TopicPartition, Offset]:
        """As `Consumer.end_offsets`."""
        return self._portal.run(self._consumer.end_offsets)


def _exhaust(rest: Iterator[ConsumerRecord]) -> None:
    for _ in rest:
        pass
