"""What the replicas of a broker share."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tidemark.broker.metrics import Metrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Clock
from tidemark.broker.replicas.checkpoints import Checkpoints
from tidemark.broker.replicas.disk import DiskWriter
from tidemark.broker.replicas.driver import ReplicationDriver
from tidemark.broker.replicas.held import HeldRequests
from tidemark.broker.replicas.room_watch import RoomWatch
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.compaction.settings import CompactionSettings
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.settings import RECYCLED_BATCH_BYTES, UNLIMITED, LogSettings
from tidemark.partitions.storage.state_db import BrokerRun, StateDb
from tidemark.protocol.types import NodeId
from tidemark.protocol.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidemark.broker.replicas.replica import Replica


class LeadershipWatch:
    """Who is told when this broker begins or ends to serve partitions of a topic."""

    def __init__(self) -> None:
        self._watchers: dict[str, Callable[[Replica], None]] = {}

    def watch(self, topic: str, watcher: Callable[[Replica], None]) -> None:
        """Have `watcher` called, within a turn, for every replica of the topic that changes."""
        self._watchers[topic] = watcher

    def stop(self, topic: str) -> None:
        self._watchers.pop(topic, None)

    def changed(self, replica: Replica) -> None:
        watcher = self._watchers.get(replica.topic)
        if watcher is not None:
            watcher(replica)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaServices:
    """What all replicas of a broker use."""

    node_id: NodeId
    run: BrokerRun
    files: Files
    readers: FileCache
    directory: DataDirectory
    state: StateDb
    disk: DiskWriter
    room: RoomWatch
    driver: ReplicationDriver
    checkpoints: Checkpoints
    leadership: LeadershipWatch
    held: HeldRequests
    turn: Turn
    clock: Clock
    metrics: Metrics
    odd_events: OddEvents

    def storage_failed(self, what: str) -> None:
        self.metrics.storage_errors.inc()
        self.odd_events.warn("storage errors", "%s", what)


@lru_cache(maxsize=256)
def log_settings(config: TopicConfig) -> LogSettings:
    """What a topic's config says to its logs. A topic that is only compacted keeps its segments.

    Only closed segments are compacted, so one must not be open for longer than what is in it may
    stay uncompacted. One value for all logs of the topic.
    """
    keeps_all = not config.deletes_old_segments
    open_ms_max = config.max_compaction_lag_ms if config.is_compacted else config.segment_ms
    return LogSettings(
        segment_bytes=config.segment_bytes,
        segment_ms=min(config.segment_ms, open_ms_max),
        segment_jitter_ms=config.segment_jitter_ms,
        retention_bytes=UNLIMITED if keeps_all else config.retention_bytes,
        retention_ms=UNLIMITED if keeps_all else config.retention_ms,
        index_interval_bytes=config.index_interval_bytes,
        recycled_batch_bytes=UNLIMITED if config.is_compacted else RECYCLED_BATCH_BYTES,
    )


def compaction_settings(config: TopicConfig) -> CompactionSettings:
    """What a topic's config says to the compaction of its logs."""
    return CompactionSettings(
        delete_retention_ms=config.delete_retention_ms,
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        max_compaction_lag_ms=config.max_compaction_lag_ms,
        min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
    )
