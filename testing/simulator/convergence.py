"""What is not as it should be yet in a cluster whose core is healed."""

from __future__ import annotations

from typing import Final

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.protocol.types import NodeId, Position
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.world import World

_CONVERGE_SECONDS: Final = 40.0
_COPYING_SECONDS: Final = 10.0
_COPYING_MAX: Final = 160.0
LOOK_SECONDS: Final = 0.25


def wait_converged(world: World, core: list[NodeId]) -> None:
    """Raises `Violation` if it takes too long; longer while there is more on the disks each time:
    where a message may hold one record, and a disk is slow, copying a log takes its time."""
    bound = world.queue.now + _CONVERGE_SECONDS
    latest, held = bound + _COPYING_MAX, 0
    while why := _why_not(world, core):
        if world.queue.now >= bound:
            before, held = held, _durable(world, core)
            if held <= before or world.queue.now >= latest:
                raise Violation("a healed core does its work", "all groups", why)
            bound += _COPYING_SECONDS
        world.queue.run_until(world.queue.now + LOOK_SECONDS)


def _durable(world: World, core: list[NodeId]) -> int:
    """How many records of all groups are on the core's disks, each as often as it is there."""
    replicas = (world.brokers[node].replica(group.key) for node in core for group in world.groups)
    return sum(each.group.durable.offset for each in replicas if each is not None)


def _why_not(world: World, core: list[NodeId]) -> str:
    """What is not as it should be; empty if all is well."""
    if world.restarts_due:
        return f"{world.restarts_due} restarts are due"
    # A producer of what was lost is told so, and does not go on.
    keys = [group.key for group in world.groups if not world.watch.may_have_lost(group.key)]
    for producer in world.producers:
        if unanswered := producer.unanswered(keys):
            return f"a producer waits for {unanswered} answers"
    why = next(filter(None, (_why_not_group(world, core, g) for g in world.groups)), "")
    return why or ("" if world.play is None else world.play.why_not())


def _why_not_group(world: World, core: list[NodeId], group: SimulatedGroup) -> str:
    leader = world.leader(group)
    if leader is None or leader.node_id not in core or leader.process is None:
        return f"{group.partition} has no leader in the core"
    replica = leader.process.node.get(group.key)
    assert replica is not None
    if not replica.is_serving:
        return f"{group.partition} is led by {leader.node_id}, which does not serve"
    if replica.is_paused or group.key in world.wishes:
        return f"the leader of {group.partition} is being moved"
    if why := _why_not_placed(world, group, replica):
        return why
    if replica.high_watermark != replica.log_end:
        return f"{group.partition}: committed {replica.committed}, end {replica.log_end}"
    if replica.group.config.is_joint:
        return f"{group.partition} stays in the joint {replica.group.config}"
    for node in replica.group.config.members:
        member = world.brokers[node].replica(group.key)
        if node in core and member is not None and member.group.in_doubt:
            return f"{group.partition}: {node} is in doubt"
    for node in (*replica.group.config.members, *group.observers):
        if node in core and (found := _committed(world, node, group)) != replica.committed:
            return f"{group.partition}: {node} has {found} of {replica.committed}"
    return ""


def _why_not_placed(world: World, group: SimulatedGroup, leader: GroupReplica) -> str:
    """Once all wishes are struck or cancelled, who is assigned votes, and nobody else holds it."""
    placement = world.placement
    if placement is None:
        return ""
    if placement.is_wished(group):
        return f"{group.partition} is still wished onto {placement.topic.wanted}"
    assigned = {*placement.topic.assignments[group.key.partition]}
    if {*leader.group.config.members} != assigned:
        return f"{group.partition} is assigned to {assigned}, and is {leader.group.config}"
    there = {node for node, broker in world.brokers.items() if broker.replica(group.key)}
    if there != assigned | {*group.observers}:
        return f"{group.partition} is assigned to {assigned}, and lies on {there}"
    return ""


def _committed(world: World, node: NodeId, group: SimulatedGroup) -> Position | None:
    process = world.brokers[node].process
    replica = None if process is None else process.node.get(group.key)
    return None if replica is None else replica.committed
