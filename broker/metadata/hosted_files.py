"""What the data directory has of partitions that are not, or no longer, to be here.

Files of a partition are renamed first, so that its name is free, and removed later. Only then is
forgotten what is recorded of it: a crash in between leaves a record of files that are not there,
which the next start forgets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from uuid import uuid4

from tidemark.broker.metadata.cluster_log import CLUSTER_KEY
from tidemark.broker.metadata.topic import Topic
from tidemark.broker.replicas.replica_parts import ReplicaServices
from tidemark.broker.threads import run_in_thread
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.storage.directory import DataDirectory
from tidemark.partitions.storage.left_groups import leave, left_epochs
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NO_EPOCH, Epoch, NodeId, TopicPartition

logger = logging.getLogger(__name__)


def is_host(node_id: NodeId, metadata: TopicMetadata, partition: int) -> bool:
    """Whether a broker is to hold that partition, if there is one."""
    return partition < metadata.partitions and metadata.is_host(node_id, partition)


def move_away(
    directory: DataDirectory, topic: TopicMetadata, taken: Mapping[str, PartitionKey]
) -> None:
    """Rename a deleted topic's directories, but for those that another has `taken`. Blocking."""
    partitions = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
    own = [
        partition
        for partition in partitions
        for key in [PartitionKey(topic.id, partition.partition)]
        if taken.get(str(partition), key) == key
    ]
    directory.mark_deleted(own, topic.id)


class HostedFiles:
    """Used on the loop's thread. Its coroutines raise `OSError` and `StorageError`, and may be
    called again then: what is done already is passed over."""

    def __init__(self, node_id: NodeId, services: ReplicaServices) -> None:
        self._node_id = node_id
        self._services = services
        self.is_swept = False
        """Whether nothing is recorded any more of what was deleted while this broker was away."""

    async def rename_deleted(self, metadata: TopicMetadata) -> None:
        """A topic is no more.

        A start hears of what is committed in the metadata little by little. A deletion may be of
        long ago then, and what is in the directory a later topic's of that name.
        """
        taken = {} if self.is_swept else await self._taken()
        await run_in_thread(move_away, self._services.directory, metadata, taken)

    async def forget_deleted(self, renamed: Iterable[TopicMetadata]) -> None:
        """Topics are no more, and their files renamed. It waits for the disk once for all."""
        await self._wait_recorded()
        keys = [
            PartitionKey(metadata.id, partition)
            for metadata in renamed
            for partition in range(metadata.partitions)
        ]
        await run_in_thread(self._services.state.forget_partitions, keys)

    async def forget_given_up(
        self, partitions: Collection[TopicPartition], left_in: Mapping[PartitionKey, Epoch]
    ) -> None:
        """Partitions are others' now; the epochs that they were left in are remembered."""
        rename = self._services.directory.mark_deleted
        await run_in_thread(rename, partitions, uuid4())
        await self._wait_recorded()
        await run_in_thread(leave, self._services.state, left_in)

    async def _wait_recorded(self) -> None:
        # The journal first: it must not speak of partitions that nobody knows any more.
        await self._services.driver.wait_durable()
        await self._services.checkpoints.wait_saved()

    async def free(self, topics: list[Topic]) -> list[Topic]:
        """Those of the topics whose directories are not another partition's."""
        if self.is_swept:
            return topics
        taken = await self._taken()

        def is_free(topic: Topic) -> bool:
            return all(
                taken.get(str(TopicPartition(topic.name, number)), key) == key
                for number in topic.hosted(self._node_id)
                for key in [PartitionKey(topic.id, number)]
            )

        return [topic for topic in topics if is_free(topic)]

    async def _taken(self) -> dict[str, PartitionKey]:
        """By the name of its directory: whose it is, as far as it is recorded."""
        recorded = await run_in_thread(self._services.state.partition_names)
        return {name: key for key, name in recorded.items()}

    # What was deleted while this broker was away

    async def sweep(
        self, state: Callable[[], ClusterState], *, is_leaving: Callable[[PartitionKey], bool]
    ) -> None:
        """Forget what is not in the metadata, which are current; but not what is leaving anyway.

        Directories of which nothing is recorded may be anybody's; they are left, and spoken of.
        """
        there, recorded = await run_in_thread(self._look)
        strays = {
            key: name
            for key, name in recorded.items()
            if not is_leaving(key) and not self._belongs(key, state())
        }
        self._speak_of_strangers(there, set(recorded.values()), state())
        await run_in_thread(self._forget_strays, strays, there)
        left = await run_in_thread(left_epochs, self._services.state)
        gone = [key for key in left if state().topic_by_id(key.topic_id) is None]
        await run_in_thread(self._services.state.forget_partitions, gone)
        self.is_swept = True

    def _look(self) -> tuple[list[TopicPartition], Mapping[PartitionKey, str]]:
        """On a thread: the directories, and what is recorded."""
        return self._services.directory.partitions(), self._services.state.partition_names()

    def _forget_strays(
        self, strays: Mapping[PartitionKey, str], there: Sequence[TopicPartition]
    ) -> None:
        """On a thread. As if they were given up: their groups may live on."""
        names = {*strays.values()}
        # All at once: each time the directory is read, and synced.
        strangers = [partition for partition in there if str(partition) in names]
        self._services.directory.mark_deleted(strangers, uuid4())
        leave(self._services.state, dict.fromkeys(strays, NO_EPOCH))

    def _speak_of_strangers(
        self,
        there: Sequence[TopicPartition],
        known: Collection[str],
        state: ClusterState,
    ) -> None:
        for partition in there:
            # One that is being opened has a directory before it is recorded.
            topic = state.topic(partition.topic)
            is_of_topic = topic is not None and partition.partition < topic.partitions
            if not is_of_topic and str(partition) not in known:
                logger.warning(
                    "%s belongs to no topic; it is left as it is, and keeps a topic of that name "
                    "from being created until it is moved away",
                    self._services.directory.partition_path(partition),
                )

    def _belongs(self, key: PartitionKey, state: ClusterState) -> bool:
        if key == CLUSTER_KEY:
            return True
        topic = state.topic_by_id(key.topic_id)
        return topic is not None and is_host(self._node_id, topic, key.partition)
