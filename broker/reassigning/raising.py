"""The broker's own topics get the replicas that they should have, once brokers are there.

A cluster's first consumer may come when there is one broker. The topic of committed offsets is made
with as many replicas as there are brokers then; the broker that leads the metadata adds the others
later. The same goes for the topic of transactions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import trio

from tidemark.broker.looks import next_look
from tidemark.broker.reassigning.door import Asked, Door, IsAlive
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import BrokerState
from tidemark.partitions.state_machines.placement import Candidate, Draw, extended
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId

LOOK_SECONDS: Final = 2.0
SETTLE_SECONDS: Final = 10.0
"""For so long no broker must have come or gone: it is a start that brings them all."""

logger = logging.getLogger(__name__)


def to_raise(
    state: ClusterState, name: str, is_alive: IsAlive, *, replicas: int, draw: Draw
) -> list[Asked]:
    """The partitions of an own topic that are to have more replicas, and where."""
    topic = state.topic(name)
    if topic is None:
        return []
    candidates = [
        Candidate(node_id=node, rack=broker.rack, is_alive=is_alive(node))
        for node, broker in state.brokers.items()
        if state.wishes.broker_state(node) is BrokerState.ACTIVE
    ]
    load, asked = state.load.copy(), list[Asked]()
    for partition, assignment in enumerate(topic.assignments):
        # One that is being moved is somebody's business already.
        if partition in topic.wanted or len(assignment) >= replicas:
            continue
        usable = [
            each for each in candidates if each.node_id not in topic.observers.get(partition, ())
        ]
        wanted = extended(assignment, usable, replicas=replicas, load=load, draw=draw)
        if wanted != assignment:
            asked.append(Asked(topic.name, partition, wanted))
    return asked


async def keep_raised(
    door: Door,
    leads: Callable[[], bool],
    find: Callable[[], Sequence[Asked]],
    alive: Callable[[], frozenset[NodeId]],
) -> None:
    """Look again and again, as long as this runs, while this broker leads the metadata."""
    seen, since = alive(), trio.current_time()
    while True:
        await trio.sleep_until(next_look(LOOK_SECONDS))
        now = trio.current_time()
        if not leads() or alive() != seen:
            seen, since = alive(), now
        elif now - since >= SETTLE_SECONDS and (asked := find()):
            since = now
            await _raise(door, asked)


async def _raise(door: Door, asked: Sequence[Asked]) -> None:
    try:
        refused = [each for each in await door.take(asked) if each is not None]
    except RequestError:
        return  # another broker leads the metadata, and looks for itself
    added = len(asked) - len(refused)
    if added:
        topics = " and ".join(dict.fromkeys(each.topic for each in asked))
        logger.info("%d partitions of %s get more replicas", added, topics)
