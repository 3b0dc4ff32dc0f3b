"""Every state that a scope has: breadth first, each state once, each rule in each of them.

What an event does to a replica depends on that replica alone. So replicas are interned, and what
became of one in an event is remembered: most steps of the whole are a look-up. A state of the
whole is the replicas, the messages on their way, what may still happen, and the past that later
states are held to: who has led, and what was committed.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final, NamedTuple

from tests.scenarios.disk import Image
from tests.scopes.local import Broken, Envelope, Event, Lineage, Local, News
from tidemark.partitions.raft.entries import Configuration
from tidemark.partitions.raft.group import Limits
from tidemark.partitions.raft.messages import VoteRequest, VoteResponse
from tidemark.protocol.types import NO_EPOCH, ORIGIN, Epoch, NodeId, Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which few things happen, at most how often. Everything else is left to every possible order.

    A message arrives at any time later, or never; with `duplicates`, so many arrive twice.
    """

    name: str
    nodes: int = 3
    voters: tuple[int, ...] = ()
    """All nodes, unless they are named."""
    elections: int = 0
    """Whole ones: a candidate, and voters enough, who hear of nothing else meanwhile."""
    campaigns: int = 0
    """Elections message by message."""
    pre_votes: bool = True
    """Whether a campaign begins with a vote before the vote; whole elections never do."""
    appends: int = 0
    duplicates: int = 0
    crashes: int = 0
    damages: int = 0
    """Crashes of one replica that forgets what it promised, while no other may have."""
    beats: int = 0
    resets: int = 0
    changes: int = 0
    """Of the voters, each to any other set of nodes."""
    hand_overs: int = 0
    syncs_at_once: bool = True
    """Whether what is written is durable at once; else that too happens at any time later."""
    all_alive: bool = False
    """Whether brokers are taken for alive: then voters do not listen while they know a leader."""
    limits: Limits = field(default_factory=lambda: Limits(append_bytes_max=1))

    def budget(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in _BUDGET)


_BUDGET: Final = (
    *("elections", "campaigns", "appends", "duplicates", "crashes", "beats", "resets"),
    *("changes", "hand_overs", "damages"),
)
_PLACE: Final = {name: place for place, name in enumerate(_BUDGET)}


class Past(NamedTuple):
    """What binds all that comes after."""

    leaders: tuple[tuple[Epoch, int], ...] = ()
    committed: Lineage = Lineage((), ORIGIN.offset)
    """The longest log that anybody called committed."""
    commits: tuple[tuple[Epoch, Position], ...] = ()
    """Up to where something was first called committed, and in which epoch."""


class State(NamedTuple):
    """A state of the whole, in numbers."""

    replicas: tuple[int, ...]
    mail: frozenset[int]
    budget: tuple[int, ...]
    past: int


