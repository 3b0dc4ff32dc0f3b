"""The leader of the metadata gives partitions the observers that their topics' configs ask for.

So a topic gets observers by a config, which any client can set when it creates or alters a topic.
Brokers that are being decommissioned observe no more, whoever chose them.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, NamedTuple, Protocol

import trio

from tidemark.broker.looks import next_look
from tidemark.partitions.state_machines.cluster import Applied, ClusterState
from tidemark.partitions.state_machines.cluster_commands import Command, SetObservers
from tidemark.partitions.state_machines.cluster_values import (
    Assignment,
    BrokerState,
    PartitionId,
    TopicMetadata,
)
from tidemark.partitions.state_machines.observer_placement import (
    ObserverCandidate,
    place_observers,
)
from tidemark.partitions.state_machines.topic_configs import OBSERVERS
from tidemark.protocol.errors import ErrorCode, RequestError
from tidemark.protocol.types import NodeId

LOOK_SECONDS: Final = 1.0

logger = logging.getLogger(__name__)


class Cluster(Protocol):
    """The cluster's metadata, and the way to change it."""

    @property
    def leads(self) -> bool: ...

    @property
    def state(self) -> ClusterState: ...

    async def propose(self, decide: Callable[[ClusterState], Command]) -> Applied: ...


async def keep_placing(
    cluster: Cluster,
    is_alive: Callable[[NodeId], bool],
    *,
    wait_more: Callable[[], Awaitable[None]],
) -> None:
    """Place observers, again and again, as long as this runs. Nothing happens but on the leader.

    `wait_more` waits until the metadata have changed. Where more observers are asked for than there
    are brokers for, that stands, and is not looked at again before something has changed.
    """
    settled: _Seen | None = None
    while True:
        seen = _Seen.now(cluster.state, is_alive) if cluster.leads else None
        if seen is not None and seen != settled:
            try:
                await _place_all(cluster, is_alive)
            except RequestError as error:
                logger.info("some observers are not placed yet: %s", error.message)
                seen = None
        settled = seen
        with trio.move_on_at(next_look(LOOK_SECONDS)):
            await wait_more()


class _Seen(NamedTuple):
    """All that decides who observes what."""

    version: int
    alive: tuple[NodeId, ...]

    @classmethod
    def now(cls, state: ClusterState, is_alive: Callable[[NodeId], bool]) -> _Seen:
        return cls(state.version, tuple(filter(is_alive, state.brokers)))


async def _place_all(cluster: Cluster, is_alive: Callable[[NodeId], bool]) -> None:
    for partition in missing(cluster.state, is_alive):
        # Things may have changed since: then there may be nothing to do, or something else.
        await cluster.propose(partial(_decided, partition=partition, is_alive=is_alive))


def _decided(
    state: ClusterState, *, partition: PartitionId, is_alive: Callable[[NodeId], bool]
) -> SetObservers:
    topic = state.topic_by_id(partition.topic_id)
    if topic is None or partition.partition >= topic.partitions:
        raise RequestError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic has gone")
    return SetObservers(
        at_version=state.version,
        topic_id=topic.id,
        partition=partition.partition,
        replicas=_placed(topic, partition.partition, _candidates(state, is_alive)),
    )


def missing(state: ClusterState, is_alive: Callable[[NodeId], bool]) -> list[PartitionId]:
    """The partitions that should be observed by others than they are."""
    candidates = _candidates(state, is_alive)
    return [
        PartitionId(topic.id, number)
        for topic in state.topics.values()
        if topic.observers or topic.configs.get(OBSERVERS, "-1") not in ("-1", "0")
        for number in range(topic.partitions)
        if _placed(topic, number, candidates) != topic.observers.get(number, ())
    ]


def _candidates(
    state: ClusterState, is_alive: Callable[[NodeId], bool]
) -> dict[NodeId, ObserverCandidate]:
    """The brokers that may observe: all but those that are to leave."""
    observed = Counter(
        node
        for topic in state.topics.values()
        for observers in topic.observers.values()
        for node in observers
    )
    return {
        node: ObserverCandidate(
            node_id=node, rack=broker.rack, is_alive=is_alive(node), observed=observed[node]
        )
        for node, broker in state.brokers.items()
        if state.wishes.broker_state(node) is not BrokerState.DECOMMISSIONING
    }


def _placed(
    topic: TopicMetadata, number: int, candidates: Mapping[NodeId, ObserverCandidate]
) -> Assignment:
    """Who is to observe a partition."""
    now = topic.observers.get(number, ())
    wanted = int(topic.configs.get(OBSERVERS, "-1"))
    if wanted < 0:
        wanted = len(now)
    if not wanted:
        return ()
    if len(now) == wanted and all(node in candidates for node in now):
        return now
    return place_observers(
        list(candidates.values()), held=topic.replicas(number), now=now, wanted=wanted
    )
