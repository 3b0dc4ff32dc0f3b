"""Snapshots written short, plans carried out, and a naive objective to hold the balancer to."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random

from tidemark.partitions.balancing.leaders import LeaderMove
from tidemark.partitions.balancing.settings import Settings, Weights
from tidemark.partitions.balancing.snapshot import Broker, BrokerState, Group, Snapshot
from tidemark.protocol.types import NodeId, TopicPartition

NOW_MS = 10_000_000


def broker(
    number: int,
    *,
    rack: str | None = None,
    state: BrokerState = BrokerState.ACTIVE,
    is_alive: bool = True,
    is_full: bool = False,
    disk_ago_ms: int | None = None,
    has_told: bool = True,
    up_ms: int = 1_000_000,
) -> Broker:
    return Broker(
        node_id=NodeId(number),
        rack=rack,
        state=state,
        is_alive=is_alive,
        is_full=is_full,
        disk_since_ms=None if disk_ago_ms is None else NOW_MS - disk_ago_ms,
        has_told=has_told,
        up_since_ms=NOW_MS - up_ms,
    )


def brokers(count: int) -> list[Broker]:
    return [broker(number) for number in range(1, count + 1)]


def group(
    name: str,
    replicas: Sequence[int],
    leader: int | None = None,
    *,
    voters: Sequence[int] | None = None,
    lags: Mapping[int, int] | None = None,
    learners: Sequence[int] = (),
    rate: float = 0.0,
    size: int = 0,
    moved_ago_ms: int | None = None,
    moving_to: int | None = None,
    is_changing: bool = False,
) -> Group:
    """`orders-3` on these brokers; led by the first one if nothing else is said, all in sync."""
    topic, _, partition = name.rpartition("-")
    leads = replicas[0] if leader is None else leader
    votes = tuple(NodeId(node) for node in (replicas if voters is None else voters))
    behind = {node: 0 for node in votes if node != leads} if lags is None else lags
    return Group(
        partition=TopicPartition(topic, int(partition)),
        replicas=tuple(NodeId(node) for node in replicas),
        leader=NodeId(leads),
        voters=votes,
        lags={NodeId(node): lag for node, lag in behind.items()},
        learners=tuple(NodeId(node) for node in learners),
        bytes_in_per_second=rate,
        size_bytes=size,
        moved_ms=None if moved_ago_ms is None else NOW_MS - moved_ago_ms,
        moving_to=None if moving_to is None else NodeId(moving_to),
        is_changing=is_changing,
    )


def snapshot(members: Iterable[Broker], groups: Iterable[Group]) -> Snapshot:
    return Snapshot(now_ms=NOW_MS, brokers=tuple(members), groups=tuple(groups))


def carried_out(before: Snapshot, moves: Iterable[LeaderMove], *, after_ms: int) -> Snapshot:
    """The cluster so much later, when the moves are done."""
    targets = {move.partition: move.target for move in moves}
    now_ms = before.now_ms + after_ms
    groups = [
        _led_by(each, targets[each.partition], now_ms) if each.partition in targets else each
        for each in before.groups
    ]
    return replace(before, now_ms=now_ms, groups=tuple(groups))


def _led_by(each: Group, target: NodeId, now_ms: int) -> Group:
    lags = {node: 0 for node in each.voters if node != target}
    return each._replace(leader=target, lags=lags, moved_ms=now_ms)


def leaders(of: Snapshot) -> Counter[int]:
    return Counter(int(each.leader) for each in of.groups if each.leader is not None)


def takes_leaders(one: Broker, now_ms: int, settings: Settings) -> bool:
    return (
        one.is_alive
        and one.has_told
        and not one.is_full
        and (one.disk_since_ms is None or now_ms - one.disk_since_ms >= settings.room_grace_ms)
        and one.state is BrokerState.ACTIVE
        and now_ms - one.up_since_ms >= settings.start_grace_ms
    )


def gives_up_leaders(one: Broker, now_ms: int, settings: Settings) -> bool:
    if not one.is_alive or one.state is not BrokerState.ACTIVE:
        return one.is_alive
    if not one.is_full or settings.full_patience_ms is None:
        return False
    return one.disk_since_ms is None or now_ms - one.disk_since_ms >= settings.full_patience_ms


def naive_objective(of: Snapshot, settings: Settings) -> tuple[int, float]:
    """Leaders on brokers being emptied, and the weighted sum, from their definitions."""
    taking = {b.node_id for b in of.brokers if takes_leaders(b, of.now_ms, settings)}
    emptied = {b.node_id for b in of.brokers if gives_up_leaders(b, of.now_ms, settings)}
    at = {
        each.partition: each.leader if each.moving_to is None else each.moving_to
        for each in of.groups
        if each.leader is not None or each.moving_to is not None
    }
    counted = [g for g in of.groups if at.get(g.partition) in taking | emptied]
    whole = max(sum(g.bytes_per_second for g in counted), settings.quiet_bytes_per_second)
    shares = {g.partition: g.bytes_per_second / whole for g in counted}

    def squares(groups: Sequence[Group], of_one: Mapping[TopicPartition, float]) -> float:
        mean = sum(of_one[g.partition] for g in groups) / len(taking) if taking else 0
        return sum(
            (sum(of_one[g.partition] for g in groups if at[g.partition] == node) - mean) ** 2
            for node in taking
        )

    one_each = dict.fromkeys(shares, 1.0)
    topics = {g.partition.topic for g in counted}
    elsewhere = [g for g in counted if g.replicas[0] in taking - {at[g.partition]}]
    weights: Weights = settings.weights
    total = weights.count * squares(counted, one_each) + weights.rate * squares(counted, shares)
    for topic in sorted(topics):
        mine = [g for g in counted if g.partition.topic == topic]
        total += weights.topic * squares(mine, one_each)
    if taking and counted:
        total += weights.preferred * len(elsewhere) / len(counted) / len(taking)
    return sum(at[g.partition] in emptied for g in counted), total


def in_another_order(cluster: Snapshot, lots: Random) -> Snapshot:
    """The same brokers and groups."""
    return replace(
        cluster,
        brokers=lots.sample(cluster.brokers, len(cluster.brokers)),
        groups=lots.sample(cluster.groups, len(cluster.groups)),
    )
