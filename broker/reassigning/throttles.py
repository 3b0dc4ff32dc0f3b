"""The throttles that Kafka's tools set, as they limit what this broker sends to new replicas."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidemark.partitions.replication.throttles import Throttle
from tidemark.partitions.state_machines.cluster import ClusterState
from tidemark.partitions.state_machines.cluster_values import Assignment
from tidemark.partitions.state_machines.config_table import split_list
from tidemark.partitions.state_machines.throttle_configs import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    is_throttled,
)
from tidemark.partitions.storage.state_db import PartitionKey
from tidemark.protocol.types import NodeId

LeaderOf = Callable[[PartitionKey], NodeId | None]


def throttles_of(state: ClusterState, me: NodeId, leader_of: LeaderOf) -> list[Throttle]:
    """One for what this broker may send, and one for each broker that may not be sent all of it."""
    found = list[Throttle]()
    rate = _rate(state, me, LEADER_RATE)
    if rate is not None:
        keys = {
            each.key
            for each in _wanted(state, LEADER_REPLICAS)
            if is_throttled(each.throttled, each.key.partition, me)
        }
        found.append(Throttle(rate, keys))
    return found + _of_followers(state, me, leader_of)


def _of_followers(state: ClusterState, me: NodeId, leader_of: LeaderOf) -> list[Throttle]:
    set_rates = ((node, _rate(state, node, FOLLOWER_RATE)) for node in state.brokers)
    rates = {node: rate for node, rate in set_rates if rate is not None}
    keys: dict[NodeId, set[PartitionKey]] = defaultdict(set)
    leaders: dict[NodeId, set[NodeId | None]] = defaultdict(set)
    for each in _wanted(state, FOLLOWER_REPLICAS) if rates else ():
        for node in rates.keys() & each.replicas:
            if is_throttled(each.throttled, each.key.partition, node):
                keys[node].add(each.key)
                if node not in each.before:
                    leaders[node].add(leader_of(each.key))
    # Whoever sends keeps to an equal part of what a broker may be sent.
    return [
        Throttle(rates[node] / len(leaders[node] - {None} | {me}), keys[node], node)
        for node in sorted(keys)
    ]


class _Wanted(NamedTuple):
    """A partition that is to be on other brokers."""

    key: PartitionKey
    before: Assignment
    replicas: Assignment
    throttled: tuple[str, ...]
    """By one of its topic's lists."""


def _wanted(state: ClusterState, list_name: str) -> Iterator[_Wanted]:
    for topic in state.topics.values():
        if topic.wanted:
            throttled = split_list(topic.configs.get(list_name, ""))
            for partition, replicas in topic.wanted.items():
                yield _Wanted(
                    PartitionKey(topic.id, partition),
                    topic.assignments[partition],
                    replicas,
                    throttled,
                )


def _rate(state: ClusterState, node: NodeId, name: str) -> int | None:
    """As it was set for that broker, else for all of them."""
    configs = state.broker_configs
    text = configs.of(node).get(name, configs.of(None).get(name))
    return None if text is None else int(text)
