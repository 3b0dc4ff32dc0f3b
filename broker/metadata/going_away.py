"""Partitions that are to go from here: those of deleted topics, and those that others hold now.

Nothing of them is served any more. What is left is to rename their directories, so that their names
are free, and then to forget what is recorded of them (`hosted_files.py`). Until both is done they
are known here, and nothing in their place is opened; what the disk does not take stays, for the
next pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple
from uuid import UUID

from tidemark.broker.metadata.hosted_files import HostedFiles
from tidemark.partitions.state_machines.cluster_values import TopicMetadata
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import StorageError
from tidemark.protocol.types import Epoch, TopicPartition


class _GivenUp(NamedTuple):
    partition: TopicPartition
    left_in: Epoch
    """Its group's epoch then, which is remembered."""


class GoingAway:
    """Used on the loop's thread. `failed` is told of topics whose files the disk does not let go of
    now, and must not raise."""

    def __init__(
        self, files: HostedFiles, failed: Callable[[Collection[UUID], Exception], None]
    ) -> None:
        self._files = files
        self._failed = failed
        self._deleted: dict[UUID, TopicMetadata] = {}
        self._given_up: dict[PartitionKey, _GivenUp] = {}

    def give_up(self, key: PartitionKey, partition: TopicPartition, left_in: Epoch) -> None:
        """A replica is other brokers' now."""
        self._given_up[key] = _GivenUp(partition, left_in)

    def delete(self, metadata: TopicMetadata) -> None:
        """A topic is no more, with all its partitions. Nothing of those that were given up lives
        on: the topic's name may be another one's before another pass."""
        for partition in range(metadata.partitions):
            self._given_up.pop(PartitionKey(metadata.id, partition), None)
        self._deleted[metadata.id] = metadata

    def is_given_up(self, key: PartitionKey) -> bool:
        return key in self._given_up

    def is_leaving(self, key: PartitionKey) -> bool:
        """Whether a pass renames what is here of it: two at once would be in each other's way."""
        return key in self._given_up or key.topic_id in self._deleted

    def is_deleting(self, name: str) -> bool:
        """Whether there may be files of a deleted topic of that name."""
        return any(metadata.name == name for metadata in self._deleted.values())

    def has_of(self, topic_id: UUID) -> bool:
        """Whether something of a topic is to go."""
        return topic_id in self._deleted or any(key.topic_id == topic_id for key in self._given_up)

    async def rename_deleted(self) -> Collection[UUID]:
        """The topics of which nothing is left now but directories to be removed."""
        renamed: dict[UUID, TopicMetadata] = {}
        for metadata in list(self._deleted.values()):
            try:
                await self._files.rename_deleted(metadata)
            except (OSError, StorageError) as error:
                self._failed([metadata.id], error)
            else:
                renamed[metadata.id] = metadata
        if not renamed:
            return ()
        try:
            await self._files.forget_deleted(renamed.values())
        except (OSError, StorageError) as error:
            self._failed(renamed.keys(), error)
            return ()
        for topic_id in renamed:
            del self._deleted[topic_id]
        return renamed.keys()

    async def rename_given_up(self) -> bool:
        """Whether there are directories to be removed now."""
        given_up = dict(self._given_up)
        if not given_up:
            return False
        partitions = [each.partition for each in given_up.values()]
        left_in = {key: each.left_in for key, each in given_up.items()}
        try:
            await self._files.forget_given_up(partitions, left_in)
        except (OSError, StorageError) as error:
            self._failed({key.topic_id for key in given_up}, error)
            return False
        for key in given_up:
            self._given_up.pop(key, None)  # unless its topic was deleted meanwhile
        return True
