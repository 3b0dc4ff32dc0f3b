"""What a broker does before its first turn: redo the journal, open what is on the disk."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from tidemark.partitions.raft.ports import Limits
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.node import ReplicationNode
from tidemark.partitions.replication.opening import GroupSpec, open_groups
from tidemark.partitions.replication.timing import Timing
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.file_cache import FileCache
from tidemark.partitions.storage.journal.journal import Journal
from tidemark.partitions.storage.journal.redo import RedoReport, redo
from tidemark.partitions.storage.settings import LogSettings
from tidemark.partitions.storage.state_db import Condition, PartitionKey, PartitionState
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NodeId
from tidemark.testing.checkers import opening
from tidemark.testing.checkers.violation import require
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.placement import topic_of
from tidemark.testing.simulator.randomness import stream

if TYPE_CHECKING:
    from tidemark.testing.simulator.broker import Broker

_DIRECTORY = "/data"
_JOURNAL_FILES = 4
_READERS_MAX = 64


class Opened(NamedTuple):
    node: ReplicationNode
    journal: Journal
    replicas: dict[PartitionKey, GroupReplica]
    directory: DataDirectory


def timing_of(knobs: Knobs) -> Timing:
    return Timing(
        heartbeat_seconds=knobs.heartbeat,
        failure_timeout_seconds=knobs.failure_timeout,
        election_jitter_seconds=knobs.election_jitter,
        election_rank_seconds=knobs.election_rank,
        campaigns_at_once=knobs.campaigns_at_once,
        campaign_timeout_seconds=knobs.campaign_timeout,
        retry_seconds=knobs.retry,
    )


def open_broker(broker: Broker) -> Opened:
    """Everything of one process. Raises `OSError` or `StorageError` as the real one would."""
    world = broker.world
    directory = DataDirectory.open(broker.files, _DIRECTORY)
    run = broker.state.begin_run(f"boot {broker.boots}")
    _create_missing(broker, directory)
    report = redo(broker.files, directory, broker.state)
    _judge_damage(broker, report)
    journal = Journal.open(
        broker.files,
        directory.journal_path,
        report.start,
        file_bytes=world.knobs.journal_file_bytes,
        files_max=_JOURNAL_FILES,
    )
    node = _make_node(broker, run.incarnation)
    hosted = {group: _voters(broker, group) for group in _hosted(broker)}
    replicas = open_replicas(broker, directory, node, hosted, is_disk_bad=broker.is_disk_bad)
    node.set_peers(world.nodes)
    for group in _hosted(broker):
        if group.key not in replicas:
            continue
        node.set_observers(group.key, group.observers)
        if broker.node_id in group.observers:
            parents = [other for other in world.nodes if other != broker.node_id]
            node.observe(group.key, parents, is_told=True)
    return Opened(node, journal, replicas, directory)


def _judge_damage(broker: Broker, report: RedoReport) -> None:
    """What flipped is noticed, and nothing else is taken for that."""
    what = f"{broker.node_id} found {report.damage}"
    if not broker.has_rot and broker.rotten is None:
        require(not report.damage, "no crash looks like damage", "all groups", what)
        return
    is_noticed = bool(report.damage) or not broker.has_rot
    require(is_noticed, "damage is noticed", "all groups", what)
    broker.has_rot = False
    stored = broker.state.partition_states()
    for key in sorted(report.damaged):
        broker.world.watch.groups[key].loses_newest(broker.node_id, stored[key].hard_state)
        broker.world.coverage.counts["replicas damaged"] += 1


def _create_missing(broker: Broker, directory: DataDirectory) -> None:
    """Directories and rows of groups that a start before did not live to record."""
    stored = broker.state.partition_states()
    missing = [group for group in _hosted(broker) if group.key not in stored]
    there = directory.partitions()
    for group in missing:
        if group.partition not in there:
            directory.create_partition(group.partition)
    if missing:
        directory.sync()
        broker.state.save(
            PartitionState(
                key=group.key, name=str(group.partition), is_journaled=group.is_journaled
            )
            for group in missing
        )


def _hosted(broker: Broker) -> list[SimulatedGroup]:
    if broker.world.placement is not None:
        return _placed(broker)
    # Where voters change, anyone may become one, and waits for it without a vote.
    may_change = "reconfigure" in broker.world.knobs.fault_kinds
    return [
        group
        for group in broker.world.groups
        if may_change or broker.node_id in (*group.voters, *group.observers)
    ]


def _placed(broker: Broker) -> list[SimulatedGroup]:
    """What was here, as far as this broker knows that it is to be here; at first, what is new."""
    stored, topic = broker.state.partition_states(), topic_of(broker.known_state())
    return [
        group
        for group in broker.world.groups
        if broker.node_id in topic.hosts(group.key.partition)
        and (group.key in stored or not broker.current_at)
    ]


def _voters(broker: Broker, group: SimulatedGroup) -> tuple[NodeId, ...]:
    if broker.world.placement is None:
        return group.voters
    return topic_of(broker.known_state()).assignments[group.key.partition]


def _make_node(broker: Broker, incarnation: int) -> ReplicationNode:
    world, knobs = broker.world, broker.world.knobs
    return ReplicationNode(
        broker.node_id,
        incarnation,
        rng=stream(world.seed, f"node {broker.node_id} {broker.starts}"),
        timing=timing_of(knobs),
        limits=Limits(
            append_bytes_max=knobs.append_bytes_max,
            window_bytes=knobs.window_bytes,
            early_bytes_max=knobs.early_bytes_max,
        ),
        now_ms=lambda: broker.clock.wall_ms(world.queue.now),
    )


def open_replicas(
    broker: Broker,
    directory: DataDirectory,
    node: ReplicationNode,
    groups: Mapping[SimulatedGroup, tuple[NodeId, ...]],
    *,
    is_disk_bad: bool,
) -> dict[PartitionKey, GroupReplica]:
    """Replicas of groups that were assigned to these voters.

    `is_disk_bad`: opening has a right to fail.
    """
    world = broker.world
    stored = broker.state.partition_states()
    _make_directories(directory, groups, stored)
    readers = FileCache(broker.files, open_max=_READERS_MAX)
    specs = [
        GroupSpec(
            key=group.key,
            directory=directory.partition_path(group.partition),
            settings=LogSettings(
                segment_bytes=world.knobs.segment_bytes,
                segment_ms=world.knobs.segment_ms,
                recycled_batch_bytes=0,
            ),
            syncs_before_ack=group.is_journaled,
            journaled_bytes_max=world.knobs.journaled_bytes_max,
            voters=voters,
        )
        for group, voters in groups.items()
    ]
    opened = open_groups(
        specs, stored, broker.state, host=node, files=broker.files, readers=readers
    )
    replicas = {}
    for group, found in zip(groups, opened):
        what = f"{broker.node_id}: {found.failure}"
        name = str(group.partition)
        if found.replica is None and is_disk_bad:
            raise StorageError(what)
        if found.replica is None and broker.is_rotten(group.key):
            world.told_of_rot(broker)
            continue
        require(found.replica is not None, "a log opens after any crash", name, what)
        assert found.replica is not None
        before = stored.get(group.key)
        if before is not None:
            recorded = before.log_start
            if before.condition is Condition.DAMAGED:  # that may be in what the journal has lost
                recorded = max(recorded, world.given_up.get(group.key, recorded))
            opening.keeps_its_beginning(name, broker.node_id, found.replica.log_start, recorded)
        replicas[group.key] = found.replica
        found.replica.log.room = broker.room
        watch = world.watch.groups[group.key]
        watch.starts(broker.node_id, found.replica, found.replica.hard_state)
        node.add(found.replica, preference=groups[group])
    return replicas


def _make_directories(
    directory: DataDirectory, groups: Iterable[SimulatedGroup], stored: Container[PartitionKey]
) -> None:
    """As the broker's own."""
    there, is_synced = directory.partitions(), True
    for group in groups:
        is_missing = group.partition not in there
        if is_missing:
            directory.create_partition(group.partition)
        is_synced &= not is_missing and group.key in stored
    if not is_synced:
        directory.sync()
