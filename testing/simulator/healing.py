"""Faults stop for some brokers; the others stay dead, deaf or hanging, or come half back."""

from __future__ import annotations

from itertools import permutations

from tidemark.partitions.storage.state_db import Condition
from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.broker import Broker
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.world import World


def choose_core(world: World) -> tuple[list[NodeId], list[NodeId]]:
    """Who is to work, and who of the others will come half back before the rest does."""
    rng = stream(world.seed, "core")
    spared = 0
    # Where voters change, nobody knows beforehand which brokers a majority needs; and where some
    # have lost what was in memory, all of them may be needed.
    may_change = "reconfigure" in world.knobs.fault_kinds or world.placement is not None
    may_need_all = may_change or world.watch.has_unclean or world.watch.has_doubt
    may_need_all |= any(map(_may_not_count, world.brokers.values()))
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


def _may_not_count(broker: Broker) -> bool:
    """Whether its disk has damage that is yet to be found or made good.

    Of a journal that rots nobody knows before the next start. And who was sure again, and died
    before that was on its disk, is in doubt once more.
    """
    recorded = broker.state.partition_states().values()
    is_in_doubt = any(stored.condition is Condition.DAMAGED for stored in recorded)
    return broker.has_rot or broker.rotten is not None or is_in_doubt


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


def mend_half(world: World, node: NodeId) -> None:
    """It hears enough of the others to campaign again, and perhaps nobody who leads."""
    others = [other for other in world.nodes if other != node]
    heard = stream(world.seed, f"half {node}").sample(others, len(world.nodes) // 2)
    world.trace.note(world.queue.now, node, "fault", f"hears {heard} again")
    for other in heard:
        world.network.mend(other, node)
        world.network.mend(node, other)


def heal(world: World, core: list[NodeId]) -> None:
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
        broker.is_spared = True
        broker.restore()
        broker.disk_factor, broker.step_seconds = 1.0, 0.0
        broker.files.capacity_bytes, broker.files.failing_syncs = None, 0
        broker.run_low(is_out=False)
        broker.lift_limits()
        if broker.process is None:
            broker.start()
        else:
            broker.process.wake()
    for node in world.nodes:
        if node not in core and world.brokers[node].process is None:
            world.brokers[node].bury()
    world.trace.note(world.queue.now, 0, "fault", f"healed: {core}")
