"""The end of every run: faults stop, for good, for a part of the brokers that can work.

Faults that come and go heal everything by chance, and hide what would stay broken for ever. So here
a core of brokers, a majority of every group, is healed, the others stay dead, deaf or hanging, and
the core has a bounded time to do all that is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Final

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import check_crc, iter_headers
from tidemark.protocol.types import Epoch, NodeId, Position
from tidemark.testing.checkers import check
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.transactions.play import Play
from tidemark.testing.simulator.watch import pieces
from tidemark.testing.simulator.world import World

_RESUME_SECONDS: Final = 3.0
_CONVERGE_SECONDS: Final = 40.0
_READ_SECONDS: Final = 40.0
_LOOK_SECONDS: Final = 0.25


def finish(world: World) -> None:
    """Heal a core and hold it to its promises. Raises `Violation`."""
    world.nemesis.stop()
    core, half_cut = _choose_core(world)
    _heal(world, core)
    world.queue.run_until(world.queue.now + min(_RESUME_SECONDS, 1 + world.knobs.seconds / 15))
    for producer in world.producers:
        producer.stop()
    if world.play is not None:
        world.play.stop()
    _wait_converged(world, core)
    peaceful = _peaceful(world, core)
    for node in half_cut:
        _mend_half(world, node)
    _stay_quiet(world, core)
    if core != world.nodes:
        _rejoin(world, core, peaceful)
    _read_everything(world)
    if "rot" in {fault.kind for fault in world.nemesis.tape}:
        _judge_bytes(world)
    for producer in world.producers:
        producer.abandon()
    if world.play is not None:
        _judge_transactions(world, world.play)
    world.history.sends.sort(key=lambda send: send.started)
    lost = {group.partition for group in world.groups if world.watch.may_have_lost(group.key)}
    for anomaly in check(world.history):
        if anomaly.partition not in lost:
            raise Violation(anomaly.kind, str(anomaly.partition), anomaly.what)


def _judge_bytes(world: World) -> None:
    """What had rotted was restored, and nobody else has taken it over."""
    for broker in world.brokers.values():
        for group in world.groups:
            replica = broker.replica(group.key)
            for data in () if replica is None else pieces(replica.log):
                for at, header in iter_headers(data):
                    try:
                        check_crc(data, header, at)
                    except CorruptBatch as error:
                        what = f"{broker.node_id} at {header.base_offset}: {error}"
                        raise Violation(
                            "damage is not spread", str(group.partition), what
                        ) from None


def _choose_core(world: World) -> tuple[list[NodeId], list[NodeId]]:
    """Who is to work, and who of the others will come half back before the rest does."""
    rng = stream(world.seed, "core")
    spared = 0
    # Where voters change, nobody knows beforehand which brokers a majority needs; and where some
    # have lost what was in memory, all of them may be needed.
    may_change = "reconfigure" in world.knobs.fault_kinds or world.placement is not None
    may_need_all = may_change or world.watch.has_unclean or world.watch.has_doubt
    may_need_all |= any(broker.rotten is not None for broker in world.brokers.values())
    if not may_need_all and rng.random() < 0.7:
        spared = rng.randint(0, (world.knobs.voters - 1) // 2)
    rest = {
        node: rng.choice(("dead", "deaf", "mute", "hanging", "half cut", "half cut"))
        for node in sorted(rng.sample(list(world.nodes), spared))
    }
    for node, how in rest.items():
        _freeze(world, node, how)
    return (
        [node for node in world.nodes if node not in rest],
        [node for node, how in rest.items() if how == "half cut"],
    )


def _freeze(world: World, node: NodeId, how: str) -> None:
    world.trace.note(world.queue.now, node, "fault", f"{how} from now on")
    broker = world.brokers[node]
    match how:
        case "dead":
            broker.stop(power=False)
        case "hanging":
            broker.pause(1e6)
        case _:
            for other in world.nodes:
                if how != "deaf":
                    world.network.cut(node, other)
                if how != "mute":
                    world.network.cut(other, node)


def _mend_half(world: World, node: NodeId) -> None:
    """It hears enough of the others to campaign again, and perhaps nobody who leads."""
    others = [other for other in world.nodes if other != node]
    heard = stream(world.seed, f"half {node}").sample(others, len(world.nodes) // 2)
    world.trace.note(world.queue.now, node, "fault", f"hears {heard} again")
    for other in heard:
        world.network.mend(other, node)
        world.network.mend(node, other)


def _peaceful(world: World, core: list[NodeId]) -> list[SimulatedGroup]:
    """The groups in which nobody outside of the core has an epoch that is still to come."""
    return [
        group
        for group in world.groups
        if all(
            world.watch.groups[group.key].epoch_of(node)
            <= world.watch.groups[group.key].elections.epoch_max
            for node in world.nodes
            if node not in core
        )
    ]


def _heal(world: World, core: list[NodeId]) -> None:
    cut = [
        (source, target)
        for source, target in permutations(world.nodes, 2)
        if not {source, target} <= {*core} and world.network.is_cut(source, target)
    ]
    world.network.calm()
    for source, target in cut:
        world.network.cut(source, target)
    for node in core:
        broker = world.brokers[node]
        broker.restore()
        broker.disk_factor, broker.step_seconds = 1.0, 0.0
        broker.files.capacity_bytes, broker.files.failing_syncs = None, 0
        broker.lift_limits()
        if broker.process is None:
            broker.start()
        else:
            broker.process.wake()
    for node in world.nodes:
        if node not in core and world.brokers[node].process is None:
            world.brokers[node].bury()
    world.trace.note(world.queue.now, 0, "fault", f"healed: {core}")


def _wait_converged(world: World, core: list[NodeId]) -> None:
    bound = world.queue.now + _CONVERGE_SECONDS
    while why := _why_not(world, core):
        if world.queue.now >= bound:
            raise Violation("a healed core does its work", "all groups", why)
        world.queue.run_until(world.queue.now + _LOOK_SECONDS)


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


def _stay_quiet(world: World, core: list[NodeId]) -> None:
    """With nothing wrong, nobody campaigns."""
    before = _epochs(world, world.groups)
    world.queue.run_until(world.queue.now + _quiet_seconds(world))
    after = _epochs(world, world.groups)
    if before != after:
        what = f"epochs were {before} and are {after}, in the core {core}"
        raise Violation("no election while all is well", "all groups", what)


def _quiet_seconds(world: World) -> float:
    """Long enough for whoever misses something to have done something about it."""
    return 0.5 + 2 * world.knobs.failure_timeout


def _epochs(world: World, groups: Sequence[SimulatedGroup]) -> list[Epoch]:
    return [world.watch.groups[group.key].elections.epoch_max for group in groups]


def _rejoin(world: World, core: list[NodeId], peaceful: list[SimulatedGroup]) -> None:
    """The others come back, and disturb nobody: no election, and all catch up."""
    before = _epochs(world, peaceful)
    everyone = list(world.nodes)
    for node in everyone:
        world.brokers[node].dig_out()
    _heal(world, everyone)
    _wait_converged(world, everyone)
    world.queue.run_until(world.queue.now + _quiet_seconds(world))
    after = _epochs(world, peaceful)
    if before != after:
        what = f"epochs were {before} and are {after}, when others came to {core}"
        raise Violation("who comes back disturbs nobody", "all groups", what)


def _judge_transactions(world: World, play: Play) -> None:
    sources = {
        partition: sorted(
            {
                record.offset
                for poll in world.history.polls
                for record in poll.records
                if record.partition == partition
            }
        )
        for partition in play.places.inputs
    }
    for anomaly in play.judge_all(sources):
        raise Violation(anomaly.kind, str(anomaly.partition), anomaly.what)


def _read_everything(world: World) -> None:
    if world.play is not None:
        world.play.begin_last_reads()
    reader = world.make_consumer("last reader", interval_seconds=0.02, replica_reads=0.0)
    reader.start()
    bound = world.queue.now + _READ_SECONDS
    while not reader.is_at_the_end or (world.play is not None and not world.play.has_read_all):
        if world.queue.now >= bound:
            raise Violation(
                "everything can be read", "all groups", "a reader does not come to an end"
            )
        world.queue.run_until(world.queue.now + _LOOK_SECONDS)
