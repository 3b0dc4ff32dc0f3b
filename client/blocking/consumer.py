"""Consuming from a thread without trio; see the package for what it is for."""

from collections.abc import Iterator, Mapping

from tidemark.client.blocking.portal import Portal
from tidemark.client.consumer import Consumer
from tidemark.client.coordinator import GroupMembership
from tidemark.client.descriptions import CommittedOffset
from tidemark.client.offsets import Start
from tidemark.client.records import ConsumerRecord, FetchedBatches
from tidemark.protocol.types import Offset, TopicPartition


class BlockingConsumer:
    """Made by `BlockingClient.consumer`; see `Consumer`. Iterate over it, or call `fetch`.

    All records that crossed to the caller at once count as in its hands: they are committed
    automatically when it asks for the one after them.
    """

    def __init__(self, consumer: Consumer, portal: Portal) -> None:
        self._consumer = consumer
        self._portal = portal

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while records := self.fetch():
            yield from records

    def fetch(self) -> list[ConsumerRecord]:
        """As `Consumer.fetch`."""
        return self._portal.run(self._consumer.fetch)

    def fetch_batches(self) -> FetchedBatches | None:
        """As `Consumer.fetch_batches`."""
        return self._portal.run(self._consumer.fetch_batches)

    @property
    def group_membership(self) -> GroupMembership:
        """As `Consumer.group_membership`."""
        return self._portal.run_sync(lambda: self._consumer.group_membership)

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """As `Consumer.assignment`."""
        return self._portal.run_sync(lambda: self._consumer.assignment)

    def position(self, topic_partition: TopicPartition) -> Offset:
        """The offset after the last record that crossed; see `Consumer.position`."""
        return self._portal.run_sync(self._consumer.position, topic_partition)

    def seek(self, topic_partition: TopicPartition, start: Start | str | int) -> None:
        """As `Consumer.seek`. An iteration under way hands out what has crossed already first."""
        self._portal.run(self._consumer.seek, topic_partition, start)

    def pause(self, *partitions: TopicPartition) -> None:
        """As `Consumer.pause`. An iteration under way hands out what has crossed already first."""
        self._portal.run_sync(self._consumer.pause, *partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """As `Consumer.resume`."""
        self._portal.run_sync(self._consumer.resume, *partitions)

    def commit(
        self, offsets: Mapping[TopicPartition, Offset | CommittedOffset] | None = None
    ) -> None:
        """As `Consumer.commit`."""
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
