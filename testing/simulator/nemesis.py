"""Who does the harm: at the times on the tape, and shortly after moments that tempt.

Harm that is timed by chance rarely meets the few milliseconds that matter; harm that follows an
election, a vote or a sync does, again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, Protocol

from tidemark.partitions.raft.group import Group
from tidemark.protocol.errors import RequestError
from tidemark.protocol.types import NodeId
from tidemark.testing.simulator.coverage import Coverage
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.faults import Fault, draw_fault, timed_faults
from tidemark.testing.simulator.groups import SimulatedGroup
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.network import Network
from tidemark.testing.simulator.placement import Placement
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.trace import Trace
from tidemark.testing.simulator.transactions.harm import coordinated_by, links_to_its_followers
from tidemark.testing.simulator.victim import Victim
from tidemark.testing.simulator.wishes import Wishes

_ANSWERS: Final = (
    "kill",
    "power",
    "power",
    "power all",
    "pause",
    "cut",
    "isolate",
    "strand",
    "strand",
    "hold",
    "hold",
    "slow disk",
    "hand over",
)
"""What may follow a moment."""
_FREQUENT: Final = frozenset({"commit", "ack", "append", "sync"})
_FREQUENT_FACTOR: Final = 0.1
_AT_ONCE_SHARE: Final = 0.3
_AT_ONCE_SECONDS: Final = 1e-6
_CHANGE_ATTEMPTS: Final = 15
_CHANGE_SECONDS: Final = 0.2
_AGAIN_ATTEMPTS: Final = 20
_AGAIN_SECONDS: Final = 0.005
_SLOW_DISK_MAX: Final = 200
_STEP_SECONDS_MAX: Final = 0.02
_JUMP_SECONDS_MAX: Final = 7200
_FREE_BYTES_MAX: Final = 4000
_WISH_SECONDS_MIN: Final = 0.5
_WHISPER_FACTOR: Final = 9
_FORGETFUL_SECONDS: Final = 0.02
_REPLICA_COUNTS: Final = (1, 2, 3, 3)
_CANCEL_SHARE: Final = 0.25


class Field(Protocol):
    """What a nemesis has before it."""

    seed: int
    knobs: Knobs
    queue: EventQueue
    network: Network
    trace: Trace
    coverage: Coverage
    wishes: Wishes
    placement: Placement | None
    groups: Sequence[SimulatedGroup]
    clients: Sequence[str]

    @property
    def brokers(self) -> Mapping[NodeId, Victim]: ...

    def leader(self, group: SimulatedGroup) -> Victim | None: ...

    def link_lost(self, source: NodeId, target: NodeId) -> None: ...

    def link_back(self, source: NodeId, target: NodeId) -> None: ...

    def trim(self, group: SimulatedGroup) -> None: ...


class Nemesis:
    """All faults of one run. `tape` holds those that were done, in the order of their drawing."""

    def __init__(self, field: Field, script: Sequence[Fault] | None) -> None:
        """With a `script`, exactly its faults happen, and none is drawn."""
        self._field = field
        self._rng = stream(field.seed, "nemesis")
        self._is_scripted = script is not None
        self._is_over = False
        self.tape = list(timed_faults(field.seed, field.knobs) if script is None else script)
        self._acts: dict[str, Callable[[Fault], None]] = {
            "kill": self._kill,
            "power": self._kill,
            "kill all": self._kill_all,
            "power all": self._kill_all,
            "pause": lambda fault: self._broker(fault).pause(fault.seconds),
            "slow steps": self._slow_steps,
            "cut": self._cut,
            "cut client": self._cut_client,
            "isolate": self._cut,
            "strand": self._cut,
            "whisper": self._whisper,
            "clog": self._clog,
            "hold": self._clog,
            "muffle": self._clog,
            "slow disk": self._slow_disk,
            "sync error": self._sync_error,
            "disk full": self._disk_full,
            "clock jump": self._clock_jump,
            "hand over": self._hand_over,
            "move leader": self._move_leader,
            "checkpoint": self._checkpoint,
            "trim": lambda fault: self._field.trim(self._group(fault)),
            "reconfigure": self._reconfigure,
            "change again": self._change_again,
            "switch parents": self._switch_parents,
            "move replicas": self._move_replicas,
            "damage": self._damage,
            "forget": self._forget,
            "rot": lambda fault: self._broker(fault).rot_segment(self._group(fault).key),
            "compact": self._compact,
            "sever": self._sever,
            "depose": self._depose,
            "no room": self._no_room,
        }

    def start(self) -> None:
        for fault in self.tape:
            self._schedule(fault)

    def stop(self) -> None:
        """No harm from now on; what has begun is for others to end."""
        self._is_over = True

    def moment(self, node: NodeId, name: str) -> None:
        """Something has happened that may be worth an answer."""
        knobs = self._field.knobs
        if self._is_over or self._is_scripted or name not in knobs.triggers:
            return
        rng = self._rng
        factor = _FREQUENT_FACTOR if name in _FREQUENT else 1.0
        if rng.random() >= knobs.trigger_chance * factor:
            return
        # Never at this very time: run again from its tape, it would come before its cause.
        at = self._field.queue.now + _AT_ONCE_SECONDS
        if rng.random() >= _AT_ONCE_SHARE:
            at += rng.random() * knobs.trigger_delay
        victim = node if rng.random() < 0.7 else None
        fault = draw_fault(
            rng, rng.choice(knobs.answers or _ANSWERS), at, knobs, node=victim, why=name
        )
        self.tape.append(fault)
        self._schedule(fault)

    def _schedule(self, fault: Fault) -> None:
        self._field.queue.at(fault.at, self._do, fault)

    def _do(self, fault: Fault) -> None:
        if self._is_over:
            return
        field = self._field
        field.trace.note(field.queue.now, fault.node, "fault", f"{fault} {fault.why}")
        phase = self._broker(fault).phase(self._group(fault).key)
        field.coverage.cells[fault.kind, phase] += 1
        if fault.why:
            field.coverage.cells[f"after {fault.why}", phase] += 1
        self._acts[fault.kind](fault)

    def _broker(self, fault: Fault) -> Victim:
        nodes = list(self._field.brokers)
        return self._field.brokers[nodes[(fault.node - 1) % len(nodes)]]

    def _group(self, fault: Fault) -> SimulatedGroup:
        return self._field.groups[fault.group % len(self._field.groups)]

    def _then(self, fault: Fault, action: Callable[[], None]) -> None:
        """Once the fault has lasted its time, if faults are still this one's to end."""

        def end() -> None:
            if not self._is_over:
                action()

        self._field.queue.after(fault.seconds, end)

    # Processes

    def _kill(self, fault: Fault) -> None:
        broker = self._broker(fault)
        broker.stop(power=fault.kind == "power")
        self._then(fault, broker.start)

    def _damage(self, fault: Fault) -> None:
        broker = self._broker(fault)
        if broker.damage_journal():
            self._then(fault, broker.start)

    def _forget(self, fault: Fault) -> None:
        """Who has been elected is alone, and another may have forgotten that it voted for it."""
        self._cut(fault)
        victim = self._broker(fault)
        others = [each for each in self._field.brokers.values() if each is not victim]
        if others:
            voter = others[int(fault.amount * len(others))]
            if voter.damage_journal():
                self._field.queue.after(_FORGETFUL_SECONDS, voter.start)

    def _kill_all(self, fault: Fault) -> None:
        for broker in self._field.brokers.values():
            broker.stop(power=fault.kind == "power all")
            # Not all at once: whoever comes first must not do harm to those who come later.
            later = fault.seconds * (1 + broker.rng.random())
            self._field.queue.after(later, broker.start)

    def _slow_steps(self, fault: Fault) -> None:
        broker = self._broker(fault)
        broker.step_seconds = fault.amount * _STEP_SECONDS_MAX

        def end() -> None:
            broker.step_seconds = 0.0

        self._then(fault, end)

    def _clock_jump(self, fault: Fault) -> None:
        self._broker(fault).jump_clock((fault.amount - 0.5) * _JUMP_SECONDS_MAX)

    # The network

    def _cut(self, fault: Fault) -> None:
        self._cut_links(fault, [(NodeId(source), NodeId(target)) for source, target in fault.links])

    def _sever(self, fault: Fault) -> None:
        """Whoever coordinates transactions is cut off from those who store its decisions alone."""
        links = links_to_its_followers(self._field, self._broker(fault).node_id)
        self._cut_links(fault, links)

    def _cut_links(self, fault: Fault, links: Sequence[tuple[NodeId, NodeId]]) -> None:
        field = self._field
        for source, target in links:
            field.network.cut(source, target)
            if fault.amount < field.knobs.resets_seen:
                field.link_lost(source, target)

        def end() -> None:
            for source, target in links:
                field.network.mend(source, target)
                field.link_back(source, target)

        self._then(fault, end)

    def _whisper(self, fault: Fault) -> None:
        """What the one that is left has to say comes much later, when others have led."""
        self._cut(fault)
        network, victim = self._field.network, self._broker(fault).node_id
        until = self._field.queue.now + fault.seconds * (1 + _WHISPER_FACTOR * fault.amount)
        for other in self._field.brokers:
            if other != victim and (other, victim) not in fault.links:
                network.clog(other, victim, until)

    def _cut_client(self, fault: Fault) -> None:
        field = self._field
        client = field.clients[int(fault.amount * len(field.clients))]
        node = self._broker(fault).node_id
        ways = ((client, node), (node, client))
        chosen = ways if fault.seconds > field.knobs.fault_seconds else ways[:1]
        for source, target in chosen:
            field.network.cut(source, target)

        def end() -> None:
            for source, target in chosen:
                field.network.mend(source, target)

        self._then(fault, end)

    def _clog(self, fault: Fault) -> None:
        for source, target in fault.links:
            self._field.network.clog(source, target, self._field.queue.now + fault.seconds)

    # The disk

    def _slow_disk(self, fault: Fault) -> None:
        broker = self._broker(fault)
        broker.disk_factor = 1 + fault.amount * _SLOW_DISK_MAX

        def end() -> None:
            broker.disk_factor = 1.0

        self._then(fault, end)

    def _sync_error(self, fault: Fault) -> None:
        self._broker(fault).fail_next_sync()

    def _disk_full(self, fault: Fault) -> None:
        broker = self._broker(fault)
        broker.fill_disk(free_bytes=int(fault.amount * _FREE_BYTES_MAX))
        self._then(fault, broker.free_disk)

    def _no_room(self, fault: Fault) -> None:
        """So little is left that it refuses what it would write for clients, and leads on."""
        broker = self._broker(fault)
        broker.run_low(is_out=True)
        self._then(fault, partial(broker.run_low, is_out=False))

    # What operators do

    def _checkpoint(self, fault: Fault) -> None:
        self._broker(fault).checkpoint()

    def _compact(self, fault: Fault) -> None:
        for group in self._field.groups:
            if group.is_compacted or self._field.knobs.compaction_seconds:
                self._broker(fault).compact(group.key)

    def _depose(self, fault: Fault) -> None:
        """Another one is to coordinate the transactions that this one does."""
        for group in list(coordinated_by(self._field, self._broker(fault).node_id)):
            self._hand_group_over(group, fault)

    def _hand_over(self, fault: Fault) -> None:
        self._hand_group_over(self._group(fault), fault)

    def _hand_group_over(self, group: SimulatedGroup, fault: Fault) -> None:
        leader = self._field.leader(group)
        if leader is None:
            return
        others = [node for node in group.voters if node != leader.node_id]
        if others:
            to = others[int(fault.amount * len(others))]
            leader.tell(group.key, _if_it_may(lambda core: core.hand_over(to)))

    def _move_leader(self, fault: Fault) -> None:
        group = self._group(fault)
        nodes = list(group.voters)
        to = nodes[int(fault.amount * len(nodes))]
        self._field.wishes.make(group, to, _WISH_SECONDS_MIN + fault.seconds)

    def _move_replicas(self, fault: Fault) -> None:
        """Wish a group onto other brokers, in place of an earlier wish; or cancel that."""
        group, placement = self._group(fault), self._field.placement
        if placement is None:
            return
        rng = stream(self._field.seed, fault.name)
        nodes = list(self._field.brokers)
        count = min(len(nodes), rng.choice(_REPLICA_COUNTS), self._field.knobs.replicas_max)
        wanted = tuple(rng.sample(nodes, count))
        placement.wish(group, None if fault.amount < _CANCEL_SHARE else wanted)

    def _reconfigure(self, fault: Fault) -> None:
        """Have other brokers vote in a group: they catch up as learners, and then it changes."""
        group = self._group(fault)
        rng = stream(self._field.seed, fault.name)
        nodes = [node for node in self._field.brokers if node not in group.observers]
        count = min(len(nodes), max(1, len(group.voters) + rng.choice((-1, 0, 0, 1))))
        voters = tuple(sorted(rng.sample(nodes, count)))
        self._go_over(group, voters, _CHANGE_ATTEMPTS, _CHANGE_SECONDS)

    def _change_again(self, fault: Fault) -> None:
        """Have the leader and one or two others vote, as soon as they have caught up with it, be
        what it has begun committed or not."""
        group = self._group(fault)
        leader = self._field.leader(group)
        if leader is None:
            return
        rng = stream(self._field.seed, fault.name)
        others = [node for node in self._field.brokers if node != leader.node_id]
        voters = (leader.node_id, *rng.sample(others, min(len(others), rng.choice((1, 2)))))
        self._go_over(group, tuple(sorted(voters)), _AGAIN_ATTEMPTS, _AGAIN_SECONDS)

    def _switch_parents(self, fault: Fault) -> None:
        """One that observes is to pull from others, in another order."""
        group = self._group(fault)
        if group.observers:
            rng = stream(self._field.seed, fault.name)
            node = rng.choice(group.observers)
            # All of them, in another order: two that have only each other would wait for ever.
            others = [each for each in self._field.brokers if each != node]
            self._field.brokers[node].observe(group.key, rng.sample(others, len(others)))

    def _go_over(
        self, group: SimulatedGroup, voters: tuple[NodeId, ...], attempts: int, seconds: float
    ) -> None:
        if self._is_over or not attempts:
            return
        leader = self._field.leader(group)
        if leader is not None:
            leader.tell(group.key, partial(_change_voters, voters=voters))
        self._field.queue.after(seconds, self._go_over, group, voters, attempts - 1, seconds)


def _change_voters(core: Group, voters: tuple[NodeId, ...]) -> None:
    """One step towards these voters."""
    for node in voters:
        if node not in core.config.members:
            core.add_learner(node)
    if core.config.voters != voters:
        # Also while a change is under way, or may not begin yet: the core has to refuse that.
        with suppress(RequestError):
            core.change_config(voters)


def _if_it_may(change: Callable[[Group], None]) -> Callable[[Group], None]:
    """What the core refuses is not done."""

    def attempt(core: Group) -> None:
        with suppress(RequestError):
            change(core)

    return attempt
