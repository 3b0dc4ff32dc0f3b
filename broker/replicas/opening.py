"""Opening and closing partitions, many at a time.

A start opens thousands of logs and a stop closes them, so what is recorded about them goes into
one transaction each. A log that cannot be served does not keep the others from being.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import trio

from tidemark.broker.replicas.replica import Replica, ReplicaSpec
from tidemark.broker.replicas.replica_parts import ReplicaServices, log_settings
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.replication.elections import Priority
from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.partitions.replication.opening import GroupSpec, OpenedGroup, open_groups
from tidemark.partitions.state_machines.cluster_machine import CLUSTER_TOPIC
from tidemark.partitions.state_machines.topic_names import INTERNAL_TOPICS
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.refusals import SyncFailed, may_lose
from tidemark.partitions.storage.state_db import PartitionKey, PartitionState
from tidemark.partitions.storage.syncing import NotTaken
from tidemark.protocol.types import NO_OFFSET

logger = logging.getLogger(__name__)

LEADER_SECONDS_MAX: Final = 5.0
"""For how long a start, or the creation of a topic, waits for leaders before it goes on without."""
_NOTHING_STORED: Final[Mapping[PartitionKey, PartitionState]] = {}
_BEYOND_REPAIR: Final = (
    "records that had been acknowledged are lost, and there is no other replica to take them from. "
    "Restore the data directory from a copy, or delete the topic"
)
_PRIORITIES: Final = {
    CLUSTER_TOPIC: Priority.CLUSTER,
    **dict.fromkeys(INTERNAL_TOPICS, Priority.OFFSETS),
}


async def open_replicas(
    services: ReplicaServices, specs: Sequence[ReplicaSpec], *, are_new: bool = False
) -> list[Replica]:
    """A replica for each spec, in their order, taking part in its group.

    A partition that is not there yet is made; `are_new` says that nothing was ever recorded about
    any of them. One whose files cannot be served becomes a replica with a `failure`, and where
    that may pass is to be opened again (`may_open_later`). Who leads them is not known yet. Raises
    `OSError` or `StorageError` if the disk does not take what has to be recorded; a sync that
    failed ends the broker, too.
    """
    started = time.perf_counter()
    try:
        opened = await run_in_thread(_open_logs, services, specs, are_new)
    except SyncFailed as error:
        services.disk.fail(error)
        raise
    if not are_new:
        services.metrics.recovery_seconds += time.perf_counter() - started
    replicas = [_replica(services, *each) for each in zip(specs, opened, strict=True)]
    services.turn.run(lambda: _take_part(services, specs, replicas))
    return replicas


async def wait_lone_leaders(services: ReplicaServices, replicas: Iterable[Replica]) -> None:
    """Until those of them serve that alone vote in their group; others may be elected much later.

    Whoever owns them retires those that are deleted meanwhile: nobody will ever lead them.
    """
    alone = [each for each in replicas if _votes_alone(services, each)]
    await wait_leaders(services, alone)


def _votes_alone(services: ReplicaServices, replica: Replica) -> bool:
    """By its log. Others may have come to vote since those began whom its spec names."""
    return replica.is_available and replica.member.group.config.members == (services.node_id,)


async def wait_leaders(services: ReplicaServices, replicas: Iterable[Replica]) -> None:
    """Until it is known who leads each of these, or the disk has failed."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_give_up_with_the_disk, services, nursery.cancel_scope)
        for replica in replicas:
            await replica.wait_leader()
        nursery.cancel_scope.cancel()


async def _give_up_with_the_disk(services: ReplicaServices, waiting: trio.CancelScope) -> None:
    await services.disk.wait_failed()
    waiting.cancel()


def _open_logs(
    services: ReplicaServices, specs: Sequence[ReplicaSpec], are_new: bool
) -> list[OpenedGroup]:
    """On a thread."""
    stored = _NOTHING_STORED if are_new else _stored(services, specs)
    _make_directories(services.directory, specs, stored)
    return open_groups(
        _group_specs(services, specs),
        stored,
        services.state,
        host=services.driver.node,
        files=services.files,
        readers=services.readers,
    )


def _stored(
    services: ReplicaServices, specs: Sequence[ReplicaSpec]
) -> Mapping[PartitionKey, PartitionState]:
    if len(specs) > 1:
        return services.state.partition_states()
    one = services.state.partition_state(specs[0].key)
    return {} if one is None else {one.key: one}


def _make_directories(
    directory: DataDirectory, specs: Iterable[ReplicaSpec], stored: Container[PartitionKey]
) -> None:
    """One that is there and not recorded may be of an attempt that ended before it was synced."""
    is_synced = True
    for spec in specs:
        is_missing = not directory.has_partition(spec.topic_partition)
        if is_missing:
            directory.create_partition(spec.topic_partition)
        is_synced &= not is_missing and spec.key in stored
    if not is_synced:
        directory.sync()


