"""What the replicas of a broker share, and what each brings from its opening."""

from __future__ import annotations

from dataclasses import dataclass

import trio

from tidemark.broker.metrics import Metrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Clock
from tidemark.broker.replicas.disk import DiskWriter
from tidemark.broker.replicas.recovery_points import RecoveryPoints
from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.partitions.state_machines.topic_configs import TopicConfig
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.settings import UNLIMITED, LogSettings
from tidemark.partitions.storage.state_db import PartitionKey, StateDb
from tidemark.protocol.types import Offset


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaServices:
    """What all replicas of a broker use."""

    files: Files
    readers: FileCache
    directory: DataDirectory
    state: StateDb
    disk: DiskWriter
    recovery_points: RecoveryPoints
    turn: Turn
    clock: Clock
    metrics: Metrics
    odd_events: OddEvents

    async def record_log_start(self, key: PartitionKey, start_offset: Offset) -> None:
        """Keep a partition's start through restarts."""
        await trio.to_thread.run_sync(self.state.set_log_starts, {key: start_offset})

    def storage_failed(self, what: str) -> None:
        self.metrics.storage_errors.inc()
        self.odd_events.warn("storage errors", "%s", what)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogState:
    """A log that was opened, and what its batches say about their producers."""

    log: Log
    producers: ProducerTable


def log_settings(config: TopicConfig) -> LogSettings:
    """What a topic's config says to its logs. A topic that is only compacted keeps its segments."""
    keeps_all = not config.deletes_old_segments
    return LogSettings(
        segment_bytes=config.segment_bytes,
        segment_ms=config.segment_ms,
        retention_bytes=UNLIMITED if keeps_all else config.retention_bytes,
        retention_ms=UNLIMITED if keeps_all else config.retention_ms,
        index_interval_bytes=config.index_interval_bytes,
    )
