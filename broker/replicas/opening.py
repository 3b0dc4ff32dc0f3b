"""Opening and closing partitions, many at a time.

A start opens thousands of logs and a stop closes them, so what is recorded about them goes into
one transaction each. A log that cannot be served does not keep the others from being.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from tidemark.broker.replicas.epochs import EpochStart, EpochTable
from tidemark.broker.replicas.replica import Replica, ReplicaSpec
from tidemark.broker.replicas.replica_parts import LogState, ReplicaServices, log_settings
from tidemark.partitions.state_machines.producers import ProducerTable
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.log import Log
from tidemark.partitions.storage.state_db import EpochRow, PartitionKey, StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import Epoch, Offset

logger = logging.getLogger(__name__)


class _Producers:
    """Follows the batches of a log while it is opened."""

    def __init__(self) -> None:
        self.table = ProducerTable()

    def load(self, payload: bytes) -> None:
        self.table = ProducerTable.decode(payload)

    def on_batch(self, header: BatchHeader) -> None:
        self.table.append(header, header.base_offset)

    def take(self) -> bytes:
        return self.table.encode()


@dataclass(frozen=True, slots=True)
class _Opened:
    """One log after its files were looked at: there, or with the reason why not."""

    spec: ReplicaSpec
    epochs: EpochTable
    state: LogState | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class _Stored:
    """What `state.db` holds of the partitions to open."""

    epochs: Mapping[PartitionKey, Sequence[EpochRow]]
    log_starts: Mapping[PartitionKey, Offset]
    recovery_points: Mapping[PartitionKey, Offset]


_NOTHING_STORED: Final = _Stored({}, {}, {})


async def open_replicas(
    services: ReplicaServices, specs: Sequence[ReplicaSpec], *, are_new: bool = False
) -> list[Replica]:
    """A replica for each spec, in their order, each in a new leader epoch.

    A partition that is not there yet is made; `are_new` says that nothing was ever recorded about
    any of them. One whose files cannot be served becomes a replica with a `failure`. Raises
    `OSError` or `StorageError` if the disk does not take what has to be recorded.
    """
    started = time.perf_counter()
    opened = await trio.to_thread.run_sync(_open_logs, services, specs, are_new)
    if not are_new:
        services.metrics.recovery_seconds += time.perf_counter() - started
    for each in opened:
        _report(services, each)
    return [
        Replica(each.spec, services, epochs=each.epochs, state=each.state, failure=each.failure)
        for each in opened
    ]


def _open_logs(
    services: ReplicaServices, specs: Sequence[ReplicaSpec], are_new: bool
) -> list[_Opened]:
    """On a thread. An epoch is recorded before any batch can carry it."""
    _make_directories(services.directory, specs)
    stored = _NOTHING_STORED if are_new else _load(services.state)
    opened = [_open_log(services, spec, stored) for spec in specs]
    with services.state.transaction():
        for each in opened:
            if each.state is not None:
                _begin_epoch(services.state, each.spec.key, each.epochs, each.state.log.end_offset)
    return opened


def _load(state: StateDb) -> _Stored:
    return _Stored(state.epochs(), state.log_starts(), state.recovery_points())


def _begin_epoch(state: StateDb, key: PartitionKey, epochs: EpochTable, at: Offset) -> None:
    before = len(epochs.starts)
    start = EpochStart(Epoch(epochs.newest + 1), at)
    epochs.begin(start)
    if len(epochs.starts) > before:
        state.append_epochs([(key, EpochRow(*start))])
    else:
        state.replace_epochs(key, [EpochRow(*each) for each in epochs.starts])


def _make_directories(directory: DataDirectory, specs: Iterable[ReplicaSpec]) -> None:
    there = set(directory.partitions())
    missing = [spec.topic_partition for spec in specs if spec.topic_partition not in there]
    for partition in missing:
        directory.create_partition(partition)
    if missing:
        directory.sync()


def _open_log(services: ReplicaServices, spec: ReplicaSpec, stored: _Stored) -> _Opened:
    producers = _Producers()
    epochs = EpochTable(EpochStart(*row) for row in stored.epochs.get(spec.key, ()))
    try:
        log = Log.open(
            services.files,
            services.directory.partition_path(spec.topic_partition),
            log_settings(spec.config),
            start_offset=stored.log_starts.get(spec.key, Offset(0)),
            recovery_point=stored.recovery_points.get(spec.key, Offset(0)),
            epoch_max=epochs.newest,
            readers=services.readers,
            on_batch=producers.on_batch,
            load_snapshot=producers.load,
            take_snapshot=producers.take,
        )
    except (OSError, StorageError) as error:
        return _Opened(spec, epochs, None, str(error))
    return _Opened(spec, epochs, LogState(log=log, producers=producers.table), None)


def _report(services: ReplicaServices, opened: _Opened) -> None:
    if opened.state is None:
        services.metrics.storage_errors.inc()
        logger.error("%s is not served: %s", opened.spec.topic_partition, opened.failure)
        return
    report = opened.state.log.recovery
    services.metrics.recovered_bytes += report.checked_bytes
    services.metrics.truncated_bytes += report.cut_bytes
    if report.cut is not None:
        logger.warning(
            "%s: cut %d bytes that a crash had left unfinished: %s at byte %d, %s",
            opened.spec.topic_partition,
            report.cut_bytes,
            report.cut.path,
            report.cut.position,
            report.cut.what,
        )


async def close_replicas(services: ReplicaServices, replicas: Iterable[Replica]) -> None:
    """Stop serving, then sync and record all, so that the next start has nothing to recover.

    Raises `OSError` if a sync fails; nothing is recorded about that log. After a sync of the disk
    writer has failed, nothing is synced or recorded at all.
    """
    logs = {replica.key: replica.retire() for replica in replicas}
    # A capture that is being synced would meet its log's closing.
    await services.disk.wait_idle()
    if services.disk.error is None:
        await trio.to_thread.run_sync(_close_logs, services.state, logs)


def _close_logs(state: StateDb, logs: Mapping[PartitionKey, Log | None]) -> None:
    points: dict[PartitionKey, Offset] = {}
    try:
        for key, log in logs.items():
            if log is not None:
                points[key] = log.close()
    finally:
        state.set_recovery_points(points)
