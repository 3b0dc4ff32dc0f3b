"""Who leads what, as other brokers know it: for clients of one that does not hear the leader.

Two brokers may not hear each other while a third one hears both. What the one leads it goes on
leading, for it has a majority; the other takes it for dead, and knows of no leader. Clients reach
both, so they are told what the third one knows. This broker itself does nothing by it: whom it
does not hear it cannot follow.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Final

import trio

from tidemark.broker.metadata.brokers import Brokers
from tidemark.broker.peers.asking import Calls, ask_broker
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.errors import RequestError
from tidemark.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tidemark.protocol.types import Epoch, NodeId

_FRESH_SECONDS: Final = 1.0
_PATIENCE_SECONDS: Final = 0.5


class LeadersElsewhere:
    """With memory: however many clients ask, the others are asked once a second about a topic."""

    def __init__(self, brokers: Brokers, calls: Calls) -> None:
        self._brokers = brokers
        self._calls = calls
        self.controller: NodeId | None = None
        """Who leads the metadata, as was said last."""
        self._leaders: dict[PartitionKey, tuple[NodeId, Epoch]] = {}
        self._asked: set[str] = set()
        self._fresh_until = float("-inf")

    @property
    def knows_some(self) -> bool:
        return bool(self._leaders) or self.controller is not None

    def leader_of(self, key: PartitionKey) -> tuple[NodeId, Epoch] | None:
        """Another broker that leads the partition, with the newest epoch that was heard of."""
        return self._leaders.get(key)

    async def ask(self, topics: Collection[str]) -> None:
        """Ask who leads these, and the metadata; takes half a second at most."""
        misses_some, now = self._brokers.misses_some, trio.current_time()
        is_old = now >= self._fresh_until
        if is_old or not misses_some:
            self.controller, self._leaders, self._asked = None, {}, set()
            self._fresh_until = now + _FRESH_SECONDS
        wanted = [topic for topic in topics if topic not in self._asked]
        if not misses_some or not (wanted or is_old):
            return
        self._asked.update(wanted)
        with trio.move_on_after(_PATIENCE_SECONDS):
            async with trio.open_nursery() as nursery:
                for broker in self._calls.up:
                    nursery.start_soon(self._ask, broker, wanted)

    async def _ask(self, broker: NodeId, topics: Collection[str]) -> None:
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic) for topic in topics],
            allow_auto_topic_creation=False,
        )
        with suppress(RequestError):  # another one may know, or this one in a second
            self._take(await ask_broker(self._calls, broker, request, MetadataResponse))

    def _take(self, answer: MetadataResponse) -> None:
        others = {*self._brokers.registered} - {self._brokers.node_id}
        if answer.controller_id in others:
            self.controller = NodeId(answer.controller_id)
        for topic in answer.topics:
            for each in topic.partitions:
                key = PartitionKey(topic.topic_id, each.partition_index)
                known = self._leaders.get(key)
                if each.leader_id in others and (known is None or known[1] < each.leader_epoch):
                    self._leaders[key] = NodeId(each.leader_id), Epoch(each.leader_epoch)
