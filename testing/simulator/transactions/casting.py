"""Who takes part in a run with transactions, by its knobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from tidemark.testing.simulator.randomness import stream
from tidemark.testing.simulator.transactions.clients import (
    COUNTERS,
    TRANSFORMERS,
    Counter,
    Transformer,
    Writer,
)
from tidemark.testing.simulator.transactions.consumer_member import ConsumerMember
from tidemark.testing.simulator.transactions.holdings import Holdings
from tidemark.testing.simulator.transactions.member import REBALANCE_MS, Member
from tidemark.testing.simulator.transactions.migrant import Migrant, Rollout
from tidemark.testing.simulator.transactions.onlookers import look_on, scan
from tidemark.testing.simulator.transactions.places import Places
from tidemark.testing.simulator.transactions.producer import TransactionalProducer
from tidemark.testing.simulator.transactions.strangers import Stranger
from tidemark.testing.simulator.transactions.talker import Talker
from tidemark.testing.simulator.transactions.tasks import Task

if TYPE_CHECKING:
    from tidemark.testing.simulator.transactions.play import Play
    from tidemark.testing.simulator.world import World

_JOIN_SECONDS: Final = REBALANCE_MS / 1000 + 1.0
_GIVE_UP_SECONDS: Final = (0.1, 1.0, 3.0)
"""Some are impatient: what they have given up may still be on its way."""


def make_tasks(play: Play, world: World, rng: Random) -> Iterator[Callable[[], Task]]:
    """What each of them does until the play is stopped."""
    casting, knobs = _Casting(play, world), world.knobs
    for number in range(knobs.writers):
        bumps = rng.random() < knobs.bumping
        for rival in range(knobs.rivals):
            talker = casting.talker(f"writer {number} {rival}")
            maker = casting.maker(talker, f"writing {number}", bumps)
            yield Writer(play, talker, maker, aborts=knobs.aborts, pauses=knobs.pauses).run
    for number in range(knobs.transformers):
        bumps = rng.random() < knobs.bumping
        talker = casting.talker(f"transformer {number}")
        if knobs.has_generations:
            member = casting.member(talker, TRANSFORMERS)
            maker = casting.maker(talker, f"transforming {number}", bumps)
            client = Transformer(play, talker, member, maker)
            yield partial(_until_settled, client, member)
        else:
            stranger = casting.classic_member(talker, TRANSFORMERS)
            source = play.places.inputs[number % len(play.places.inputs)]
            maker = casting.maker(talker, f"transforming {source}", bumps)
            yield Transformer(play, talker, stranger, maker, [source]).run
    for number in range(knobs.members):
        talker = casting.talker(f"counter {number}")
        member = casting.member(talker, COUNTERS)
        counter = Counter(play, talker, member, pauses=knobs.pauses)
        yield partial(_until_settled, counter, member)
    for number in range(knobs.strangers):
        talker = casting.talker(f"stranger {number}")
        maker = casting.maker(talker, f"committing {number}", bumps=number % 2 == 0)
        yield Stranger(play, talker, maker).run
    yield partial(look_on, play, casting.talker("onlooker"))
    for partition in play.places.table:
        yield partial(scan, play, casting.talker(f"scanner of {partition}"), partition)


async def _until_settled(client: Transformer | Counter, member: Member) -> None:
    await client.run()
    if isinstance(member, Migrant):
        await member.settle()


class _Casting:
    """Of one run."""

    def __init__(self, play: Play, world: World) -> None:
        self._play = play
        self._world = world
        knobs = world.knobs
        is_orderly = not (knobs.client_lateness or knobs.client_duplication)
        self._holdings = Holdings(play.granted, play.has_former_coordinator, is_judged=is_orderly)
        self._rollouts: dict[str, Rollout] = {}

    def talker(self, name: str) -> Talker:
        return Talker(self._world.session(name))

    def maker(self, talker: Talker, name: str, bumps: bool) -> _Maker:
        timeout_ms = int(self._world.knobs.transaction_seconds * 1000)
        return _Maker(talker, self._play.places, name, bumps, timeout_ms)

    def member(self, talker: Talker, group_id: str) -> Member:
        knobs, places = self._world.knobs, self._play.places
        if knobs.migrating:
            return Migrant(
                talker,
                self._joining(talker),
                places,
                group_id,
                self._rollout(group_id),
                self._holdings,
                replaced_per_second=knobs.migrating,
                is_cooperative=knobs.cooperative,
                slow_to_join=knobs.slow_to_join,
            )
        if knobs.assigned_by_coordinator:
            return ConsumerMember(talker, places, group_id, self._holdings)
        return self.classic_member(talker, group_id)

    def classic_member(self, talker: Talker, group_id: str) -> Member:
        return Member(talker, self._joining(talker), self._play.places, group_id)

    def _joining(self, talker: Talker) -> Talker:
        name = f"{talker.session.name} joining"
        return Talker(self._world.session(name, timeout_seconds=_JOIN_SECONDS))

    def _rollout(self, group_id: str) -> Rollout:
        if group_id not in self._rollouts:
            rng = stream(self._world.seed, f"rollout {group_id}")
            rollout = Rollout(
                group_id,
                self._play.places,
                rng,
                self._play.kind_of,
                self._play.has_coordinator,
                is_hasty=self._world.knobs.is_hasty,
            )
            self._rollouts[group_id] = rollout
        return self._rollouts[group_id]


class _Maker:
    """Makes a producer anew."""

    def __init__(
        self, talker: Talker, places: Places, name: str, bumps: bool, timeout_ms: int
    ) -> None:
        self._talker = talker
        self._places = places
        self._name = name
        self._bumps = bumps
        self._timeout_ms = timeout_ms

    def __call__(self) -> TransactionalProducer:
        return TransactionalProducer(
            self._talker,
            self._places,
            self._name,
            bumps=self._bumps,
            timeout_ms=self._timeout_ms,
            give_up_seconds=self._talker.rng.choice(_GIVE_UP_SECONDS),
        )
