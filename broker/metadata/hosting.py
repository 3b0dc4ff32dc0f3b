"""The partitions that a broker hosts: opened and closed as the cluster's metadata say.

The metadata decide; files follow, in passes, each of which does all that is to be done by then:
first what has been deleted, or is other brokers' now, is renamed, then what is new is opened. A
crash in between leaves files that do not agree with the metadata yet, and the next start makes them
agree:

1. a partition that is to be here and has no directory is made, as any new one;
2. a directory of a partition that is no longer in the metadata, or not to be here any more, is
   renamed, and then removed. It cannot belong to a later topic of that name, for a pass renames
   before it opens, and until the metadata are current, what is recorded says whose it is;
3. a replica that was to go while it could not be renamed is not opened by the next start once the
   metadata are current. Before, it may be, as it was: its group has gone over to others then, and
   listens to nobody who does not know that.

Nor is anything *made* before the metadata are current. What is assigned to this broker by an old
state of them may have been given up since, and two brokers that made it anew, empty, would be a
majority of the voters that the group had then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final
from uuid import UUID

import trio

from tidemark.broker.metadata.going_away import GoingAway
from tidemark.broker.metadata.hosted_files import HostedFiles, is_host
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.replicas.opening import (
    LEADER_SECONDS_MAX,
    open_replicas,
    wait_leaders,
    wait_lone_leaders,
)
from tidemark.broker.replicas.replica import Replica
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.replication.reassigning import may_be_wished_later
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.storage.refusals import SyncFailed
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError, StorageError
from tidemark.protocol.types import NodeId, TopicPartition

RETRY_SECONDS: Final = 5.0
"""Until what the disk did not take is tried again."""
_NONE: Final[Mapping[int, Replica]] = MappingProxyType({})


class Hosting:
    """The replicas that are open here. Used on the loop's thread; `run` does what was asked for."""

    def __init__(
        self, node_id: NodeId, services: ReplicaServices, version: Callable[[], int]
    ) -> None:
        """`version` is that of the metadata as they are known here."""
        self._node_id = node_id
        self._services = services
        self._version = version
        self._files = HostedFiles(node_id, services)
        self._replicas: dict[UUID, dict[int, Replica]] = {}
        self._to_open: dict[UUID, Topic] = {}
        self._opening: dict[PartitionKey, Replica] = {}
        """Open, and not served yet. Who waits for their leaders has to hear that one is deleted:
        that will never have any."""
        self._going = GoingAway(self._files, self._not_renamed)
        self._failures: dict[UUID, str] = {}
        self._is_asked = trio.Event()
        self._is_current = False
        """Whether topics that come now were never here before."""
        self._may_make = False
        """Whether the metadata are current: then what is not here is to be made."""
        self._may_be_here: set[UUID] = set()
        """Those that came before."""
        self._passed = trio.Event()
        """Set, and replaced, after every pass."""
        self.changed: Callable[[UUID], None] = lambda _: None
        """Called with the id of a topic that has other replicas here than before."""
        self.has_leftovers = trio.Event()
        """Set when directories wait to be removed."""

    def by_partition(self, topic_id: UUID) -> Mapping[int, Replica]:
        """Those of a topic that are open here."""
        return self._replicas.get(topic_id, _NONE)

    def __iter__(self) -> Iterator[Replica]:
        """All that are open here."""
        return iter([each for here in self._replicas.values() for each in here.values()])

    # Asked for at once, when a command is applied; done in the next pass

    def open(self, topic: Topic, partitions: Iterable[int] | None = None) -> None:
        """Open those of its partitions that are assigned to this broker and are not open.

        `partitions` are those of which that may have changed; all, if it is not said.
        """
        if self._is_incomplete(topic, partitions):
            self._to_open[topic.id] = topic
            if not self._is_current:
                self._may_be_here.add(topic.id)
            self._is_asked.set()

    def _is_incomplete(self, topic: Topic, partitions: Iterable[int] | None = None) -> bool:
        here = self.by_partition(topic.id)
        hosted = topic.hosted(self._node_id, without=here, partitions=partitions)
        return any(True for _ in hosted)

    def reconfigure(self, topic: Topic) -> None:
        for replica in self._replicas.get(topic.id, {}).values():
            replica.apply_config(topic.config)
        if topic.id in self._to_open:
            self._to_open[topic.id] = topic

    def rehost(self, topic: Topic, partitions: Collection[int] | None = None) -> None:
        """The topic has other hosts: open what is to be here now, and give up what is not.

        `partitions` are those that have; any may, if it is not said. Where thousands are moved, a
        few at a time, the others are not looked at each time.

        Nothing is given up before the metadata are current: what an old command takes from this
        broker, a later one that is still to be applied may have given it again.
        """
        if self._is_current:
            self._give_up_strangers(topic.metadata, partitions)
        for replica in self._among(topic.id, partitions):
            if replica.is_available:
                replica.member.preference = topic.metadata.replicas(replica.partition)
        self._may_be_here.add(topic.id)
        if topic.id in self._to_open:
            self._to_open[topic.id] = topic
        self.open(topic, partitions)

    def _among(self, topic_id: UUID, partitions: Iterable[int] | None) -> list[Replica]:
        """Those of these partitions that are open here; of all, if none are named."""
        here = self.by_partition(topic_id)
        if partitions is None:
            return list(here.values())
        return [here[partition] for partition in partitions if partition in here]

    def _give_up_strangers(
        self, metadata: TopicMetadata, partitions: Iterable[int] | None = None
    ) -> None:
        for replica in self._among(metadata.id, partitions):
            if self._is_to_go(metadata, replica):
                del self._replicas[metadata.id][replica.partition]
                self._give_up(replica)

    def _is_to_go(self, metadata: TopicMetadata, replica: Replica) -> bool:
        """Whether it is other brokers' now. Where its voters are of a wish that is not known here
        yet, that comes with a command of its own, and the replica is looked at again."""
        if is_host(self._node_id, metadata, replica.partition):
            return False
        member = replica.member if replica.is_available else None
        return member is None or not may_be_wished_later(member, self._version())

    def _give_up(self, replica: Replica) -> None:
        """Its group has gone over to others, durably: nobody counts on what is here."""
        partition = TopicPartition(replica.topic, replica.partition)
        self._going.give_up(replica.key, partition, left_in=replica.give_up())
        self._is_asked.set()

    def remove(self, metadata: TopicMetadata) -> None:
        """Serve none of its partitions any more, from now on; rename their files."""
        self._to_open.pop(metadata.id, None)
        self._failures.pop(metadata.id, None)
        here = self._replicas.pop(metadata.id, {})
        self._going.delete(metadata)
        for partition in range(metadata.partitions):
            key = PartitionKey(metadata.id, partition)
            replica = here.get(partition) or self._opening.get(key)
            if replica is not None:
                replica.delete()
            else:
                self._services.driver.remove(key, is_deleted=True)
        self._is_asked.set()

    def is_removing(self, name: str) -> bool:
        """Whether there may be files of a deleted topic of that name."""
        return self._going.is_deleting(name)

    async def wait_settled(self, topic_id: UUID) -> None:
        """Until what was asked for about a topic is done.

        Raises KAFKA_STORAGE_ERROR if it could not be done. The metadata stand: it is tried again
        every few seconds.
        """
        while self._is_unsettled(topic_id):
            if topic_id in self._failures:
                break
            await self._passed.wait()
        failure = self._failures.get(topic_id)
        if failure is not None:
            raise RequestError(ErrorCode.KAFKA_STORAGE_ERROR, failure)

    def _is_unsettled(self, topic_id: UUID) -> bool:
        return topic_id in self._to_open or self._going.has_of(topic_id)

    # Passes

    async def run(self) -> None:
        """Do what is asked for, as long as this runs. What has begun is finished; what could not be
        done, for want of room or of descriptors say, is tried again."""
        while True:
            with trio.move_on_after(RETRY_SECONDS if self._failures else math.inf):
                await self._is_asked.wait()
            self._is_asked = trio.Event()
            with trio.CancelScope(shield=True):
                await self.make_pass()

    async def make_pass(self) -> None:
        self._failures.clear()
        await self._rename()
        while self._failures and self._services.room.make_room_if_full():
            # What is to go makes room: that it goes may take some of the reserve.
            self._failures.clear()
            await self._rename()
        await self._open()
        self._passed.set()
        self._passed = trio.Event()

    async def _rename(self) -> None:
        deleted = await self._going.rename_deleted()
        if deleted:
            self._may_be_here.difference_update(deleted)
            self.has_leftovers.set()
        if await self._going.rename_given_up():
            self.has_leftovers.set()

    async def load(self, *, is_current: bool) -> None:
        """Open all that is asked for by now, in one go, and wait a little for leaders of it.

        `is_current`: it is known that there is no newer state of the metadata.
        What stands in the directory of another partition waits until it is known which of the two
        has been deleted. Raises `OSError` or `StorageError` if the disk does not take what has to
        be recorded.
        """
        self._may_make = is_current
        await self._rename()
        await self._open_now(await self._files.free(list(self._to_open.values())))
        # A broker that is ready should know whom to send its clients to.
        with trio.move_on_after(LEADER_SECONDS_MAX):
            await wait_leaders(self._services, self)

    async def be_current(self, state: Callable[[], ClusterState]) -> None:
        """The metadata are current: what is here and not in them was deleted, and goes.

        Topics that come from now on were never here before. Where the disk does not take what is
        to be recorded, it is tried again until it does.
        """
        self._is_current = self._may_make = True
        for metadata in state().topics.values():
            self._give_up_strangers(metadata)
        while not await self._sweep(state):  # noqa: ASYNC110 # the disk tells nobody
            await trio.sleep(RETRY_SECONDS)

    async def _sweep(self, state: Callable[[], ClusterState]) -> bool:
        """Whether what was deleted meanwhile is gone, and need not be looked for again."""
        try:
            await self._files.sweep(state, is_leaving=self._going.is_leaving)
        except (OSError, StorageError) as error:
            self._judge(error)
            self._services.storage_failed(f"partitions of deleted topics: {error}")
        self.has_leftovers.set()
        self._is_asked.set()
        return self._files.is_swept

    async def _open(self) -> None:
        topics = []
        for topic in self._to_open.values():
            if self.is_removing(topic.name):
                error = StorageError(f"files of an earlier topic {topic.name} are in the way")
                self._failed([topic.id], error)
            else:
                topics.append(topic)
        try:
            await self._open_now(await self._files.free(topics))
        except (OSError, StorageError) as error:
            self._failed([topic.id for topic in topics], error)

    async def _open_now(self, topics: Sequence[Topic]) -> None:
        """Those that cannot be opened yet are left to a later pass."""
        refused = list[Replica]()
        for are_new in (False, True):
            specs = [
                spec
                for topic in topics
                if are_new is (topic.id not in self._may_be_here)
                for spec in topic.specs(self._node_id, without=self.by_partition(topic.id))
                if not self._going.is_given_up(spec.key)
            ]
            if not self._may_make:
                there = await run_in_thread(self._services.state.partition_names)
                specs = [spec for spec in specs if spec.key in there]
            if specs:
                opened = await open_replicas(self._services, specs, are_new=are_new)
                self._opening = {replica.key: replica for replica in opened}
                await wait_lone_leaders(self._services, opened)
                self._opening = {}
                for replica in opened:
                    if replica.may_open_later:
                        refused.append(replica)
                    else:
                        self._keep(replica)
            # What is added to them later is recorded then.
            self._may_be_here.update(topic.id for topic in topics if are_new)
        for topic in topics:
            self._opened(topic.id)
            self.changed(topic.id)
        for replica in refused:
            if replica.topic_id in self._to_open:
                self._failed([replica.topic_id], StorageError(replica.failure))

    def _keep(self, replica: Replica) -> None:
        topic = self._to_open.get(replica.topic_id)
        if topic is None:
            # Deleted while it was opened; a later pass renames what is on the disk.
            replica.delete()
            return
        if self._is_current and self._is_to_go(topic.metadata, replica):
            self._give_up(replica)
            return
        if replica.config is not topic.config:
            replica.apply_config(topic.config)
        self._replicas.setdefault(topic.id, {})[replica.partition] = replica

    def _opened(self, topic_id: UUID) -> None:
        topic = self._to_open.get(topic_id)
        if topic is not None and not self._is_incomplete(topic):
            del self._to_open[topic_id]

    def _not_renamed(self, topic_ids: Collection[UUID], error: Exception) -> None:
        self._judge(error)
        self._failed(topic_ids, error)

    def _judge(self, error: Exception) -> None:
        """A sync that failed ends the broker: asked again, the disk might say that it has."""
        if isinstance(error, SyncFailed):
            self._services.disk.fail(error)

    def _failed(self, topic_ids: Collection[UUID], error: Exception) -> None:
        self._services.storage_failed(f"topics: {error}")
        for topic_id in topic_ids:
            self._failures[topic_id] = str(error)
