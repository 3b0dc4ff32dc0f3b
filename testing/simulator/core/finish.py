"""The end of every run of the fast layer: a healed core of brokers gets on, and stays calm."""

from __future__ import annotations

from typing import Final

from tidemark.protocol.types import NodeId
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.core.world import CoreWorld
from tidemark.testing.simulator.network import LATE_SECONDS_MAX
from tidemark.testing.simulator.randomness import stream

_RESUME_SECONDS: Final = 2.0
_CONVERGE_SECONDS: Final = 300.0
_LOOK_SECONDS: Final = 0.5
_OUT_OF_SIGHT_SECONDS: Final = 2.0
_QUICK_DISK: Final = 0.05


def finish(world: CoreWorld) -> None:
    """Heal a core and hold it to its promises. Raises `Violation`."""
    world.nemesis.stop()
    core = _choose_core(world)
    _heal(world, core)
    world.queue.run_until(world.queue.now + _RESUME_SECONDS)
    world.is_loaded = False
    # What was sent before may come as late as that, and a leader's hand-over begins an election.
    world.queue.run_until(world.queue.now + LATE_SECONDS_MAX)
    _wait_converged(world, core)
    _stay_quiet(world)
    _lose_sight(world, core)
    _hand_over(world, core)


def _choose_core(world: CoreWorld) -> list[NodeId]:
    rng = stream(world.seed, "core")
    may_need_all = "reconfigure" in world.knobs.fault_kinds or world.judge.has_unclean
    brokers = world.brokers.values()
    may_need_all |= any(broker.has_doubt or broker.counts_anew for broker in brokers)
    spared = 0
    if not may_need_all and rng.random() < 0.7:
        spared = rng.randint(0, (world.knobs.voters - 1) // 2)
    rest = rng.sample(list(world.nodes), spared)
    for node in rest:
        world.brokers[node].stop(power=False)
        world.brokers[node].is_buried = True
    return [node for node in world.nodes if node not in rest]


def _heal(world: CoreWorld, core: list[NodeId]) -> None:
    world.network.calm()
    for node in core:
        broker = world.brokers[node]
        broker.disk_factor = 1.0
        if broker.process is None:
            broker.start()
        else:
            broker.process.awake.wake()
    world.note(NodeId(0), "fault", f"healed: {core}")


def _wait_converged(world: CoreWorld, core: list[NodeId]) -> None:
    bound = world.queue.now + _CONVERGE_SECONDS
    while why := _why_not(world, core):
        if world.queue.now >= bound:
            raise Violation("a healed core does its work", world.judge.name, why)
        world.queue.run_until(world.queue.now + _LOOK_SECONDS)


def _why_not(world: CoreWorld, core: list[NodeId]) -> str:
    leader = world.leader(world.group)
    if leader is None or leader.process is None:
        return "there is no leader"
    process = leader.process
    group = process.group
    if not process.is_serving:
        return f"it is led by {leader.node_id}, which does not serve"
    if group.successor is not None:
        return f"{leader.node_id} takes nothing, for {group.successor} is to lead"
    if group.committed != group.shape.last:
        return f"committed {group.committed}, end {group.shape.last}"
    if group.config.is_joint or process.is_paused or world.group.key in world.wishes:
        return f"{group.config} stays, or a move"
    followers = {each.node for each in group.progress()}
    for node in sorted(followers.union(group.config.members)):
        other = world.brokers[node].process
        if node not in core or other is None or other.failure is not None:
            continue
        if other.group.in_doubt:  # for a learner, too, the leader opens an epoch that ends it
            return f"{node} is in doubt"
        if node in group.config.members and other.committed != group.committed:
            return f"{node} has {other.committed} of {group.committed}"
    return ""


def _stay_quiet(world: CoreWorld) -> None:
    elections = world.judge.elections
    before = elections.epoch_max
    world.queue.run_until(world.queue.now + _quiet_seconds(world))
    if elections.epoch_max != before:
        what = f"epoch {before} became {elections.epoch_max}"
        raise Violation("no election while all is well", world.judge.name, what)


def _lose_sight(world: CoreWorld, core: list[NodeId]) -> None:
    """Who hears all but the leader stands in vain, and disturbs nobody when it hears that again."""
    leader, judge, network = world.leader(world.group), world.judge, world.network
    if leader is None or leader.process is None:
        return
    node, config = leader.node_id, leader.process.group.config
    others = [each for each in config.voters if each in core and each != node]
    if not others:
        return
    victim = stream(world.seed, "out of sight").choice(others)
    if not config.agreed(lambda each: each in core and each != victim):
        return
    before = judge.elections.epoch_max
    for link in ((node, victim), (victim, node)):
        network.cut(*link)
    world.queue.run_until(world.queue.now + _OUT_OF_SIGHT_SECONDS + 2 * world.knobs.failure_timeout)
    for link in ((node, victim), (victim, node)):
        network.mend(*link)
    world.coverage.counts["leaders out of sight"] += 1
    world.queue.run_until(world.queue.now + _quiet_seconds(world))
    if judge.elections.epoch_max != before:
        what = (
            f"epoch {before} became {judge.elections.epoch_max}, for {victim} did not hear {node}"
        )
        raise Violation("who comes back disturbs nobody", judge.name, what)


def _hand_over(world: CoreWorld, core: list[NodeId]) -> None:
    """Who is told to lead does so after one election, all being well."""
    leader, judge = world.leader(world.group), world.judge
    if leader is None or leader.process is None or judge.may_have_lost:
        return
    voters = leader.process.group.config.voters
    heirs = [node for node in voters if node in core and node != leader.node_id]
    if not heirs:
        return
    for broker in world.brokers.values():
        broker.disk_factor = _QUICK_DISK  # or a voter loses patience, as it may
    to, before = stream(world.seed, "heir").choice(heirs), judge.elections.epoch_max
    leader.tell(world.group.key, lambda group: group.hand_over(to))
    world.queue.run_until(world.queue.now + _quiet_seconds(world))
    after, heir = judge.elections.epoch_max, world.leader(world.group)
    if after != before + 1 or heir is None or heir.node_id != to:
        who = "nobody" if heir is None else heir.node_id
        what = f"{to} was to lead after epoch {before}, and {who} leads in {after}"
        raise Violation("a hand-over takes one election", judge.name, what)


def _quiet_seconds(world: CoreWorld) -> float:
    """Long enough for whoever misses something to have done something about it."""
    return 0.5 + 2 * world.knobs.failure_timeout
