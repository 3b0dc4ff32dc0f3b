"""The end of every run: faults stop, for good, for a part of the brokers that can work.

Faults that come and go heal everything by chance, and hide what would stay broken for ever. So here
a core of brokers, a majority of every group, is healed, the others stay dead, deaf or hanging, and
the core has a bounded time to do all that is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidemark.partitions.replication.group_replica import GroupReplica
from tidemark.protocol.errors import CorruptBatch
from tidemark.protocol.records.header import check_crc, iter_headers
from tidemark.protocol.types import Epoch, NodeId
from tidemark.testing.checkers import check
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.convergence import LOOK_SECONDS, wait_converged
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.healing import choose_core, heal, mend_half
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.transactions.ending import judge_all
from tidemark.testing.simulator.transactions.play import Play
from tidemark.testing.simulator.watch import pieces
from tidemark.testing.simulator.world import World

_RESUME_SECONDS: Final = 3.0
_READ_SECONDS: Final = 40.0
_POLL_SECONDS: Final = 0.02
_QUICK_DISK: Final = 0.05


def finish(world: World) -> None:
    """Heal a core and hold it to its promises. Raises `Violation`."""
    world.nemesis.stop()
    core, half_cut = choose_core(world)
    heal(world, core)
    world.queue.run_until(world.queue.now + min(_RESUME_SECONDS, 1 + world.knobs.seconds / 15))
    for producer in world.producers:
        producer.stop()
    if world.play is not None:
        world.play.stop()
    wait_converged(world, core)
    _wait_for_late_successors(world, core)
    peaceful = _peaceful(world, core)
    for node in half_cut:
        mend_half(world, node)
    _stay_quiet(world, core)
    if core != world.nodes:
        _rejoin(world, core, peaceful)
    _read_everything(world)
    if "rot" in {fault.kind for fault in world.nemesis.tape}:
        _judge_bytes(world)
    _hand_over(world)
    for producer in world.producers:
        producer.abandon()
    if world.play is not None:
        _judge_transactions(world, world.play)
    world.history.sends.sort(key=lambda send: send.started)
    lost = {group.partition for group in world.groups if world.watch.may_have_lost(group.key)}
    for anomaly in check(world.history):
        if anomaly.partition not in lost:
            raise Violation(anomaly.kind, str(anomaly.partition), anomaly.what)


def _wait_for_late_successors(world: World, core: list[NodeId]) -> None:
    """What was sent before may come late, and whoever reads then that it is to lead stands, be the
    hand-over long given up."""
    elections = (world.watch.groups[group.key].elections for group in world.groups)
    if any(each.is_anybody_told_to_lead(each.epoch_max) for each in elections):
        late_until = max(world.queue.now, world.network.late_until)
        world.queue.run_until(late_until + _quiet_seconds(world))
        wait_converged(world, core)


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


def _peaceful(world: World, core: list[NodeId]) -> list[SimulatedGroup]:
    """The groups in which nobody outside of the core has an epoch that is still to come, or hangs
    with what leads to one unread: promises, or the word of the leader that it is to lead."""
    return [
        group
        for group in world.groups
        if all(
            world.watch.groups[group.key].epoch_of(node)
            <= world.watch.groups[group.key].elections.epoch_max
            and not _may_be_promised(world, node, group)
            and not _may_be_told_to_lead(world, node, group)
            for node in world.nodes
            if node not in core
        )
    ]


def _may_be_promised(world: World, node: NodeId, group: SimulatedGroup) -> bool:
    """Whether it stopped in the midst of a campaign: it reads what it was told when it goes on."""
    replica = _hanging(world, node, group)
    return replica is not None and replica.leader is None


def _may_be_told_to_lead(world: World, node: NodeId, group: SimulatedGroup) -> bool:
    """Whether it was told to lead after the group's epoch, and has not read it, for it would have
    gone on to the next one: it stands once when it goes on, be the hand-over long given up."""
    replica = _hanging(world, node, group)
    elections = world.watch.groups[group.key].elections
    return (
        replica is not None
        and replica.epoch == elections.epoch_max
        and elections.is_told_to_lead(node, replica.epoch)
    )


def _hanging(world: World, node: NodeId, group: SimulatedGroup) -> GroupReplica | None:
    """Its replica, if its process is there and stands still."""
    process = world.brokers[node].process
    if process is None or process.paused_until <= world.queue.now:
        return None
    return world.brokers[node].replica(group.key)


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
    stands = any(
        _may_be_told_to_lead(world, node, group)
        for group in world.groups
        for node in everyone
        if node not in core
    )
    for node in everyone:
        world.brokers[node].dig_out()
    heal(world, everyone)
    wait_converged(world, everyone)
    world.queue.run_until(world.queue.now + _quiet_seconds(world))
    after = _epochs(world, peaceful)
    if before != after:
        what = f"epochs were {before} and are {after}, when others came to {core}"
        raise Violation("who comes back disturbs nobody", "all groups", what)
    if stands:
        _stay_quiet(world, everyone)  # it does so once


def _hand_over(world: World) -> None:
    """Who is told to lead does so after one election, all being well."""
    rng = stream(world.seed, "heir")
    group = rng.choice(world.groups)
    leader = world.leader(group)
    replica = None if leader is None else leader.replica(group.key)
    if leader is None or replica is None or world.watch.may_have_lost(group.key):
        return
    heirs = [node for node in replica.group.config.voters if node != leader.node_id]
    if not heirs:
        return
    for broker in world.brokers.values():
        broker.disk_factor = _QUICK_DISK  # or a voter loses patience, as it may
    to, (before,) = rng.choice(heirs), _epochs(world, [group])
    leader.tell(group.key, lambda core: core.hand_over(to))
    world.queue.run_until(world.queue.now + _quiet_seconds(world))
    (after,), heir = _epochs(world, [group]), world.leader(group)
    if after != before + 1 or heir is None or heir.node_id != to:
        who = "nobody" if heir is None else heir.node_id
        what = f"{to} was to lead after epoch {before}, and {who} leads in {after}"
        raise Violation("a hand-over takes one election", str(group.partition), what)


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
    for anomaly in judge_all(play, sources):
        raise Violation(anomaly.kind, str(anomaly.partition), anomaly.what)


def _read_everything(world: World) -> None:
    if world.play is not None:
        world.play.begin_last_reads()
    reader = world.make_consumer("last reader", interval_seconds=_POLL_SECONDS, replica_reads=0.0)
    reader.start()
    replicas = (b.replica(group.key) for group in world.groups for b in world.brokers.values())
    # There may be runs in which each poll brings one record.
    records = sum(replica.log_end for replica in replicas if replica is not None)
    bound = world.queue.now + _READ_SECONDS + records * _POLL_SECONDS
    while not reader.is_at_the_end or (world.play is not None and not world.play.has_read_all):
        if world.queue.now >= bound:
            raise Violation(
                "everything can be read", "all groups", "a reader does not come to an end"
            )
        world.queue.run_until(world.queue.now + LOOK_SECONDS)