def _group_specs(services: ReplicaServices, specs: Sequence[ReplicaSpec]) -> list[GroupSpec]:
    # Partitions of a topic have one config. It is found by its identity: to compare those of
    # thousands with each other takes longer than all else that is done here.
    configs = {id(spec.config): spec.config for spec in specs}
    settings = {known: log_settings(config) for known, config in configs.items()}
    return [
        GroupSpec(
            key=spec.key,
            directory=services.directory.partition_path(spec.topic_partition),
            settings=settings[id(spec.config)],
            syncs_before_ack=spec.config.syncs_before_ack,
            voters=spec.voters or (services.node_id,),
            applier=spec.applier,
        )
        for spec in specs
    ]


def _replica(services: ReplicaServices, spec: ReplicaSpec, opened: OpenedGroup) -> Replica:
    member, failure = opened.replica, opened.failure
    if member is not None and _is_beyond_repair(services, member):
        member.log.abandon()
        member, failure = None, _BEYOND_REPAIR
    may_open_later = member is None and opened.may_pass
    if may_open_later:
        logger.debug("%s is not served yet: %s", spec.topic_partition, failure)
    elif member is None:
        services.metrics.storage_errors.inc()
        logger.error("%s is not served: %s", spec.topic_partition, failure)
    else:
        member.log.room = services.room.of(spec.topic)
        _report(services, spec, member)
    return Replica(spec, services, member=member, failure=failure, may_open_later=may_open_later)


def _is_beyond_repair(services: ReplicaServices, member: GroupReplica) -> bool:
    """Whether it has lost what it had promised, and nobody else has it."""
    group = member.group
    return group.in_doubt and group.config.members == (services.node_id,)


def _report(services: ReplicaServices, spec: ReplicaSpec, member: GroupReplica) -> None:
    report = member.log.recovery
    services.metrics.recovered_bytes += report.checked_bytes
    if report.cut is not None and report.cut.is_older:
        logger.info(
            "%s: cut %d bytes that an older segment had left in %s",
            spec.topic_partition,
            report.cut_bytes,
            report.cut.path,
        )
    elif report.cut is not None:
        services.metrics.truncated_bytes += report.cut_bytes
        logger.warning(
            "%s: cut %d bytes that %s: %s at byte %d, %s",
            spec.topic_partition,
            report.cut_bytes,
            "do not follow what is known of it after damage"
            if member.group.in_doubt
            else "a crash had left unfinished",
            report.cut.path,
            report.cut.position,
            report.cut.what,
        )


def _take_part(
    services: ReplicaServices, specs: Sequence[ReplicaSpec], replicas: Sequence[Replica]
) -> None:
    for spec, replica in zip(specs, replicas, strict=True):
        if replica.is_available:
            services.driver.add(
                replica.member,
                replica,
                priority=_PRIORITIES.get(spec.topic, Priority.REST),
                preference=spec.voters,
                is_eager=spec.topic == CLUSTER_TOPIC,
            )


async def close_replicas(services: ReplicaServices, replicas: Iterable[Replica]) -> None:
    """Stop serving, then sync and record all, so that the next start has nothing to recover.

    They have to be all that there are: with them the broker's part in its groups is over. Raises
    `OSError` if a sync fails; nothing is recorded then. After a sync has failed before, nothing is
    synced at all. A log for which there is no room or descriptor is left to the next start.
    """
    members = [member for replica in replicas if (member := replica.close()) is not None]
    services.driver.stop()
    await services.disk.wait_idle()
    for member in members:
        member.close()  # its peers still speak: what is recorded must not change any more
    if services.disk.error is None:
        await run_in_thread(services.room.make_much_room)
        async with services.checkpoints.end() as mark:
            try:
                await run_in_thread(_close_logs, services, members, mark)
            except OSError as error:
                if may_lose(error):
                    services.directory.note_failed_sync()
                raise


def _close_logs(services: ReplicaServices, members: Sequence[GroupReplica], mark: int) -> None:
    """On a thread."""
    states, refusals = list[PartitionState](), list[NotTaken]()
    for member in members:
        if member.is_held:
            continue  # of its files, only the journal says the truth
        state = member.state_row(NO_OFFSET)
        try:
            states.append(replace(state, recovery_point=member.log.close()))
        except NotTaken as refusal:
            refusals.append(refusal)  # nothing is lost, and the others are recorded
    if refusals:
        logger.warning(
            "%d logs could not be closed, and are looked through at the next start: %s",
            len(refusals),
            refusals[0],
        )
    is_all = len(states) == len(members)
    services.state.save(states, journal_start=mark if is_all else None)
    if is_all:
        services.state.end_run()
