"""Opening what the replicas of a data directory share, in order; closing it in the opposite one.

What the journal holds is done again first, before anybody looks at a log.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Final

import trio

from tidemark.broker.config import BrokerSettings
from tidemark.broker.metrics import Metrics
from tidemark.broker.network.odd_events import OddEvents
from tidemark.broker.network.timers import Timers
from tidemark.broker.network.turn import Turn
from tidemark.broker.node import Clock
from tidemark.broker.replicas.checkpoints import Checkpoints
from tidemark.broker.replicas.disk import open_disk_writer
from tidemark.broker.replicas.driver import ReplicationDriver
from tidemark.broker.replicas.held import HeldRequests
from tidemark.broker.replicas.replica_parts import LeadershipWatch, ReplicaServices
from tidemark.broker.replicas.room_watch import RoomWatch, room_to_start
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.directory import STATE_DB_NAME, DataDirectory
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.files import Files
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.journal.redo import redo
from tidemark.partitions.storage.refusals import may_lose
from tidemark.partitions.storage.room import DirectoryRoom
from tidemark.partitions.storage.state_db import StateDb
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NodeId

logger = logging.getLogger(__name__)

_BOOT_ID_PATH: Final = Path("/proc/sys/kernel/random/boot_id")


@asynccontextmanager
async def open_services(
    settings: BrokerSettings,
    files: Files,
    *,
    tasks: trio.Nursery,
    turn: Turn,
    timers: Timers,
    clock: Clock,
    metrics: Metrics,
    odd_events: OddEvents,
    failed: Callable[[OSError], None],
) -> AsyncIterator[ReplicaServices]:
    """The services of a data directory that is this broker's as long as the block lasts.

    Raises `StorageError` for a directory that is another broker's, or cannot be read. `failed` is
    told of a disk that has failed later. What
    is saved in the background is saved in a task of `tasks`.
    """
    node_id = NodeId(settings.node_id)
    with ExitStack() as stack:
        directory = DataDirectory.open(files, str(settings.data_dir))
        stack.callback(directory.close)
        _check_complete(files, directory)
        room = RoomWatch(DirectoryRoom(files, directory.path))
        with room_to_start(room.room, directory.path):
            state = StateDb.open(directory.state_db_path)
            stack.callback(state.close)
            _check_node_id(state, directory.path, settings.node_id)
            run = state.begin_run(_boot_id(), has_sync_failed=directory.has_sync_failed)
            directory.forget_failed_sync()
            journal = await run_in_thread(_open_journal, files, directory, state, metrics)
            stack.callback(journal.close)
        async with open_disk_writer(
            journal,
            turn=turn,
            failed=partial(_failed, directory, failed),
            warn=lambda error: odd_events.warn("full disk", "the journal waits: %s", error),
            make_room=room.make_room,
            observe=partial(_count_flush, metrics),
        ) as disk:
            state.on_disk_failed = disk.fail_soon
            node = ReplicationNode(
                node_id,
                run.incarnation,
                rng=SystemRandom(),
                timing=Timing(failure_timeout_seconds=settings.peer_failure_timeout_ms / 1000),
                now_ms=clock.now_ms,
            )
            metrics.reads.rounds = lambda: node.confirmations.rounds
            checkpoints = Checkpoints(
                journal=journal,
                state=state,
                disk=disk,
                is_settled=lambda: node.can_checkpoint,
                make_room=room.make_room_if_full,
                is_full=lambda: room.is_out,
            )
            driver = ReplicationDriver(
                node,
                turn=turn,
                timers=timers,
                disk=disk,
                checkpoints=checkpoints,
                odd_events=odd_events,
            )
            tasks.start_soon(checkpoints.run)
            tasks.start_soon(room.run)
            yield ReplicaServices(
                node_id=node_id,
                run=run,
                files=files,
                readers=FileCache(files),
                directory=directory,
                state=state,
                disk=disk,
                room=room,
                driver=driver,
                checkpoints=checkpoints,
                leadership=LeadershipWatch(),
                held=HeldRequests(timers, settings.leader_move_pause_max_ms / 1000, metrics.moves),
                turn=turn,
                clock=clock,
                metrics=metrics,
                odd_events=odd_events,
            )


def _failed(directory: DataDirectory, failed: Callable[[OSError], None], error: OSError) -> None:
    if may_lose(error):
        directory.note_failed_sync()
    failed(error)


def _check_complete(files: Files, directory: DataDirectory) -> None:
    """Raises `StorageError` where records lie, and what says whose they are has gone.
    SQLite takes an empty file for a new one; ours is never empty once there is a partition."""
    is_empty = files.sizes(directory.path).get(STATE_DB_NAME) == 0
    if files.exists(directory.state_db_path) and not is_empty:
        return
    partitions = directory.partitions()
    if partitions:
        raise StorageError(
            f"{directory.path} has {len(partitions)} partitions and "
            f"{'an empty' if is_empty else 'no'} state.db: nobody knows what "
            "their logs hold without it. Restore it from a copy; or, where other brokers have "
            "replicas, start with an empty directory and another node.id"
        )


def _open_journal(
    files: Files, directory: DataDirectory, state: StateDb, metrics: Metrics
) -> Journal:
    """On a thread: do again what the journal says, and begin it anew."""
    report = redo(files, directory, state)
    metrics.recovered_bytes += report.appended_bytes
    metrics.truncated_bytes += report.cut_bytes
    if report.blocks:
        logger.info(
            "the last stop was not in order: what the journal has of %d partitions was done again, "
            "%d bytes at its end were unfinished and are cut",
            report.partitions,
            report.cut_bytes,
        )
    for damage in report.damage:
        metrics.storage_errors.inc()
        logger.error("%s", damage)
    return Journal.open(files, directory.journal_path, report.start)


def _count_flush(metrics: Metrics, seconds: float, turns: int) -> None:
    metrics.flush.observe(seconds)
    metrics.flushed_turns.inc(turns)


def _boot_id() -> str:
    """Which run of the machine this is: another one has another page cache."""
    try:
        return _BOOT_ID_PATH.read_text().strip()
    except OSError:
        return ""


def _check_node_id(state: StateDb, path: str, node_id: int) -> None:
    stored = state.meta("node_id")
    if stored is None:
        state.set_meta("node_id", str(node_id))
    elif int(stored) != node_id:
        raise StorageError(
            f"the data directory {path} belongs to node {stored}, and node.id is {node_id}: "
            "give it back its node id, or give this node a directory of its own"
        )
