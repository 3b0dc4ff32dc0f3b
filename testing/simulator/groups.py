"""The groups of a simulated cluster."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.randomness import stream


class SimulatedGroup(NamedTuple):
    """One group, and who votes in it at first."""

    key: PartitionKey
    partition: TopicPartition
    voters: tuple[NodeId, ...]
    """As they were assigned: the first is the preferred leader."""
    is_journaled: bool = True
    observers: tuple[NodeId, ...] = ()
    """They pull what is committed, from the voters or from each other, and never vote."""


def draw_groups(seed: int, knobs: Knobs) -> list[SimulatedGroup]:
    """All groups of one topic, on brokers drawn for each."""
    rng, flushes = stream(seed, "groups"), stream(seed, "flushes")
    nodes = [NodeId(number) for number in range(1, knobs.nodes + 1)]
    groups = []
    for number in range(knobs.groups):
        voters = tuple(rng.sample(nodes, knobs.voters))
        rest = [node for node in nodes if node not in voters]
        groups.append(
            SimulatedGroup(
                PartitionKey(UUID(int=1000), number),
                TopicPartition("words", number),
                voters,
                is_journaled=flushes.random() >= knobs.unsynced,
                observers=tuple(rest[: knobs.observers]),
            )
        )
    return groups
