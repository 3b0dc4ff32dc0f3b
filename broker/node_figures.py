"""A running broker as a scrape sees it. Called from the scrape's thread: it only reads."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import trio

from tidemark.broker.late_imports import repeatable_imports
from tidemark.broker.metadata.partition_view import PartitionView, partition_view
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.metrics.figures import (
    GroupFigures,
    LedFigures,
    PartitionFigures,
    TransactionFigures,
)
from tidemark.broker.node import Node
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.steps import Steps
from tidemark.partitions.state_machines.open_transactions import OpenTransactions
from tidemark.protocol.types import NodeId, Offset, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.ends_elsewhere import EndsElsewhere


class NodeFigures:
    """The figures of one node."""

    def __init__(self, node: Node, address: str) -> None:
        self._node = node
        self._ends_elsewhere: EndsElsewhere | None = None
        self.address = address

    @property
    def node_id(self) -> NodeId:
        return self._node.node_id

    def partitions(self) -> Sequence[PartitionFigures]:
        dirty_ratios = self._node.metrics.compaction.dirty_ratios
        now_ms = self._node.clock.now_ms()
        return [
            _figures(replica, dirty_ratios.get(replica.name), now_ms)
            for topic in self._node.topics
            for replica in topic.replicas
            if replica.is_available
        ]

    def topics(self) -> Mapping[str, int]:
        return {topic.name: topic.partition_count for topic in self._node.topics}

    def ends_elsewhere(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, Offset]:
        if self._ends_elsewhere is None:
            with repeatable_imports():
                from tidemark.broker.ends_elsewhere import EndsElsewhere
            self._ends_elsewhere = EndsElsewhere(self._node)
        return trio.from_thread.run(self._ends_elsewhere.ask, partitions)

    def led(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LedFigures]:
        return trio.from_thread.run(_led, self._node, partitions)

    def brokers(self) -> int:
        brokers = self._node.brokers
        return sum(map(brokers.is_alive, brokers.registered))

    def groups(self) -> Sequence[GroupFigures]:
        return self._node.coordinator.figures()

    def leaderless_partitions(self) -> int:
        return self._node.topics.concerns.leaderless

    def unclean_replicas(self) -> int:
        return len(self._node.topics.concerns.unclean)

    def disk_free_bytes(self) -> int:
        stat = os.statvfs(self._node.settings.data_dir)
        return stat.f_bavail * stat.f_frsize

    def is_disk_full(self) -> bool:
        return self._node.room.is_out


async def _led(
    node: Node, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, LedFigures]:
    """On the loop: what a leader knows of its followers changes with every message."""
    found, steps = dict[TopicPartition, LedFigures](), Steps()
    for partition in partitions:
        topic = node.topics.get(partition.topic)
        # It may have been made anew with fewer of them.
        if topic is not None and partition.partition < topic.partition_count:
            view = partition_view(node.brokers, topic, partition.partition)
            if view.leader == node.node_id:
                found[partition] = _led_figures(topic, view)
        await steps.did(1)
    return found


def _led_figures(topic: Topic, view: PartitionView) -> LedFigures:
    observers = topic.metadata.observers.get(view.partition, ())
    return LedFigures(
        replicas=len(view.replicas) - len(observers),
        in_sync=len(view.in_sync),
        is_led_by_preferred=view.leader == view.replicas[0],
    )


def _figures(replica: Replica, dirty_ratio: float | None, now_ms: int) -> PartitionFigures:
    log = replica.log
    # One that leads is behind nobody.
    fresh = None if replica.is_leader else replica.freshness
    staleness_ms = None if fresh is None else fresh.staleness_ms
    return PartitionFigures(
        topic=replica.topic,
        partition=replica.partition,
        log_start=log.start_offset,
        high_watermark=replica.high_watermark,
        log_end=log.end_offset,
        size_bytes=log.size_bytes,
        epoch=replica.epoch,
        lag_records=None if fresh is None else fresh.lag_records,
        staleness_seconds=None if staleness_ms is None else staleness_ms / 1000,
        dirty_ratio=dirty_ratio,
        transactions=_transactions(replica.member.producers.transactions, now_ms),
    )


def _transactions(transactions: OpenTransactions, now_ms: int) -> TransactionFigures | None:
    # Copied at once: the loop's thread goes on.
    opened, aborted = list(transactions.opened.values()), transactions.aborted_count
    if not opened and not aborted:
        return None
    began_ms = opened[0].began_ms if opened else now_ms
    return TransactionFigures(
        open=len(opened),
        oldest_seconds=max(now_ms - began_ms, 0) / 1000 if began_ms >= 0 else None,
        aborted=aborted,
    )