class Step(NamedTuple):
    """What became of one replica."""

    replica: int
    sent: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What was found."""

    scope: Scope
    states: int
    steps: int
    replica_states: int
    depth: int
    is_complete: bool
    """Whether there is no state of the scope that was not reached."""
    cpu_seconds: float
    broken: str = ""
    """The rule that does not hold; empty if all do."""
    story: tuple[str, ...] = ()
    """How it came to that, in as few steps as possible."""


def explore(scope: Scope, *, states_max: int = 1_000_000) -> Result:
    return _Exploration(scope).run(states_max)


class _Exploration:
    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._locals: list[Local] = []
        self._local_ids: dict[Hashable, int] = {}
        self._letters: list[Envelope] = []
        self._letter_ids: dict[Envelope, int] = {}
        self._deliveries: list[Event] = []
        self._pasts: list[Past] = []
        self._past_ids: dict[Past, int] = {}
        self._made: dict[tuple[int, Event], Step] = {}
        self._delivered: dict[tuple[int, int], Step] = {}
        self._matching: set[tuple[int, int]] = set()
        self._judgements: dict[tuple[int, int, int], int] = {}
        self._steps = 0
        self._states: list[State] = []
        self._came_from: list[tuple[int, Event]] = []
        self._nodes = range(1, scope.nodes + 1)

    def run(self, states_max: int) -> Result:
        started, scope = time.process_time(), self._scope
        voters = tuple(map(NodeId, scope.voters or self._nodes))
        image = Image(first_config=Configuration(voters))
        replicas = tuple(
            self._intern(Local(node, image, scope.limits, all_alive=scope.all_alive))
            for node in self._nodes
        )
        start = State(replicas, frozenset(), scope.budget(), self._intern_past(Past()))
        seen, depths = {start}, [0]
        self._states.append(start)
        self._came_from.append((-1, Event("begin", 0)))
        broken, story, at = "", tuple[str, ...](), 0
        while at < len(self._states) and len(self._states) < states_max and not broken:
            try:
                for what, after in self._after(self._states[at]):
                    self._steps += 1
                    if after not in seen:
                        seen.add(after)
                        self._states.append(after)
                        self._came_from.append((at, what))
                        depths.append(depths[at] + 1)
            except _Found as found:
                broken = str(found)
                story = (*self._story(at), _told(found.event))
            at += 1
        return Result(
            scope=scope,
            states=len(self._states),
            steps=self._steps,
            replica_states=len(self._locals),
            depth=depths[-1],
            is_complete=at == len(self._states) and not broken,
            cpu_seconds=time.process_time() - started,
            broken=broken,
            story=story,
        )

    # What can happen

    def _after(self, state: State) -> Iterator[tuple[Event, State]]:
        """What can happen next, and what it leads to."""
        for letter in sorted(state.mail):
            yield from self._deliver(state, letter)
        for event, costs in self._events(state):
            yield from self._happen(state, event, costs)
        if state.budget[_PLACE["elections"]]:
            yield from self._elections(state)
        if state.budget[_PLACE["crashes"]]:
            yield from self._crashes(state)
        if state.budget[_PLACE["damages"]]:
            yield from self._damages(state)

    def _events(self, state: State) -> Iterator[tuple[Event, str]]:
        """Single replicas' own, and from which budget they are taken."""
        left = {name: state.budget[place] for name, place in _PLACE.items()}
        pre_votes = self._scope.pre_votes
        for node in self._candidates(state) if left["campaigns"] else ():
            yield Event("campaign", node, None if pre_votes else "at once"), "campaigns"
        for node, replica in zip(self._nodes, state.replicas):
            local = self._locals[replica]
            others = tuple(other for other in self._nodes if other != node)
            if local.pending:
                yield Event("persist", node), ""
            if self._scope.all_alive and local.group.leader not in (None, node):
                yield Event("lost", node), ""
            if not local.group.is_leader:
                continue
            if left["appends"] and local.group.is_accepting:
                yield Event("append", node), "appends"
            if left["beats"]:
                yield Event("beat", node, others), "beats"
            for other in others if left["resets"] else ():
                yield Event("reset", node, other), "resets"
            for other in others if left["hand_overs"] else ():
                yield Event("hand over", node, other), "hand_overs"
            if left["changes"]:
                yield from self._changes(node, others)

    def _changes(self, node: int, others: tuple[int, ...]) -> Iterator[tuple[Event, str]]:
        for other in others:
            yield Event("learner", node, other), ""
        for size in range(1, self._scope.nodes + 1):
            for voters in combinations(map(NodeId, self._nodes), size):
                yield Event("change", node, voters), "changes"
        yield Event("quorum", node), ""

    def _candidates(self, state: State) -> Iterable[int]:
        """All; but at the beginning, where all are alike, one stands for all."""
        is_begin = not state.mail and not self._pasts[state.past].leaders and not self._scope.voters
        untouched = all(self._locals[r].group.epoch == NO_EPOCH for r in state.replicas)
        return (1,) if is_begin and untouched else self._nodes

    def _deliver(self, state: State, letter: int) -> Iterator[tuple[Event, State]]:
        event = self._deliveries[letter]
        key = (state.replicas[event.node - 1], letter)
        step = self._delivered.get(key) or self._step(state, event)
        self._delivered[key] = step
        if not step.sent and step.replica == state.replicas[event.node - 1]:
            return  # nobody noticed: all that can come of it can come without it
        yield self._merged(state, event, step, mail=state.mail - {letter})
        if state.budget[_PLACE["duplicates"]]:
            yield self._merged(state, event, step, mail=state.mail, costs="duplicates")

    def _happen(self, state: State, event: Event, costs: str) -> Iterator[tuple[Event, State]]:
        step = self._step(state, event)
        if step.sent or step.replica != state.replicas[event.node - 1]:
            yield self._merged(state, event, step, mail=state.mail, costs=costs)

    def _crashes(self, state: State) -> Iterator[tuple[Event, State]]:
        for node, replica in zip(self._nodes, state.replicas):
            crashed = self._ended(state, node)
            for keep in range(len(self._locals[replica].pending) + 1):
                event = Event("crash", node, keep)
                step = self._step(state, event)
                if step.replica != replica or crashed.mail != state.mail:
                    yield self._merged(crashed, event, step, mail=crashed.mail, costs="crashes")

    def _damages(self, state: State) -> Iterator[tuple[Event, State]]:
        if any(self._locals[replica].group.in_doubt for replica in state.replicas):
            return
        for node, replica in zip(self._nodes, state.replicas):
            crashed = self._ended(state, node)
            for rows_kept in range(len(self._locals[replica].durable.rows) + 1):
                event = Event("damage", node, rows_kept)
                step = self._step(state, event)
                yield self._merged(crashed, event, step, mail=crashed.mail, costs="damages")

    def _ended(self, state: State, node: int) -> State:
        """What was under way ended with the process; and the others begin again with it."""
        mail = {m for m in state.mail if node not in self._letters[m][:2]}
        state = state._replace(mail=frozenset(mail))
        for other in self._nodes:
            if other != node:
                reset = Event("reset", other, node)
                step = self._step(state, reset)
                state = self._merged(state, reset, step, mail=state.mail)[1]
        return state

    def _elections(self, state: State) -> Iterator[tuple[Event, State]]:
        config = len(self._nodes)
        for node in self._candidates(state):
            others = [other for other in self._nodes if other != node]
            for size in range(1, config):
                for voters in combinations(others, size):
                    elected = self._elected(state, node, voters)
                    if elected is not None:
                        event = Event("is elected by", node, voters)
                        yield event, self._paid(elected, "elections")

    def _elected(self, state: State, node: int, voters: tuple[int, ...]) -> State | None:
        """With no vote before the vote: whether data is lost must not depend on those."""
        for _ in range(2):  # the first attempt may only teach it the epoch
            before = state.mail
            state = self._quietly(state, Event("campaign", node, "at once"))
            while letters := self._votes(state.mail - before, node, voters):
                for letter in letters:
                    state = state._replace(mail=state.mail - {letter})
                    state = self._quietly(state, self._deliveries[letter])
            asked = {m for m in state.mail - before if self._is_vote(m)}
            state = state._replace(mail=state.mail - asked)
            if self._locals[state.replicas[node - 1]].group.is_leader:
                return state
        return None

    def _votes(self, mail: Iterable[int], node: int, voters: Sequence[int]) -> list[int]:
        ends = {node, *voters}
        return [m for m in sorted(mail) if self._is_vote(m) and ends >= {*self._letters[m][:2]}]

    def _is_vote(self, letter: int) -> bool:
        return isinstance(self._letters[letter].message, VoteRequest | VoteResponse)

    # What becomes of it

    def _quietly(self, state: State, event: Event) -> State:
        """As a part of something larger; what is written is durable before the next part."""
        state = self._merged(state, event, self._step(state, event), mail=state.mail)[1]
        if self._locals[state.replicas[event.node - 1]].pending:
            return self._quietly(state, Event("persist", event.node))
        return state

    def _step(self, state: State, event: Event) -> Step:
        replica = state.replicas[event.node - 1]
        made = self._made.get((replica, event))
        if made is None:
            try:
                made = self._make(self._locals[replica], event)
            except (Broken, AssertionError) as error:
                raise _Found(str(error) or repr(error), event) from error
            self._made[replica, event] = made
        return made

    def _make(self, local: Local, event: Event) -> Step:
        if event.kind == "crash":
            assert isinstance(event.argument, int)
            return Step(self._intern(local.after_crash(event.argument)), ())
        if event.kind == "damage":
            assert isinstance(event.argument, int)
            return Step(self._intern(local.after_damage(event.argument)), ())
        local = local.copy()
        local.take(event)
        if self._scope.syncs_at_once:
            local.persist_all()
        sent = tuple(map(self._intern_letter, local.sent))
        local.sent = []
        return Step(self._intern(local), sent)

    def _merged(
        self, state: State, event: Event, step: Step, *, mail: frozenset[int], costs: str = ""
    ) -> tuple[Event, State]:
        """The state of the whole with one replica's step. Raises if a rule is broken in it."""
        place = event.node - 1
        replicas = (*state.replicas[:place], step.replica, *state.replicas[place + 1 :])
        after = State(replicas, mail.union(step.sent), state.budget, state.past)
        if step.replica != state.replicas[place]:
            try:
                after = self._judged(after, event.node, state.replicas[place])
            except Broken as broken:
                raise _Found(str(broken), event) from None
        return event, self._paid(after, costs)

    @staticmethod
    def _paid(state: State, costs: str) -> State:
        if not costs:
            return state
        place, budget = _PLACE[costs], state.budget
        budget = (*budget[:place], budget[place] - 1, *budget[place + 1 :])
        return State(state.replicas, state.mail, budget, state.past)

    # What must hold of all of them

    def _judged(self, state: State, node: int, before: int) -> State:
        replica = state.replicas[node - 1]
        for other in state.replicas:
            if (replica, other) not in self._matching:
                self._logs_match(replica, other)
        judgement = self._judgements.get((state.past, before, replica))
        if judgement is None:
            local, past = self._locals[replica], self._pasts[state.past]
            if local.group.is_leader:
                past = self._leads(local, past)
            is_commit = local.group.committed > self._locals[before].group.committed
            if is_commit:
                past = self._commits(state, local, self._locals[before], past)
            judgement = self._intern_past(past)
            if not is_commit:  # which depends on the others too
                self._judgements[state.past, before, replica] = judgement
        if judgement == state.past:
            return state
        return State(state.replicas, state.mail, state.budget, judgement)

    def _logs_match(self, one: int, other: int) -> None:
        if not self._locals[one].log.matches(self._locals[other].log):
            raise Broken("logs that have one entry in common are the same up to it")
        self._matching |= {(one, other), (other, one)}

    @staticmethod
    def _leads(local: Local, past: Past) -> Past:
        epoch = local.group.epoch
        leaders = dict(past.leaders)
        if epoch in leaders:
            if leaders[epoch] != local.id:
                raise Broken(f"one leader an epoch: {leaders[epoch]} and {local.id} lead {epoch}")
            return past
        for committed_in, position in past.commits:
            # Of later epochs only: a late winner of an old one has a right not to know.
            if committed_in < epoch and not local.log.contains(position):
                raise Broken(f"a leader has all that is committed: {local.id} lacks {position}")
        return past._replace(leaders=(*past.leaders, (epoch, local.id)))

    def _commits(self, state: State, local: Local, before: Local, past: Past) -> Past:
        position = local.group.committed
        log = local.log.upto(position)
        if log.last != position:
            raise Broken("what is committed is in the log")
        if not log.agrees(past.committed):
            raise Broken(f"what is committed never changes: {log}, and {past.committed}")
        # A leader that goes over to other voters commits, and campaigns again, in one step.
        leader = next((one for one in (before, local) if one.group.is_leader), None)
        if leader is not None:
            held = {n for n, r in zip(self._nodes, state.replicas) if self._has(r, position)}
            configs = before.group.config, local.group.config
            if not any(config.agreed(held.__contains__) for config in configs):
                raise Broken(f"what is committed is durable on a majority: {position} on {held}")
        if log.last <= past.committed.last:
            return past
        if leader is None:
            raise Broken(f"only a leader finds out what is committed: {local.id} says {position}")
        commits = (*past.commits, (leader.group.epoch, position))
        return past._replace(committed=log, commits=commits)

    def _has(self, replica: int, position: Position) -> bool:
        durable = self._locals[replica].durable
        rows = tuple(row.position for row in durable.rows)
        return Lineage(rows, durable.end_offset).contains(position)

    # Numbers for values

    def _intern(self, local: Local) -> int:
        known = self._local_ids.setdefault(local.key(), len(self._locals))
        if known == len(self._locals):
            self._locals.append(local)
        return known

    def _intern_letter(self, envelope: Envelope) -> int:
        known = self._letter_ids.setdefault(envelope, len(self._letters))
        if known == len(self._letters):
            self._letters.append(envelope)
            source, to, message = envelope
            self._deliveries.append(Event("deliver", to, (source, message)))
        return known

    def _intern_past(self, past: Past) -> int:
        known = self._past_ids.setdefault(past, len(self._pasts))
        if known == len(self._pasts):
            self._pasts.append(past)
        return known

    def _story(self, at: int) -> tuple[str, ...]:
        told = []
        while at > 0:
            at, event = self._came_from[at]
            told.append(_told(event))
        return tuple(reversed(told))


class _Found(Exception):
    def __init__(self, rule: str, event: Event) -> None:
        super().__init__(rule)
        self.event = event


def _told(event: Event) -> str:
    match event.kind, event.argument:
        case "deliver", (source, News() as news):
            return f"{event.node} hears from {source}: {news}"
        case "deliver", (source, message):
            return f"{event.node} gets from {source}: {message}"
        case kind, None:
            return f"{event.node} {kind}"
        case kind, argument:
            return f"{event.node} {kind} {argument}"
