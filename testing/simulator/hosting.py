"""Which replicas a process has open: as the metadata say, as far as it has heard of them.

It follows the rules of the broker's own hosting: nothing is made or given up by metadata that may
be old, and what was given up is renamed, forgotten by the journal, and then by `state.db`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from tidemark.partitions.replication.reassigning import Reassignments, may_be_wished_later
from tidemark.partitions.replication.reassignment_values import ReassignmentTiming, Stage
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.storage.left_groups import leave
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.opening import open_replicas
from tidemark.testing.simulator.placement import Placement, topic_of, wishes_of

if TYPE_CHECKING:
    from tidemark.testing.simulator.process import Process

_LOOK_SECONDS: Final = 0.05
_HELD_LOOK_SECONDS: Final = 0.005
_AGAIN_SECONDS: Final = 0.2
_REPORT_SECONDS: Final = 0.3
_MOMENTS: Final = {
    Stage.COPY: "replica copying",
    Stage.LEAD: "replica leading",
    Stage.CHANGE: "replica changing",
    Stage.DONE: "replica done",
}


class Hosting:
    """Of one process."""

    def __init__(self, process: Process, placement: Placement) -> None:
        self._process = process
        self._placement = placement
        broker = process.broker
        self.state = placement.first_state()
        self._applied = 0
        self._current_at = broker.current_at
        self._apply(broker.known_commands)
        self._going: set[PartitionKey] = set()
        """Given up, and not yet forgotten."""
        self._is_swept = False
        self.left_in: dict[PartitionKey, Epoch] = {}
        self._stages: dict[PartitionKey, Stage] = {}
        knobs = process.world.knobs
        self.reassignments = Reassignments(
            process.node,
            bytes_per_second=broker.copy_bytes,
            timing=ReassignmentTiming(near_bytes=knobs.near_bytes, silence_seconds=2.0),
        )

    def start(self) -> None:
        self._placement.tell(self._process.broker)
        self._follow()
        self._look()

    def hear(self, commands: int) -> None:
        self._apply(commands)
        self._process.broker.known_commands = self._applied
        self._follow()

    def _apply(self, commands: int) -> None:
        for command in self._placement.commands[self._applied : commands]:
            self.state.apply(command)
        self._applied = max(self._applied, commands)

    @property
    def _is_current(self) -> bool:
        return self._applied >= self._current_at

    # Opening and giving up

    def _follow(self) -> None:
        """Do what the metadata ask for, as far as it may be done."""
        process = self._process
        topic, node = topic_of(self.state), process.broker.node_id
        for group in process.world.groups:
            is_host = node in topic.hosts(group.key.partition)
            is_open = group.key in process.replicas
            if is_host and not is_open and self._may_open(group):
                self._open(group, topic.assignments[group.key.partition])
            elif is_open and not is_host and self._may_give_up(group):
                self._give_up(group)
        if self._is_current and not self._is_swept:
            self._sweep(topic)
        self.reassignments.set_all(wishes_of(self.state), self.state.version)
        process.turn()

    def _sweep(self, topic: TopicMetadata) -> None:
        """What was to be given up while this broker was away, and was not opened any more."""
        process, node = self._process, self._process.broker.node_id
        recorded = process.broker.state.partition_states()
        strays = [
            group
            for group in process.world.groups
            if group.key in recorded
            and group.key not in self._going
            and node not in topic.hosts(group.key.partition)
        ]
        unique = UUID(int=process.broker.starts * 1_000_000 + 999_999)
        try:
            process.directory.mark_deleted([group.partition for group in strays], unique)
        except OSError:
            return
        for group in strays:
            process.world.watch.groups[group.key].gives_up(node)
            process.moment("replica swept")
        leave(process.broker.state, {group.key: NO_EPOCH for group in strays})
        self._is_swept = True

    def _may_open(self, group: SimulatedGroup) -> bool:
        recorded = self._process.broker.state.partition_states()
        return group.key not in self._going and (self._is_current or group.key in recorded)

    def _may_give_up(self, group: SimulatedGroup) -> bool:
        replica = self._process.replicas[group.key]
        return self._is_current and not may_be_wished_later(replica, self.state.version)

    def _open(self, group: SimulatedGroup, voters: tuple[NodeId, ...]) -> None:
        process = self._process
        broker = process.broker
        files = broker.files
        is_bad = bool(files.failing_syncs or files.capacity_bytes is not None)
        is_known = group.key in broker.state.partition_states()
        try:
            found = open_replicas(
                broker, process.directory, process.node, {group: voters}, is_disk_bad=is_bad
            )
        except SyncFailed as error:
            process.disk_failed(error)
            return
        except (OSError, StorageError):
            if not is_bad:
                raise
            process.later(_AGAIN_SECONDS, self._follow)
            return
        process.replicas |= found
        if not is_known:
            process.moment("replica joins")

    def _give_up(self, group: SimulatedGroup) -> None:
        process, key = self._process, group.key
        replica = process.replicas.pop(key)
        self.left_in[key] = replica.epoch
        process.desk.give_up(key)
        process.node.remove(key, is_deleted=True, lives_on=True)
        replica.log.abandon()
        process.world.watch.groups[key].gives_up(process.broker.node_id)
        self._going.add(key)
        process.turn()
        process.later(process.disk_seconds("sync"), self._rename, group, process.newest_write)
        process.moment("replica given up")

    def _rename(self, group: SimulatedGroup, write: int) -> None:
        """Its directory makes room; then the journal is waited for, and then `state.db`."""
        process = self._process
        unique = UUID(int=process.broker.starts * 1_000_000 + write)
        try:
            process.directory.mark_deleted([group.partition], unique)
        except OSError:
            process.later(_AGAIN_SECONDS, self._rename, group, write)
            return
        self._forget_once_durable(group, write)

    def _forget_once_durable(self, group: SimulatedGroup, write: int) -> None:
        process = self._process
        if process.writer.synced_write < write:
            process.later(_LOOK_SECONDS, self._forget_once_durable, group, write)
            return
        if process.is_checkpointing:
            process.later(_LOOK_SECONDS, self._forget_once_durable, group, write)
            return
        leave(process.broker.state, {group.key: self.left_in.pop(group.key)})
        self._going.discard(group.key)
        process.moment("replica forgotten")
        self._follow()

    # Wishes

    def _look(self) -> None:
        """As the executor does: again and again."""
        process, part = self._process, self.reassignments
        part.look(process.now)
        self._mark()
        world = process.world
        groups = {group.key: group for group in world.groups}
        for key, wish in part.done():
            seconds = process.broker.rng.random() * _REPORT_SECONDS
            world.queue.after(seconds, self._placement.report, groups[key], wish)
        process.turn()
        seconds = _HELD_LOOK_SECONDS if part.is_changing else _LOOK_SECONDS
        process.later(seconds, self._look)

    def _mark(self) -> None:
        """Each stage is a moment, once for each time it is reached."""
        stages = {key: state.stage for key, state in self.reassignments.states()}
        for key, stage in stages.items():
            if stage is not self._stages.get(key) and stage in _MOMENTS:
                self._process.moment(_MOMENTS[stage])
        self._stages = stages
