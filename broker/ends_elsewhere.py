"""How far partitions are that have no replica here: a scrape asks their leaders, for the lag of
groups that read them and are coordinated here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import trio

from tidemark.broker.handlers.list_offsets import LATEST
from tidemark.broker.peers.asking import ask_broker
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidemark.protocol.types import NodeId, Offset, TopicPartition

if TYPE_CHECKING:
    from tidemark.broker.node import Node

_PATIENCE_SECONDS: Final = 1.0

_ByTopic: TypeAlias = Mapping[str, Sequence[int]]


class EndsElsewhere:
    """The high watermarks of partitions of other brokers, with memory: where a leader does not
    answer at once, the last one that is known is better than a lag that jumps to nothing."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._known: dict[TopicPartition, Offset] = {}

    async def ask(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Offset]:
        """Those of these that are known. Takes a second at most."""
        self._known = {each: self._known[each] for each in partitions if each in self._known}
        with trio.move_on_after(_PATIENCE_SECONDS):
            async with trio.open_nursery() as nursery:
                for leader, topics in self._by_leader(partitions).items():
                    nursery.start_soon(self._ask, leader, topics)
        return self._known

    def _by_leader(self, partitions: Iterable[TopicPartition]) -> Mapping[NodeId, _ByTopic]:
        found: defaultdict[NodeId, defaultdict[str, list[int]]]
        found = defaultdict(lambda: defaultdict(list))
        for each in partitions:
            topic = self._node.topics.get(each.topic)
            if topic is None or each.partition >= topic.partition_count:
                self._known.pop(each, None)  # deleted, and what it had
                continue
            leader, _ = self._node.brokers.leader_of(PartitionKey(topic.id, each.partition))
            if leader is not None and leader != self._node.node_id:
                found[leader][each.topic].append(each.partition)
        return found

    async def _ask(self, leader: NodeId, topics: _ByTopic) -> None:
        with suppress(RequestError):  # asked again at the next scrape
            answer = await ask_broker(
                self._node.calls, leader, _request(topics), ListOffsetsResponse
            )
            for topic in answer.topics:
                for each in topic.partitions:
                    if each.error_code == ErrorCode.NONE:
                        partition = TopicPartition(topic.name, each.partition_index)
                        self._known[partition] = Offset(each.offset)


def _request(topics: _ByTopic) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=each, timestamp=LATEST)
                    for each in partitions
                ],
            )
            for topic, partitions in topics.items()
        ],
    )
