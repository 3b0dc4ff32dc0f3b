"""One group on several brokers, and all that can happen to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from typing import Final, NamedTuple, TypeVarTuple, Unpack

from tidemark.partitions.raft.messages import Message
from tidemark.protocol.records.header import BatchHeader
from tidemark.protocol.types import NO_EPOCH, NodeId, Offset
from tidemark.testing.checkers import serving
from tidemark.testing.checkers.violation import Violation
from tidemark.testing.simulator.core.beats import Beat
from tidemark.testing.simulator.core.broker import CoreBroker
from tidemark.testing.simulator.core.judge import CoreJudge
from tidemark.testing.simulator.core.process import CoreProcess
from tidemark.testing.simulator.coverage import Coverage
from tidemark.testing.simulator.events import EventQueue
from tidemark.testing.simulator.faults import Fault
from tidemark.testing.simulator.groups import SimulatedGroup, draw_groups
from tidemark.testing.simulator.knobs import Knobs
from tidemark.testing.simulator.nemesis import Nemesis
from tidemark.testing.simulator.network import End, Network
from tidemark.testing.simulator.novelty import COMMON_EACH, states_of
from tidemark.testing.simulator.placement import Placement
from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.trace import Trace
from tidemark.testing.simulator.wishes import Wishes

_SEVERAL_SHARE: Final = 0.2
_ALONE_SECONDS_MAX: Final = 10.0
"""A leader that changes the voters may find out a while later that too few of them live."""

_Args = TypeVarTuple("_Args")


class _Envelope(NamedTuple):
    """A message between two processes; it does not outlive either."""

    sender: CoreProcess
    receiver: CoreProcess | None
    message: Message | Beat


class CoreWorld:
    """Everything in one run. It is what the nemesis has before it."""

    def __init__(
        self, seed: int, knobs: Knobs, script: Sequence[Fault] | None, trace: Trace
    ) -> None:
        self.seed = seed
        self.knobs = knobs
        self.trace = trace
        self.queue = EventQueue()
        self.coverage = Coverage()
        self._common = 0
        """How many common moments there were."""
        self.groups: Sequence[SimulatedGroup] = draw_groups(seed, replace(knobs, groups=1))
        self.group = self.groups[0]
        self.judge = CoreJudge(self.group)
        self.nodes: Sequence[NodeId] = [NodeId(number) for number in range(1, knobs.nodes + 1)]
        self.clients: Sequence[str] = ["client"]
        self.network = self._make_network()
        self.brokers = {node: CoreBroker(node, self) for node in self.nodes}
        self.wishes = Wishes(self)
        self.placement: Placement | None = None
        self.is_loaded = True
        self.starts = 0
        """Of processes, so far."""
        self._heard = dict.fromkeys(permutations(self.nodes, 2), 0.0)
        self._links = [(pair, self.network.link(*pair)) for pair in self._heard]
        self._ways = {
            node: [(other, (node, other), (other, node)) for other in self.nodes if other != node]
            for node in self.nodes
        }
        """To each of the others, there and back."""
        self._all_heard_at = 0.0
        self._rng = stream(seed, "world")
        self._batches = 0
        self.nemesis = Nemesis(self, script)

    def start(self) -> None:
        for broker in self.brokers.values():
            self.queue.after(self._rng.random() * 0.2, broker.start)
        self.queue.after(self.knobs.heartbeat, self._beats)
        self.queue.after(self._rng.random(), self._load)
        self.nemesis.start()

    def _make_network(self) -> Network:
        weather = self.knobs.weather
        return Network(self.queue, self.seed, self._deliver, weather, weather)

    # For processes

    def send(self, source: CoreProcess, target: NodeId, message: Message | Beat) -> None:
        envelope = _Envelope(source, self.brokers[target].process, message)
        self.network.send(source.node_id, target, envelope)

    def later(self, process: CoreProcess, seconds: float, action: Callable[[], None]) -> None:
        """Do it in so many seconds, if the process lives and does not stand still then."""
        self.queue.after(seconds, self._do, process, action)

    def beat_soon(self, process: CoreProcess) -> None:
        """Who leads has changed: the others hear of it before the next heartbeat."""
        self.later(process, 0.0, partial(self._tell_all, process))

    def moment(self, node: NodeId, name: str) -> None:
        self.coverage.counts[name] += 1
        self.nemesis.moment(node, name)

    def look(self, *, is_common: bool = False) -> None:
        """How the group is may be new."""
        self._common += is_common
        if is_common and self._common % COMMON_EACH:
            return
        processes = [broker.process for broker in self.brokers.values()]
        there = [each.group for each in processes if each is not None and each.failure is None]
        self.coverage.states.update(states_of(there))

    def note(self, node: NodeId, topic: str, what: str) -> None:
        self.trace.note(self.queue.now, node, topic, what)

    def stopped(self, broker: CoreBroker, _process: CoreProcess) -> None:
        """Some notice it at once, others by the silence."""
        for other in self.brokers.values():
            if other is not broker and self._rng.random() < self.knobs.resets_seen:
                self._heard[broker.node_id, other.node_id] = -1e9

    # For the nemesis

    def leader(self, group: SimulatedGroup) -> CoreBroker | None:
        leaders = [
            (broker.process.epoch, broker.node_id)
            for broker in self.brokers.values()
            if broker.process is not None and broker.process.is_leader
        ]
        return self.brokers[max(leaders)[1]] if leaders else None

    def link_lost(self, source: NodeId, target: NodeId) -> None:
        self._heard[source, target] = self._heard[target, source] = -1e9

    def link_back(self, source: NodeId, target: NodeId) -> None:
        """The next heartbeat will tell."""

    def trim(self, group: SimulatedGroup) -> None:
        leader = self.leader(group)
        if leader is not None and leader.process is not None:
            leader.process.trim(self._rng.random())

    # Events

    def _do(
        self, process: CoreProcess, action: Callable[[Unpack[_Args]], None], *args: *_Args
    ) -> None:
        if process.broker.process is not process:
            return
        paused_until = process.awake.paused_until
        if self.queue.now < paused_until:
            self.queue.at(paused_until, self._do, process, action, *args)
            return
        action(*args)

    def _deliver(self, source: End, target: End, message: object) -> None:
        assert isinstance(message, _Envelope)
        sender, receiver, what = message
        if receiver is not None and sender.broker.process is sender:
            if isinstance(what, Beat):
                sender.told[receiver.node_id] = what
            self._do(receiver, receiver.receive, sender, what)

    def _load(self) -> None:
        """Clients find someone who takes their batches, be it the latest leader or not."""
        if not self.is_loaded:
            return
        rng, knobs = self._rng, self.knobs
        takers = [
            broker.process
            for broker in self.brokers.values()
            if broker.process is not None and broker.process.is_accepting
        ]
        if takers:
            process = rng.choice(takers)
            count = rng.randint(1, knobs.records_max) if rng.random() < _SEVERAL_SHARE else 1
            batches = [self._batch() for _ in range(count)]
            self._do(process, partial(process.append, batches))
        self.queue.after(rng.expovariate(1 / knobs.send_interval), self._load)

    def _batch(self) -> BatchHeader:
        self._batches += 1
        self.coverage.counts["batches"] += 1
        header = BatchHeader.open(
            base_offset=Offset(0),
            epoch=NO_EPOCH,
            attributes=0,
            base_timestamp=0,
            max_timestamp=0,
            producer_id=1,
            producer_epoch=0,
            base_sequence=self._batches,
            record_count=1 + self._batches % 3,
        )
        return header._replace(crc=self._batches)

    def _beats(self) -> None:
        """Who hears whom by now, and what they have to say."""
        if self._is_calm():
            self._all_hear()
        else:
            self._hear()
            for broker in self.brokers.values():
                if broker.process is not None:
                    self._look_at(broker.process)
        self.queue.after(self.knobs.heartbeat, self._beats)

    def _all_hear(self) -> None:
        self._all_heard_at = now = self.queue.now
        for broker in self.brokers.values():
            process = broker.process
            if process is not None and process.led_epoch is not None:
                self._tell_all(process)
        for broker in self.brokers.values():
            process = broker.process
            if process is not None:
                process.heard_majority_at = now  # as every leader does
                if process.is_paused:
                    self._look_at(process)

    def _look_at(self, process: CoreProcess) -> None:
        now = self.queue.now
        if process.is_paused and process.awake.is_awake:
            held_seconds = process.awake.seconds - process.paused_since
            serving.check_held(process.name, held_seconds)
        group = process.group
        if not process.is_leader or group.config.agreed(process.is_alive):
            process.heard_majority_at = now
        elif now - process.heard_majority_at > _ALONE_SECONDS_MAX:
            what = f"{process.node_id} leads {group.config} and hears {sorted(process.alive)}"
            raise Violation("a leader hears a majority", process.name, what)

    def _is_calm(self) -> bool:
        """Whether all hear all, as before: mostly there is nothing more to find out."""
        if not self.network.is_calm:
            return False
        count, starts, now = len(self.nodes), self.starts, self.queue.now
        for broker in self.brokers.values():
            process = broker.process
            if process is None or process.starts_known != starts or len(process.alive) != count:
                return False
            if now < process.awake.paused_until:
                return False
        return True

    def _hear(self) -> None:
        now, rng, loss, all_heard = (
            self.queue.now,
            self._rng,
            self.network.weather.loss,
            self._heard,
        )
        running = {
            node: broker.process
            for node, broker in self.brokers.items()
            if broker.process is not None and broker.process.awake.is_awake
        }
        for pair, link in self._links:
            is_stopped = pair[0] not in running or link.cuts or link.clogged_until > now
            if not is_stopped and (not loss or rng.random() >= loss):
                all_heard[pair] = now
        lost_before, all_heard_at = now - self.knobs.failure_timeout, self._all_heard_at
        for node, process in running.items():
            process.starts_known = self.starts
            alive, known = process.alive, process.known
            for other, there, back in self._ways[node]:
                # Both ways, for a broker is alive that hears and is heard.
                heard = min(all_heard[there], all_heard[back])
                if 0 <= heard < all_heard_at:
                    heard = all_heard_at
                is_lost, life = heard < lost_before, running.get(other)
                is_replaced = life is not None and life is not known.get(other)
                if (is_lost or is_replaced) and other in alive:
                    process.lost(other)
                if life is not None and not is_lost and other not in alive:
                    process.came_alive(life)
            self._tell_all(process)

    def _tell_all(self, process: CoreProcess) -> None:
        beat, told = process.beat(), process.told
        if beat is None:
            return
        for node, _, _ in self._ways[process.node_id]:
            if told.get(node) != beat:
                self.send(process, node, beat)
