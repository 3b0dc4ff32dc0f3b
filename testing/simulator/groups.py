"""The groups of a simulated cluster."""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from tidemark.partitions.state_machines.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId, TopicPartition
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.randomness import stream

_ONE_TOPIC: Final = UUID(int=1000)
WORDS: Final = "words"
INPUTS: Final = "inputs"
TABLE: Final = "table"
"""A compacted one."""
_PLACES: Final = (
    TopicPartition(TRANSACTION_STATE, 0),
    TopicPartition(CONSUMER_OFFSETS, 0),
    TopicPartition(INPUTS, 0),
    TopicPartition(WORDS, 0),
    TopicPartition(TABLE, 0),
    TopicPartition(WORDS, 1),
    TopicPartition(INPUTS, 1),
    TopicPartition(TRANSACTION_STATE, 1),
    TopicPartition(CONSUMER_OFFSETS, 1),
    TopicPartition(INPUTS, 2),
    TopicPartition(INPUTS, 3),
)
"""Where there are transactions: the first five at least."""
_COMPACTED: Final = (TABLE, TRANSACTION_STATE, CONSUMER_OFFSETS)
_FEWEST: Final = 5


class SimulatedGroup(NamedTuple):
    """One group, and who votes in it at first."""

    key: PartitionKey
    partition: TopicPartition
    voters: tuple[NodeId, ...]
    """As they were assigned: the first is the preferred leader."""
    is_journaled: bool = True
    observers: tuple[NodeId, ...] = ()
    """They pull what is committed, from the voters or from each other, and never vote."""

    @property
    def is_compacted(self) -> bool:
        return self.partition.topic in _COMPACTED

    @property
    def is_plain(self) -> bool:
        """Whether producers without transactions write to it."""
        return self.partition.topic == INPUTS or self.key.topic_id == _ONE_TOPIC


def draw_groups(seed: int, knobs: Knobs) -> list[SimulatedGroup]:
    """All groups, on brokers drawn for each; of one topic, unless there are transactions."""
    rng, flushes = stream(seed, "groups"), stream(seed, "flushes")
    nodes = [NodeId(number) for number in range(1, knobs.nodes + 1)]
    groups = []
    places = [TopicPartition(WORDS, number) for number in range(knobs.groups)]
    if knobs.has_transactions:
        places = list(_PLACES[: max(knobs.groups, _FEWEST)])
    for place in places:
        voters = tuple(rng.sample(nodes, knobs.voters))
        rest = [node for node in nodes if node not in voters]
        groups.append(
            SimulatedGroup(
                PartitionKey(_topic_id(place, knobs), place.partition),
                place,
                voters,
                is_journaled=flushes.random() >= knobs.unsynced,
                observers=tuple(rest[: knobs.observers]),
            )
        )
    return groups


def _topic_id(place: TopicPartition, knobs: Knobs) -> UUID:
    if not knobs.has_transactions:
        return _ONE_TOPIC
    topics = list(dict.fromkeys(each.topic for each in _PLACES))
    return UUID(int=1001 + topics.index(place.topic))
