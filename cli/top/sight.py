"""One look at a cluster: how it is, where its partitions end, and how far its groups have read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import trio

from tidemark.cli.cluster import gather
from tidemark.cli.health import ClusterFacts
from tidemark.cli.lookup import unless_unsupported
from tidemark.client import BrokerStatus, Client, RequestError, TopicPartition
from tidemark.protocol.types import NodeId, Offset

GROUPS_MAX: Final = 100
"""How many groups' commits are asked for in a look; of the others there is the state alone."""
_PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What was there at one time. What did not answer is missing."""

    at: float
    """In seconds, on any clock that does not jump."""
    facts: ClusterFacts
    states: Mapping[NodeId, BrokerStatus] = field(default_factory=dict)
    """What brokers do, where they tell; Kafka's do not."""
    ends: Mapping[TopicPartition, Offset] = field(default_factory=dict)
    committed: Mapping[str, Mapping[TopicPartition, Offset]] = field(default_factory=dict)
    """Of each group, the next offset that it will read."""


async def look(client: Client) -> Sight:
    """Ask for everything at once. Raises `OSError` if no broker answers."""
    facts = await gather(client)
    led = [at for at, partition in facts.partitions() if partition.leader is not None]
    groups = [each.group for each in facts.groups or ()][:GROUPS_MAX]
    committed: dict[str, Mapping[TopicPartition, Offset]] = {}
    found: dict[str, Any] = {}  # fields of Sight, by name

    async def ask(name: str, answer: Callable[[], Awaitable[object]]) -> None:
        with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
            found[name] = await answer()

    async def ask_group(group: str) -> None:
        with trio.move_on_after(_PATIENCE_SECONDS), suppress(OSError, RequestError):
            commits = await client.admin.list_group_offsets(group)
            committed[group] = {at: each.offset for at, each in commits.items()}

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "states", partial(_states, client))
        nursery.start_soon(ask, "ends", partial(client.admin.end_offsets, led))
        for group in groups:
            nursery.start_soon(ask_group, group)
    return Sight(at=trio.current_time(), facts=facts, committed=committed, **found)


async def _states(client: Client) -> Mapping[NodeId, BrokerStatus]:
    nothing: Sequence[BrokerStatus] = ()
    found = await unless_unsupported(client.admin.describe_brokers(), nothing)
    return {each.node_id: each for each in found}
